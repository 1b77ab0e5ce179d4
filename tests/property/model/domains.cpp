// SPDX-License-Identifier: Apache-2.0
// Domains of libvirt: it says which VMs run, as LibvirtSource reports it, and an operator what
// their containers own. Neither the runtime nor kubelet knows them.
#include "tests/property/model/play.hpp"

namespace ka::model {

using policy::ledger::Source;

void Play::lose_libvirt() {
  if (!setup_.has_libvirt) return;
  libvirt_is_up_ = false;
  kernel_.board().set_source(Source::kLibvirt, {false, "gone"});
}

/// After a connection libvirt reports each domain. One that is known is looked at again, and it has
/// spoken when the last one is.
void Play::find_libvirt() {
  if (!setup_.has_libvirt) return;
  libvirt_is_up_ = true;
  kernel_.board().set_source(Source::kLibvirt, {true, "libvirtd"});
  std::set<std::string> running;
  for (const Pod& pod : world_.pods()) {
    if (pod.is_domain && pod.pid != 0) running.insert(pod.id);
  }
  for (const std::string& id : running) start_domain(*world_.find(id));
  if (!libvirt_is_up_ || kernel_.line().node().gate().may_widen()) return;
  guarded({}, [this] {
    knowledge_.synced(Source::kLibvirt);
    kernel_.line().source_synced(Source::kLibvirt);
    kernel_.line().finish({});
  });
}

void Play::start_domain(const Pod& pod) {
  if (!libvirt_is_up_) return;
  const auto& pods = kernel_.line().node().ledger().pods();
  const auto known = pods.find(pod.id);
  const bool is_known = known != pods.end() && known->second.vmm &&
                        known->second.vmm->pid == pod.pid && known->second.domain == pod.id;
  if (!is_known) return handle({world_.seen(pod)});
  guarded({}, [&] { kernel_.line().refresh(pod.id); });
}

void Play::end_domain(const std::string& id) {
  if (!libvirt_is_up_) return;
  guarded({id}, [&] { kernel_.line().refresh(id); });
}

/// Refused where the daemon does not know the domain, or no longer.
void Play::describe(const Pod& pod, const Container& container) {
  if (kernel_.line().node().ledger().find(pod.id) == nullptr) return;
  const policy::ledger::Event event = World::described(pod, container);
  guarded({pod.id}, [&] {
    note({event});
    if (!kernel_.requests().submit(event)) report_failure("no container for domain " + pod.id);
  });
}

/// An operator says again what the daemon has lost.
void Play::describe_domains() {
  for (std::size_t i = 0; i < world_.pods().size(); ++i) {
    const Pod& pod = world_.pods()[i];
    if (!pod.is_domain || pod.pid == 0) continue;
    for (const Container& container : pod.containers) {
      if (container.runs) describe(pod, container);
    }
    knowledge_.record(world_.seen(pod));  // that is certain now
  }
}

}  // namespace ka::model
