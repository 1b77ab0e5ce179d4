// SPDX-License-Identifier: Apache-2.0
// What the daemon hears of the node, when, and how often; and that it dies meanwhile.
#include <algorithm>
#include <fstream>

#include "tests/property/model/play.hpp"

namespace ka::model {

using policy::ledger::KubeletSeen;
using policy::ledger::Source;

namespace {

constexpr auto kNoHurry = std::chrono::hours(1);

std::string subject(const policy::ledger::Event& event) {
  if (const auto* pod = std::get_if<policy::ledger::PodSeen>(&event.body)) return pod->id;
  if (const auto* gone = std::get_if<policy::ledger::PodGone>(&event.body)) return gone->id;
  if (const auto* seen = std::get_if<policy::ledger::ContainerSeen>(&event.body))
    return seen->sandbox;
  if (const auto* exited = std::get_if<policy::ledger::ContainerExited>(&event.body))
    return exited->sandbox;
  return {};
}

std::set<std::string> subjects(const std::vector<policy::ledger::Event>& events) {
  std::set<std::string> ids;
  for (const policy::ledger::Event& event : events) ids.insert(subject(event));
  return ids;
}

}  // namespace

void Play::record(const Step& step) {
  switch (step.what) {
    case What::kKubeletFile:
      return read_assigned();
    case What::kKubeletAway:
      return miss_assigned(step.choice % 2 == 0);
    case What::kKubeletStale:
      return handle_assigned(assigned_before_);
    case What::kDeliver:
      return deliver(step.choice, false);
    case What::kDouble:
      repeat();
      return deliver(step.choice, true);
    case What::kLose:
      if (!mail_.empty()) mail_.pop_front();
      return;
    case What::kRuntimeAway:
      runtime_is_up_ = false;
      return kernel_.board().set_source(world_.runtime(), {false, "gone"});
    case What::kRuntimeBack:
      return synchronize();
    case What::kLibvirtAway:
      return lose_libvirt();
    case What::kLibvirtBack:
      return find_libvirt();
    case What::kKill:
      return restart({}, step.choice % 2 == 0);
    case What::kKillInWrite:
      writes_until_kill_ = 1 + static_cast<int>(step.choice % 5);
      return;
    case What::kDamage:
      return damage(step.choice);
    case What::kTick:
      return tick();
    case What::kTimeout:
      return time_out();
    case What::kQuiesce:
      return quiesce();
    default:
      return;
  }
}

/// The daemon may be killed in it: of what it was concerned with nobody knows how much is written.
bool Play::guarded(const std::set<std::string>& concerned, const Act& act) {
  try {
    act();
    return true;
  } catch (const Killed&) {
    for (const std::string& pod : concerned) knowledge_.doubt(pod);
    restart({}, false);
    return false;
  }
}

void Play::note_container(const policy::ledger::Event& event) {
  const auto* seen = std::get_if<policy::ledger::ContainerSeen>(&event.body);
  if (seen == nullptr) return;
  const auto& vmm = knowledge_.pods().at(seen->sandbox).vmm;
  if (vmm && !kernel_.is_alive(vmm->pid)) knowledge_.set_late(seen->sandbox);
}

/// A VM that is reported when it has ended is gone as soon as the daemon looks.
void Play::note(const Events& events) {
  for (const policy::ledger::Event& event : events) {
    knowledge_.record(event);
    const auto* seen = std::get_if<policy::ledger::PodSeen>(&event.body);
    if (seen != nullptr && seen->vmm && !kernel_.is_alive(seen->vmm->pid)) {
      knowledge_.doubt(seen->id);
    }
    note_container(event);
  }
}

/// All that the runtime has, and that it has no more what the daemon still knows.
Play::Events Play::whole_truth() {
  Events events = world_.all();
  const auto there = subjects(events);
  std::set<std::string> known;
  for (const auto& [id, pod] : kernel_.line().node().ledger().pods()) known.insert(id);
  for (const auto& [id, pod] : knowledge_.pods()) known.insert(id);
  for (const std::string& id : known) {
    if (!there.contains(id) && !is_domain(id))
      events.push_back({world_.runtime(), policy::ledger::PodGone{id}});
  }
  return events;
}

void Play::handle(const Events& events) { handle(events, subjects(events)); }

void Play::handle(const Events& events, const std::set<std::string>& concerned) {
  guarded(concerned, [&] {
    note(events);
    kernel_.line().handle(events);
  });
}

/// NRI asks before and after; elsewhere word of it is under way.
void Play::report(const Events& events, const std::string& pod, const Act& meanwhile) {
  const bool waits_for_plugin = setup_.has_nri && runtime_is_up_;
  if (waits_for_plugin) {
    unfinished_.insert(pod);
    guarded(subjects(events), [&] {
      note(events);
      kernel_.line().narrow(events, kNoHurry);
    });
  }
  last_ = {events, pod};
  if (meanwhile) meanwhile();
  if (!setup_.has_nri) mail_.insert(mail_.end(), events.begin(), events.end());
  if (!waits_for_plugin || !runtime_is_up_) return;
  guarded(subjects(events), [&] {
    kernel_.line().narrow(events, kNoHurry);
    kernel_.line().finish(pod);
    unfinished_.clear();
  });
}

/// The runtime calls twice, as one does that has not heard the answer.
void Play::repeat() {
  if (!setup_.has_nri || !runtime_is_up_) return;
  const auto [events, pod] = last_;
  guarded(subjects(events), [&] {
    note(events);
    kernel_.line().narrow(events, kNoHurry);
    kernel_.line().finish(pod);
  });
}

/// It may say of any pod what it owns.
void Play::handle_assigned(const Assigned& assigned) {
  if (setup_.assigner == Assigner::kNone) return;
  std::set<std::string> concerned;
  for (const auto& [id, pod] : knowledge_.pods()) concerned.insert(id);
  const Source source = source_of(setup_.assigner);
  assigner_is_up_ = true;
  kernel_.board().set_source(source, {true, "read"});
  std::visit([&](const auto& seen) { handle({{source, seen}}, concerned); }, assigned);
}

void Play::read_assigned() {
  Assigned now = world_.assigned();
  if (now != assigned_) assigned_before_ = std::exchange(assigned_, std::move(now));
  handle_assigned(assigned_);
}

/// Without the driver's directory nothing is prepared; what cannot be read any more, and kubelet's
/// file that is gone, is as it was read last, also by the daemon before (KubeletWatch, DraSource).
/// The API says nothing: what it said holds.
void Play::miss_assigned(bool is_gone) {
  if (setup_.assigner == Assigner::kDriver && is_gone && assigner_is_up_) {
    return handle_assigned(policy::ledger::PreparedSeen{});
  }
  if (setup_.assigner != Assigner::kFile) return lose_assigner();
  KubeletSeen seen = std::get<KubeletSeen>(assigned_);
  seen.outdated = true;
  handle_assigned(seen);
}

void Play::lose_assigner() {
  if (setup_.assigner == Assigner::kNone) return;
  assigner_is_up_ = false;
  kernel_.board().set_source(source_of(setup_.assigner), {false, "gone"});
}

/// Mostly in order.
void Play::deliver(std::uint32_t choice, bool keep) {
  if (mail_.empty()) return;
  const std::size_t which = choice % 4 == 0 ? choice % mail_.size() : 0;
  const policy::ledger::Event event = mail_[which];
  if (!keep) mail_.erase(mail_.begin() + static_cast<std::ptrdiff_t>(which));
  handle({event});
}

void Play::synchronize() {
  if (!setup_.has_nri) return;
  runtime_is_up_ = true;
  kernel_.board().set_source(Source::kNri, {true, "runtime"});
  const Events events = whole_truth();
  guarded(subjects(events), [&] {
    note(events);
    kernel_.line().handle(events);
    knowledge_.synced(Source::kNri);
    kernel_.line().source_synced(Source::kNri);
    kernel_.line().finish({});
  });
}

/// Pods whose state file could not be read, and has not been replaced since.
std::set<std::string> Play::set_aside() const {
  std::set<std::string> pods;
  for (const auto& entry : std::filesystem::directory_iterator(kernel_.state_dir())) {
    const std::filesystem::path& file = entry.path();
    if (file.extension() == ".unreadable") pods.insert(file.stem().stem());
  }
  return pods;
}

void Play::restart(const std::set<std::string>& damaged, bool assigner_first) {
  for (const std::string& pod : std::exchange(unfinished_, {})) knowledge_.doubt(pod);
  for (const std::string& pod : damaged) lose_originals(pod);
  knowledge_.restart(damaged, set_aside());
  for (const auto& [id, pod] : std::map(knowledge_.pods())) {
    if (pod.vmm && !kernel_.is_alive(pod.vmm->pid)) knowledge_.end(id);
  }
  mail_.clear();
  runtime_is_up_ = assigner_is_up_ = libvirt_is_up_ = false;
  writes_until_kill_ = 0;
  kernel_.start();
  line::Line& line = kernel_.line();
  line.expect(Source::kPersist);
  if (setup_.has_nri) line.expect(Source::kNri);
  if (setup_.has_libvirt) line.expect(Source::kLibvirt);
  if (setup_.assigner != Assigner::kNone) line.expect(source_of(setup_.assigner));
  if (assigner_first) read_assigned();
  line.adopt();
  knowledge_.synced(Source::kPersist);
  line.source_synced(Source::kPersist);
  line.finish({});
}

void Play::damage(std::uint32_t choice) {
  std::vector<std::string> saved;
  for (const auto& [id, pod] : knowledge_.pods()) {
    if (std::filesystem::exists(kernel_.state_dir() / (id + ".json"))) saved.push_back(id);
  }
  if (saved.empty()) return;
  const std::string& pod = saved[choice % saved.size()];
  std::ofstream(kernel_.state_dir() / (pod + ".json")) << "{";
  restart({pod}, choice % 2 == 0);
}

void Play::tick() {
  const auto now_online = kernel_.online();
  guarded({}, [&] {
    if (kernel_.line().node().topology.online() != now_online) {
      kernel_.line().change_topology(kernel_.topology);
    }
    kernel_.line().check_drift();
  });
  for (const auto& [id, pod] : std::map(knowledge_.pods())) {
    if (pod.vmm && !kernel_.is_alive(pod.vmm->pid)) knowledge_.end(id);
  }
  if (kernel_.is_seen()) dirty_.clear();
}

void Play::time_out() {
  kernel_.clock.advance(std::chrono::seconds(11));
  knowledge_.time_is_up();
  guarded({}, [&] { kernel_.line().stop_waiting(); });
}

}  // namespace ka::model
