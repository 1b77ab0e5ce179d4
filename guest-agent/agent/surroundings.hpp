// What runs in a guest beside its containers, kept off the vCPUs that belong to containers:
// interrupts, the kernel's own threads, kata-agent.
#pragma once

#include "guest-agent/agent/hierarchy.hpp"
#include "guest-agent/agent/kernel.hpp"
#include "policy/facts/guest.hpp"

namespace ka::agent {

class Surroundings {
 public:
  /// Both must outlive it.
  Surroundings(const Roots& roots, const Calls& calls) : roots_(roots), calls_(calls) {}

  /// Keeps all of it on `common`; enters into the report what could and what could not be moved.
  /// Nothing is touched while no CPU was ever set apart.
  void place(const Hierarchy& hierarchy, const policy::GuestCpuSet& common,
             const policy::GuestCpuSet& online, bool interrupts, policy::GuestReport& report);

 private:
  void place_interrupts(const policy::GuestCpuSet& cpus, policy::GuestReport& report);
  void place_kernel_threads(const policy::GuestCpuSet& cpus, policy::GuestReport& report);
  bool place_services(const Hierarchy& hierarchy, const policy::GuestCpuSet& cpus);
  bool place_service(const Hierarchy& hierarchy, int pid, const policy::GuestCpuSet& cpus);

  const Roots& roots_;
  const Calls& calls_;
  bool apart_ = false;  ///< some CPU is set apart
  bool interrupts_placed_ = false;
  policy::GuestCpuSet last_common_;
};

}  // namespace ka::agent
