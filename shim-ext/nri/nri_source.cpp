// SPDX-License-Identifier: Apache-2.0
#include "shim-ext/nri/nri_source.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "shim-ext/watch/stamp.hpp"

namespace ka::nri {

namespace ledger = policy::ledger;

namespace {

using base::Deadline;
using Events = std::vector<ledger::Event>;

struct Seen {
  std::set<std::string> pods;
  std::set<std::pair<std::string, std::string>> containers;  ///< each after its pod
};

Seen seen_in(const Events& events) {
  Seen reported;
  for (const ledger::Event& event : events) {
    if (const auto* pod = std::get_if<ledger::PodSeen>(&event.body)) {
      reported.pods.insert(pod->id);
    }
    if (const auto* seen = std::get_if<ledger::ContainerSeen>(&event.body)) {
      reported.containers.emplace(seen->sandbox, seen->id);
    }
  }
  return reported;
}

/// What the ledger has from the container runtime and the runtime no longer has.
Events find_gone(const ledger::Ledger& ledger, const Events& all) {
  const Seen reported = seen_in(all);
  Events gone;
  for (const auto& [id, pod] : ledger.pods()) {
    if (pod.source == ledger::Source::kNri && !reported.pods.contains(id)) {
      gone.push_back({ledger::Source::kNri, ledger::PodGone{id}});
      continue;
    }
    for (const auto& [container, record] : pod.containers) {
      if (record.source == ledger::Source::kNri && !reported.containers.contains({id, container})) {
        gone.push_back({ledger::Source::kNri, ledger::ContainerGone{id, container}});
      }
    }
  }
  for (const auto& [id, vmm] : ledger.ended().all()) {
    if (vmm.source != ledger::Source::kNri || reported.pods.contains(id)) continue;
    if (ledger.find(id) == nullptr) gone.push_back({ledger::Source::kNri, ledger::PodGone{id}});
  }
  return gone;
}

}  // namespace

NriSource::NriSource(std::filesystem::path socket, Probe probe, const Dependencies& dependencies)
    : socket_(std::move(socket)), probe_(std::move(probe)), with_(dependencies) {
  set_status({false, "not connected yet"});
}

/// Pods that cannot be seen stay so with any connection.
void NriSource::set_status(source::Status status) {
  status.unseen = std::move(status_.unseen);
  status_ = std::move(status);
  show_status();
}

void NriSource::show_status() {
  source::Status shown = status_;
  if (!shown.unseen.empty()) {
    const auto& [pod, why] = *shown.unseen.begin();
    const std::size_t more = shown.unseen.size() - 1;
    shown.text += "; cannot see whether pod " + pod + " has a VM: " + why +
                  (more == 0 ? "" : " (and " + std::to_string(more) + " more)");
  }
  with_.node.set_status(ledger::Source::kNri, std::move(shown));
}

void NriSource::start() {
  plugin_.emplace(with_.io, socket_, Identity{}, probe_, static_cast<Listener&>(*this), with_.log,
                  with_.clock);
}

void NriSource::refresh() {
  if (plugin_) plugin_->poll();
  if (with_.allocator != nullptr) with_.allocator->apply();
}

/// kubelet wrote its state before it asked the runtime for anything.
void NriSource::before(const Events& events) {
  const auto deadline = Deadline::in(with_.clock, kBudget);
  with_.peers.catch_up(deadline);
  with_.node.narrow(completed(events), deadline);
}

/// As who gives containers their CPUs has it.
Events NriSource::completed(Events events) const {
  if (with_.allocator != nullptr) with_.allocator->complete(events);
  return events;
}

/// Of an event that does not come to pass, what is so all the same: its pod.
void NriSource::refuse(const Events& events) {
  Events rest = events;
  std::erase_if(rest, [](const ledger::Event& event) {
    return std::holds_alternative<ledger::ContainerSeen>(event.body);
  });
  before(rest);
}

base::Result<Adjustment> NriSource::creating(const Events& events, const CreateRequest& request) {
  if (with_.allocator == nullptr) {
    before(events);
    return with_.containers.adjust(request);
  }
  if (const auto created = with_.allocator->create(request.described); !created) {
    refuse(events);
    return unexpected(created.error());
  }
  before(events);
  Adjustment adjustment = with_.containers.adjust(request);
  adjustment.updates = with_.allocator->updates();
  const auto own =
      std::ranges::find(adjustment.updates, request.container, &ContainerSets::container);
  if (own == adjustment.updates.end()) return adjustment;
  adjustment.sets = std::move(*own);
  adjustment.updates.erase(own);
  return adjustment;
}

base::Result<Updates> NriSource::updating(const Events& events,
                                          const ledger::ContainerSeen& update) {
  if (with_.allocator != nullptr) {
    const auto resized = with_.allocator->resize(update.id, update.spec.quota.value_or(0),
                                                 update.spec.period.value_or(0));
    if (!resized) {
      refuse(events);
      return unexpected(resized.error());
    }
  }
  before(events);
  return with_.allocator == nullptr ? Updates{} : with_.allocator->updates();
}

/// Its CPUs are free, and the shared pool is wider, before the next container is created.
Updates NriSource::stopped(const std::string& container) {
  if (with_.allocator == nullptr) return {};
  with_.allocator->end(container);
  return with_.allocator->updates();
}

Updates NriSource::synchronizing(const std::vector<Described>& containers,
                                 const std::set<std::string>& sandboxes) {
  if (with_.allocator == nullptr) return {};
  with_.allocator->synchronize(containers, sandboxes);
  return with_.allocator->updates();
}

/// The guest counts from what was planned when the container was made. The answer has no room for
/// CPUs.
void NriSource::starting(const Events& events, const Described& container,
                         std::function<void()> go_on) {
  const bool is_new = with_.allocator != nullptr && with_.allocator->adopt(container);
  before(events);
  if (is_new) with_.allocator->apply_at_once();
  const auto& about = container.candidate;
  with_.containers.await_guest(about.sandbox, about.id, std::move(go_on));
}

void NriSource::after(const Events& events, const std::string& sandbox) {
  if (with_.allocator != nullptr) with_.allocator->forget(events);
  with_.node.narrow(completed(events), Deadline::none());
  with_.node.finish(sandbox);
}

/// Events of a whole node, and the runtime does not wait: the line runs once.
void NriSource::synchronized(const Events& events) {
  with_.peers.catch_up(Deadline::none());
  Events all = completed(events);
  for (ledger::Event& event : find_gone(with_.node.ledger(), events))
    all.push_back(std::move(event));
  with_.node.handle(all);
  with_.node.synced(ledger::Source::kNri);
  with_.node.finish({});
  with_.containers.forget_gone();
  with_.peers.notify(source::Notice::kRuntimeReported);
}

void NriSource::answered(std::string_view method, std::chrono::nanoseconds elapsed) {
  with_.node.count_answer(elapsed);
  if (elapsed <= kBudget) return;
  const auto milliseconds = std::chrono::duration_cast<std::chrono::milliseconds>(elapsed).count();
  with_.log.warning("NRI response exceeded its budget",
                    {{"call", std::string(method)},
                     {"milliseconds", std::to_string(milliseconds)},
                     {"budget", std::to_string(kBudget.count())}});
}

void NriSource::connected(const std::string& runtime, bool accepts_updates) {
  if (with_.allocator != nullptr) with_.allocator->set_updater(accepts_updates ? this : nullptr);
  was_connected_ = true;
  set_status({true, runtime});
  with_.peers.notify(source::Notice::kRuntimeConnected);
}

void NriSource::update(const Updates& updates, std::function<void()> done) {
  plugin_->update(updates, std::move(done));
}

void NriSource::disconnected(const std::string& reason) {
  if (with_.allocator != nullptr) with_.allocator->set_updater(nullptr);
  const bool absent = !was_connected_ && watch::stamp_of(socket_) == watch::Stamp{};
  set_status({false, reason + "; retrying", absent});
  with_.peers.notify(source::Notice::kRuntimeDisconnected);
}

void NriSource::unseen(const std::map<std::string, std::string>& pods) {
  status_.unseen = pods;
  show_status();
}

}  // namespace ka::nri
