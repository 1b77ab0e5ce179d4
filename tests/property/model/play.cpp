// SPDX-License-Identifier: Apache-2.0
#include "tests/property/model/play.hpp"

#include <algorithm>
#include <array>

#include "affinity/line/requests.hpp"

namespace ka::model {

using policy::CpuSet;
using policy::ledger::Source;

namespace {

std::set<Source> sources_of(const Setup& setup) {
  std::set<Source> sources = {Source::kPersist};
  if (setup.assigner != Assigner::kNone) sources.insert(source_of(setup.assigner));
  if (setup.has_nri) sources.insert(Source::kNri);
  if (setup.has_libvirt) sources.insert(Source::kLibvirt);
  return sources;
}

/// The runtime, the shim proxy in front of one, or Kata's own files.
Source runtime_of(const Setup& setup) {
  if (setup.has_nri) return Source::kNri;
  return setup.has_proxy ? Source::kProxy : Source::kPersist;
}

/// The environment of containers comes through NRI alone.
Assigner any_assigner(std::uint64_t seed, bool has_nri) {
  if (seed % 8 == 0) return Assigner::kNone;
  if (seed % 4 == 0) return Assigner::kApi;
  return seed % 4 == 1 && has_nri ? Assigner::kDriver : Assigner::kFile;
}

bool runs(const Pod& pod) { return pod.runs && !pod.gone && (!pod.is_vm || pod.pid != 0); }

Container* next_to_run(Pod& pod) {
  const auto found = std::ranges::find(pod.containers, false, &Container::runs);
  return found == pod.containers.end() ? nullptr : &*found;
}

}  // namespace

Setup any_setup(std::uint64_t seed) {
  using Kind = policy::plan::Housekeeping::Kind;
  Setup setup;
  setup.options.settings.housekeeping.kind = seed % 3 == 0 ? Kind::kSandbox : Kind::kSharedPool;
  setup.has_nri = seed % 5 < 3;
  setup.has_proxy = seed % 5 == 3;
  setup.assigner = any_assigner(seed, setup.has_nri);
  setup.forgets = seed % 7 < 3;
  setup.smt = seed % 2 == 0;
  setup.has_libvirt = seed % 13 < 5;
  setup.options.settings.manage_cgroup = seed % 11 < 4;
  return setup;
}

Play::Play(const Setup& setup)
    : setup_(setup),
      world_(runtime_of(setup), setup.assigner, setup.has_libvirt),
      knowledge_(sources_of(setup)),
      kernel_(setup),
      assigned_(world_.assigned()),
      assigned_before_(assigned_) {
  kernel_.calls.before_write = [this](int tid) {
    before_ = kernel_.calls.effective(tid);
    note_write(tid);
    count_down();
  };
  kernel_.calls.after_write = [this](int tid) { check_write(tid); };
  watch_cgroups();
  restart({}, true);
  synchronize();
}

/// The daemon is about to write something: it may be killed there.
void Play::count_down() {
  if (writes_until_kill_ > 0 && --writes_until_kill_ == 0) throw Killed{};
}

std::string Play::perform(const Step& step) {
  change(step);
  check();
  std::string text;
  for (const std::string& failure : std::exchange(failures_, {})) text += failure + "; ";
  return text;
}

void Play::change(const Step& step) {
  static constexpr std::array kCalm = {What::kAdmit,     What::kRunPod,     What::kRunContainer,
                                       What::kRemovePod, What::kForget,     What::kReconcile,
                                       What::kTick,      What::kKubeletFile};
  if (std::ranges::find(kCalm, step.what) == kCalm.end() && step.what != What::kQuiesce) {
    is_calm_ = false;
  }
  change_pods(step);
  change_machine(step);
  record(step);
}

void Play::change_pods(const Step& step) {
  switch (step.what) {
    case What::kAdmit:
      world_.admit(step.choice);
      break;
    case What::kRunPod:
      run_pod(step.choice);
      break;
    case What::kRunContainer:
      run_container(step.choice);
      break;
    case What::kExit:
      exit_container(step.choice);
      break;
    case What::kRemovePod:
      remove_pod(step.choice);
      break;
    case What::kForget:
      if (Pod* gone = world_.choose(step.choice, [](const Pod& pod) { return pod.gone; })) {
        world_.forget(*gone);
      }
      break;
    case What::kReconcile:
      reconcile(false);
      break;
    case What::kKubeletNew:
      // Without its word nobody can tell two owners of one set, the old and the new, from a pool.
      // The driver keeps to what is allocated in the cluster.
      if (setup_.assigner == Assigner::kFile || setup_.assigner == Assigner::kApi) {
        world_.reassign(step.choice);
      }
      break;
    default:
      break;
  }
}

void Play::change_machine(const Step& step) {
  switch (step.what) {
    case What::kVmmEnds:
      end_vmm(step.choice);
      break;
    case What::kPlug:
    case What::kUnplug:
      change_vcpus(step.choice, step.what == What::kPlug);
      break;
    case What::kMasks:
      write_masks(step.choice);
      break;
    case What::kPin:
      pin(step.choice);
      break;
    case What::kUnpin:
      unpin();
      break;
    case What::kRelease:
      release(step.choice);
      break;
    case What::kReclaim:
      reclaim(step.choice);
      break;
    case What::kFault:
      fail(step.choice);
      break;
    case What::kMend:
      kernel_.mend();
      break;
    case What::kOffline:
      go_offline(step.choice);
      break;
    case What::kOnline:
      for (const Pod& pod : world_.pods()) touch(pod.id);
      kernel_.set_online(kernel_.machine);
      break;
    default:
      break;
  }
}

void Play::run_pod(std::uint32_t choice) {
  Pod* pod = world_.choose(choice, [](const Pod& known) { return !known.runs && !known.gone; });
  if (pod == nullptr) return;
  pod->runs = true;
  if (pod->is_vm) kernel_.boot(*pod);
  touch(pod->id);
  if (pod->is_domain) return start_domain(*pod);
  report({world_.seen(*pod)}, pod->id);
}

/// Kata plugs vCPUs and writes its cgroup while the runtime makes the container.
void Play::run_container(std::uint32_t choice) {
  Pod* pod = world_.choose(choice,
                           [](Pod& known) { return runs(known) && next_to_run(known) != nullptr; });
  if (pod == nullptr) return;
  Container& container = *next_to_run(*pod);
  container.runs = true;
  if (!container.owns) container.cpus = world_.pool();
  if (pod->is_domain) return describe(*pod, container);
  const std::string id = pod->id;
  const policy::ledger::Event seen = world_.seen(*pod, container);
  report({seen}, id, [this, id, choice] {
    const Pod& same = *world_.find(id);
    if (same.pid == 0) return;
    touch(id);
    confine(same, choice % 2 == 0);
    for (std::uint32_t i = 0; i < choice % 3 && kernel_.may_plug(same.pid); ++i) {
      kernel_.plug_one(same);
    }
  });
}

void Play::exit_container(std::uint32_t choice) {
  const auto can_exit = [](const Container& container) {
    return container.runs && !container.exited;
  };
  Pod* pod = world_.choose(choice, [&](const Pod& known) {
    return runs(known) && !known.is_domain && std::ranges::any_of(known.containers, can_exit);
  });
  if (pod == nullptr) return;
  Container& container = *std::ranges::find_if(pod->containers, can_exit);
  container.exited = true;
  if (!world_.reports_exits()) return;
  report({{world_.runtime(), policy::ledger::ContainerExited{pod->id, container.id}}}, pod->id);
}

void Play::remove_pod(std::uint32_t choice) {
  Pod* pod = world_.choose(choice, [](const Pod& known) { return known.runs && !known.gone; });
  if (pod == nullptr) return;
  pod->gone = true;
  const std::string id = pod->id;
  end_process_of(*pod, choice % 3 == 0);
  const bool is_of_libvirt = pod->is_domain;
  if (choice % 2 == 0) world_.forget(*pod);
  if (is_of_libvirt) return end_domain(id);
  report({{world_.runtime(), policy::ledger::PodGone{id}}}, id);
}

/// Late, and one after the other. kubelet updates no container that has exited.
void Play::reconcile(bool owners_only) {
  for (std::size_t i = 0; i < world_.pods().size(); ++i) {
    Pod& pod = world_.pods()[i];
    for (Container& container : pod.containers) {
      const CpuSet wanted = container.owns ? container.claim : world_.pool();
      if (pod.is_domain || !runs(pod) || !container.runs || container.cpus == wanted) continue;
      if (container.owns ? container.exited : owners_only) continue;
      container.cpus = wanted;
      report({world_.seen(pod, container)}, pod.id, [this, &pod] {
        touch(pod.id);
        confine(pod, pod.vcpus % 2 == 0);
      });
    }
  }
}

Pod* Play::any_vm(std::uint32_t choice) {
  return world_.choose(choice, [](const Pod& pod) { return pod.pid != 0; });
}

void Play::end_process_of(Pod& pod, bool reused) {
  if (pod.pid == 0) return;
  kernel_.end(pod, reused);
  knowledge_.doubt(pod.id);
  pod.pid = 0;
}

/// Its pidfd says so, or the daemon was too busy to hear it.
void Play::end_vmm(std::uint32_t choice) {
  Pod* pod = any_vm(choice);
  if (pod == nullptr) return;
  const policy::ProcessId vmm = *std::get<policy::ledger::PodSeen>(world_.seen(*pod).body).vmm;
  end_process_of(*pod, choice % 3 == 0);
  if (choice % 2 == 0) return;
  const std::string id = pod->id;
  guarded({id}, [&] { kernel_.line().vmm_ended(id, vmm); });
}

void Play::change_vcpus(std::uint32_t choice, bool plug) {
  Pod* pod = any_vm(choice);
  if (pod == nullptr) return;
  touch(pod->id);
  if (plug && kernel_.may_plug(pod->pid)) kernel_.plug_one(*pod);
  if (!plug && kernel_.may_unplug(pod->pid)) kernel_.unplug_one(*pod);
}

void Play::write_masks(std::uint32_t choice) {
  Pod* pod = any_vm(choice);
  if (pod == nullptr) return;
  touch(pod->id);
  for (const int tid : kernel_.threads_of(pod->pid)) {
    if (choice % 3 == 0) kernel_.set_mask(tid, kernel_.machine);
    if (choice % 3 == 1) kernel_.set_mask(tid, CpuSet{static_cast<int>(choice) % kCpus});
    if (choice % 3 == 2 && tid % 2 == 0) kernel_.set_mask(tid, CpuSet::range(2, kCpus - 1));
  }
}

/// What the daemon refuses changes nothing.
void Play::pin(std::uint32_t choice) {
  const Pod* pod = any_vm(choice);
  if (pod == nullptr) return;
  policy::ledger::OverrideSet event{.sandbox = pod->id, .force = choice % 3 == 0};
  event.value.role = choice % 2 == 0 ? policy::Role::kVcpu : policy::Role::kEmulator;
  if (choice % 2 == 0) event.value.vcpu_index = static_cast<int>(choice / 7 % 3);
  event.value.cpus = {static_cast<int>(choice) % kCpus, static_cast<int>(choice / 5) % kCpus};
  pins_[pod->id].push_back(event.value);
  guarded({event.sandbox}, [&] {
    (void)line::Requests(kernel_.line().node(), kernel_.line()).submit({Source::kApi, event});
  });
}

/// Those of a pod that has gone went with it. Before the sources have spoken no thread can go back.
void Play::unpin() {
  std::erase_if(pins_, [this](const auto& entry) {
    const auto& ids = kernel_.line().node().sandbox_ids();
    if (std::ranges::find(ids, entry.first) == ids.end()) return true;
    if (!kernel_.line().node().gate().may_widen()) return false;
    for (policy::ledger::OverrideSet event{.sandbox = entry.first};
         const policy::Override& pinned : entry.second) {
      static_cast<policy::Override&>(event.value) = pinned;
      event.value.cpus = {};
      const bool is_done = guarded({event.sandbox}, [&] {
        (void)line::Requests(kernel_.line().node(), kernel_.line()).submit({Source::kApi, event});
      });
      if (!is_done) return false;
    }
    return true;
  });
}

void Play::fail(std::uint32_t choice) {
  Pod* pod = any_vm(choice);
  if (pod == nullptr) return;
  static constexpr std::array kErrors = {EPERM, EAGAIN, EBUSY, EINTR};
  touch(pod->id);
  const auto tids = kernel_.threads_of(pod->pid);
  if (choice % 5 == 4) return kernel_.hide(pod->pid);
  kernel_.fail_calls(tids[choice % tids.size()], kErrors[choice / 5 % kErrors.size()]);
}

void Play::go_offline(std::uint32_t choice) {
  CpuSet online = kernel_.online();
  if (online.size() <= kCpus - 2) return;
  online.remove(1 + static_cast<int>(choice) % (kCpus - 1));
  for (const Pod& pod : world_.pods()) touch(pod.id);
  kernel_.set_online(online);
}

}  // namespace ka::model
