// SPDX-License-Identifier: Apache-2.0
#include "affinity/daemon/libvirt_source.hpp"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <charconv>
#include <string_view>
#include <utility>

#include "affinity/board/board.hpp"
#include "affinity/engine/engine.hpp"
#include "affinity/engine/views.hpp"
#include "vmm/threads.hpp"

namespace ka::daemon {
namespace {

using policy::ledger::Source;

/// N of "iothreadN" (src/conf/domain_conf.c).
std::optional<int> iothread_number(std::string_view id) {
  constexpr std::string_view kPrefix = "iothread";
  if (!id.starts_with(kPrefix)) return std::nullopt;
  id.remove_prefix(kPrefix.size());
  int number = 0;
  const auto [stop, error] = std::from_chars(id.data(), id.data() + id.size(), number);
  if (error != std::errc{} || stop != id.data() + id.size()) return std::nullopt;
  return number;
}

/// A hundredth of what may be moved may be elsewhere; nothing of what may not.
bool has_arrived(const board::MemoryView& memory, const policy::NodeSet& nodes) {
  return !memory.moving && memory.plan.wanted == nodes &&
         memory.plan.verdict == policy::plan::MemoryVerdict::kInPlace &&
         std::ranges::all_of(memory.facts.bound, [&](const auto& entry) {
           return entry.second == 0 || nodes.contains(entry.first);
         });
}

}  // namespace

libvirt::Pins to_pins(const policy::plan::SandboxPlan& plan) {
  libvirt::Pins pins{.vcpus = {}, .emulator = plan.roles[policy::Role::kEmulator], .iothreads = {}};
  for (const policy::plan::VcpuPlan& vcpu : plan.vcpus) {
    if (vcpu.placed) pins.vcpus[vcpu.index] = vcpu.cpus;
  }
  for (const auto& [id, cpus] : plan.iothreads) {
    if (const auto number = iothread_number(id)) pins.iothreads[*number] = cpus;
  }
  return pins;
}

std::optional<libvirt::MemoryOrder> to_memory_order(const engine::SandboxView& view) {
  if (!view.moves_memory() || view.plan.mems.empty()) return std::nullopt;
  if (view.memory == nullptr) return libvirt::MemoryOrder{view.plan.mems, false};
  if (view.memory->plan.verdict == policy::plan::MemoryVerdict::kDevice) return std::nullopt;
  return libvirt::MemoryOrder{view.plan.mems, has_arrived(*view.memory, view.plan.mems)};
}

LibvirtSource::LibvirtSource(boost::asio::io_context& io, engine::Engine& engine,
                             board::Board& board, vmm::Roots roots, Settings settings,
                             std::function<void(const std::string&)> recorded, const log::Log& log)
    : io_(io),
      engine_(engine),
      board_(board),
      roots_(std::move(roots)),
      settings_(std::move(settings)),
      recorded_(std::move(recorded)),
      log_(log) {
  libvirt::ClientHandlers handlers;
  handlers.connection = [this](bool up, const std::string& text) {
    boost::asio::post(io_, [this, up, text] { heard(up, text); });
  };
  handlers.domain = [this](const libvirt::DomainSeen& domain) {
    boost::asio::post(io_, [this, domain] { seen(domain); });
  };
  handlers.pinned = [this](const std::string& domain, const base::Result<int>& calls) {
    boost::asio::post(io_, [this, domain, calls] { pinned(domain, calls); });
  };
  heard(false, settings_.uri + ": not connected yet");
  auto client = libvirt::Client::start({.uri = settings_.uri}, std::move(handlers));
  if (!client) {
    heard(false, client.error().message);
    return;
  }
  client_.emplace(std::move(*client));
  follow();
}

void LibvirtSource::follow_soon() {
  if (std::exchange(following_soon_, true)) return;
  boost::asio::post(io_, [this] {
    following_soon_ = false;
    follow();
  });
}

/// Hands on what the plans say of domains, where that is another thing than it was.
void LibvirtSource::follow() {
  if (!client_) return;
  const Owners before = std::exchange(owners_, find_owners());
  follow_domains(*client_);
  greet_sandboxes(before);
  complain_of_wishes();
  if (!engine_.gate().may_widen()) return;
  for (const auto& [domain, id] : owners_) {
    auto order = order_for(id, domain);
    const auto last = ordered_.find(domain);
    if (!order || (last != ordered_.end() && last->second == *order)) continue;
    ordered_.insert_or_assign(domain, *order);
    client_->order(std::move(*order));
  }
}

/// A domain is the sandbox that runs it already; else, one of the configuration, that of its name;
/// else the first that was told to be it; else the first that says so itself.
LibvirtSource::Owners LibvirtSource::find_owners() const {
  Owners owners;
  for (const auto& [id, pod] : engine_.ledger().pods()) {
    if (!pod.domain.empty() && pod.vmm) owners.emplace(pod.domain, id);
  }
  for (const std::string& domain : settings_.domains) owners.emplace(domain, domain);
  for (const auto& [id, pod] : engine_.ledger().pods()) {
    if (!pod.domain.empty()) owners.emplace(pod.domain, id);
  }
  if (!settings_.by_annotation) return owners;
  for (const auto& [id, pod] : engine_.ledger().pods()) {
    if (!pod.domain_wish.empty() && pod.domain.empty() && !pod.vmm) {
      owners.emplace(pod.domain_wish, id);
    }
  }
  return owners;
}

void LibvirtSource::follow_domains(libvirt::Client& client) {
  std::set<std::string> domains;
  for (const auto& [domain, id] : owners_) domains.insert(domain);
  // A sandbox that was forgotten while its domain runs: its pins go back, and nobody follows that.
  for (auto& [domain, order] : ordered_) {
    const std::string* sandbox = sandbox_of(domain);
    const bool is_known = sandbox != nullptr && engine_.ledger().find(*sandbox) != nullptr;
    if (is_known || order.give_back) continue;
    order.pins = {};
    order.give_back = true;
    if (order.memory) order.memory = everywhere();
    client.order(order);
  }
  for (const auto& [domain, order] : ordered_) domains.insert(domain);
  if (domains == followed_) return;
  followed_ = std::move(domains);
  client.follow(followed_);
}

/// A sandbox may come to a domain that runs since long, and of which libvirt has nothing new to
/// tell.
void LibvirtSource::greet_sandboxes(const Owners& before) {
  for (const auto& [domain, id] : owners_) {
    const auto known = before.find(domain);
    const auto last = last_seen_.find(domain);
    const bool is_new = known == before.end() || known->second != id;
    if (!is_new || last == last_seen_.end() || !last->second.runs) continue;
    boost::asio::post(io_, [this, seen = last->second] { this->seen(seen); });
  }
}

/// Why a pod is not the domain that it should be; empty when it is, or names none.
std::string LibvirtSource::complaint_about(const policy::ledger::PodRecord& pod) const {
  const std::string& domain = pod.domain.empty() ? pod.domain_wish : pod.domain;
  if (domain.empty()) return {};
  if (pod.domain.empty() && !settings_.by_annotation) {
    return "allow_annotations does not list libvirt_domain";
  }
  if (pod.domain.empty() && pod.vmm) return "the pod has a VM of its own";
  const std::string* sandbox = sandbox_of(domain);
  return sandbox == nullptr || *sandbox == pod.id ? "" : "the domain is sandbox " + *sandbox;
}

void LibvirtSource::complain_of_wishes() {
  std::map<std::string, std::string> complaints;
  for (const auto& [id, pod] : engine_.ledger().pods()) {
    auto complaint = complaint_about(pod);
    if (complaint.empty()) continue;
    const auto said = complaints_.find(id);
    if (said == complaints_.end() || said->second != complaint) {
      log_.warning("a pod is not the libvirt domain that it names",
                   {{"sandbox", id},
                    {"domain", pod.domain.empty() ? pod.domain_wish : pod.domain},
                    {"reason", complaint}});
    }
    complaints.emplace(id, std::move(complaint));
  }
  complaints_ = std::move(complaints);
}

std::optional<libvirt::Order> LibvirtSource::order_for(const std::string& sandbox,
                                                       const std::string& domain) const {
  const auto view = engine_.view(sandbox);
  if (!view || view->pod.domain != domain || (view->observed && !view->released)) {
    return std::nullopt;
  }
  const auto last = ordered_.find(domain);
  libvirt::Order order{.domain = domain,
                       .pins = to_pins(view->plan),
                       .memory = to_memory_order(*view),
                       .in_config = settings_.in_config,
                       .give_back = view->released};
  if (!order.give_back) return order;
  // Nothing of ours is recorded, and nothing has to go back.
  if (last == ordered_.end()) return std::nullopt;
  order.pins = {};
  if (last->second.memory) order.memory = everywhere();
  return order;
}

libvirt::MemoryOrder LibvirtSource::everywhere() const {
  return {engine_.topology().nodes(), true};
}

const std::string* LibvirtSource::sandbox_of(const std::string& domain) const {
  const auto found = owners_.find(domain);
  return found == owners_.end() ? nullptr : &found->second;
}

void LibvirtSource::heard(bool up, const std::string& text) {
  board_.set_source(Source::kLibvirt, {up, text});
  up_ = up;
  note_all_seen();
}

/// After a connection libvirt tells of each domain that is followed.
void LibvirtSource::note_all_seen() {
  const bool all = std::ranges::all_of(
      owners_, [&](const auto& owner) { return last_seen_.contains(owner.first); });
  if (!up_ || !all || engine_.gate().may_widen()) return;
  engine_.source_spoke(Source::kLibvirt);
  engine_.finish({});
}

void LibvirtSource::seen(const libvirt::DomainSeen& domain) {
  const auto before = last_seen_.find(domain.name);
  if (before != last_seen_.end() && is_another_run(before->second, domain)) {
    const auto last = ordered_.find(domain.name);
    if (last != ordered_.end() && !last->second.give_back) ordered_.erase(last);
  }
  last_seen_[domain.name] = domain;
  const std::string* sandbox = sandbox_of(domain.name);
  if (sandbox == nullptr) return;
  if (domain.runs) {
    started(*sandbox, domain);
  } else {
    engine_.look_again(*sandbox);
  }
  note_all_seen();
}

/// It may as well be one that runs since long, and of which only something changed.
void LibvirtSource::started(std::string sandbox, const libvirt::DomainSeen& domain) {
  const auto vmm = find_vmm(sandbox, domain.uuid);
  if (!vmm) {
    log_.warning("a libvirt domain is not followed",
                 {{"sandbox", sandbox}, {"domain", domain.name}, {"reason", vmm.error().message}});
    return;
  }
  const policy::ledger::PodRecord* known = engine_.ledger().find(sandbox);
  if (known != nullptr && known->vmm == *vmm && known->domain == domain.name) {
    engine_.look_again(sandbox);
  } else {
    engine_.handle({Source::kLibvirt,
                    policy::ledger::PodSeen{.id = sandbox, .vmm = *vmm, .domain = domain.name}});
  }
}

/// One VM is one sandbox.
base::Result<policy::ProcessId> LibvirtSource::find_vmm(const std::string& sandbox,
                                                        const std::string& uuid) const {
  auto vmm = vmm::find_domain(roots_, uuid);
  if (!vmm) return vmm;
  for (const auto& [id, pod] : engine_.ledger().pods()) {
    if (id != sandbox && pod.vmm == *vmm) {
      return base::fail(base::ErrorCode::kConflict, "its VMM is that of sandbox " + id);
    }
  }
  return vmm;
}

void LibvirtSource::pinned(const std::string& domain, const base::Result<int>& calls) {
  if (!calls) {
    log_.warning("libvirt does not record the pins of a domain yet",
                 {{"domain", domain}, {"reason", calls.error().message}});
    return;
  }
  log_.info("libvirt records the plan", {{"domain", domain}, {"calls", std::to_string(*calls)}});
  const std::string* owner = sandbox_of(domain);
  if (owner == nullptr) return;
  const std::string sandbox = *owner;
  // It has made the pins too, and may have widened a cgroup that was in the way.
  engine_.look_again(sandbox);
  recorded_(sandbox);
}

}  // namespace ka::daemon
