// Which threads a sandbox's VMM has, and what each is for.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "affinity/base/result.hpp"
#include "affinity/base/thread_stats.hpp"
#include "vmm/facts/facts.hpp"

namespace ka::vmm {

/// True when the process is a VMM: it is one by the name of its program (QEMU, Cloud Hypervisor,
/// ...; all there is to see under software emulation), or it holds a KVM VM
/// (`anon_inode:kvm-vm`). Any thread of the process may be named. Used to refuse a pid that is
/// something else. kGone when there is no such process.
base::Result<bool> is_vmm(const Roots& roots, int pid);

/// The process of a libvirt domain on this machine: the one VMM with "-uuid UUID" among its
/// arguments (src/qemu/qemu_command.c). kNotFound when there is none (a domain of another machine),
/// kConflict when there are several.
base::Result<int> find_domain(const Roots& roots, std::string_view uuid);

/// The shim of a sandbox by the file `shim.pid` that it has in containerd's folder for it
/// (TASKS/NAMESPACE/SANDBOX): a few reads.
std::optional<int> shim_by_bundle(const Roots& roots, const std::filesystem::path& tasks,
                                  const std::string& sandbox);

/// Kata's shims that run now, by the sandbox that their command line names (`-id`). Our own proxy
/// is none of them. Walks over all processes of the node.
std::map<std::string, int> find_shims(const Roots& roots);

enum class ShimKind {
  kNone,   ///< none runs yet
  kKata,   ///< one of Kata's, by the name of its program
  kOther,  ///< another runtime's (runc), or one that does not say that it is Kata's
};

/// A sandbox's shim, looked for while it is being started.
struct FoundShim {
  ShimKind kind = ShimKind::kNone;
  int pid = 0;  ///< of one of Kata's
  std::uint64_t start_time = 0;
};

/// By the pid that it left in its bundle: a few reads.
FoundShim shim_in_bundle(const Roots& roots, const std::filesystem::path& bundle,
                         const std::string& sandbox);

/// By the command lines of all processes of the node (`-id`).
FoundShim shim_by_command(const Roots& roots, const std::string& sandbox);

/// The VMM that a shim has started: a child of it, or (Dragonball) the shim itself. Asks nobody
/// else.
std::optional<int> vmm_of_shim(const Roots& roots, int shim);

/// The threads of one sandbox, looked at again and again. It remembers what cannot have changed:
/// while the same threads have the same names, a look costs one listing and one stat line a
/// thread. Not safe for use by several threads.
class Discovery {
 public:
  Discovery(Roots roots, Target target);
  Discovery(const Discovery&) = delete;
  Discovery& operator=(const Discovery&) = delete;
  Discovery(Discovery&&) noexcept;
  Discovery& operator=(Discovery&&) noexcept;
  ~Discovery();

  const Target& target() const;

  /// Lists and names every thread of the sandbox: those of the VMM, its vhost kernel threads, its
  /// virtiofsd, its shim, and any other process of the sandbox cgroup (vhost-user back-end, else
  /// helper). `monitor` may be
  /// null. Threads that die while they are looked at are left out. kGone when the VMM is, also
  /// when its pid belongs to another process by now.
  /// `stats`: of the pass that looks.
  base::Result<VmmThreads> look(const MonitorFacts* monitor, base::ThreadStats& stats);
  /// The same in a pass of its own.
  base::Result<VmmThreads> look(const MonitorFacts* monitor);

  /// The next look reads everything anew: for `verify`, and after a device was plugged (a vhost
  /// worker of kernels before 6.4 is no thread of the VMM).
  void forget();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// One look without a memory, in a pass of its own.
base::Result<VmmThreads> discover(const Roots& roots, const Target& target,
                                  const MonitorFacts* monitor);

/// Name and meaning of a backend, for those who list them.
struct BackendInfo {
  std::string_view name;
  std::string_view summary;
};

/// The backends that tell vCPUs, iothreads and vhost workers, the most trustworthy first.
std::span<const BackendInfo> backends();

}  // namespace ka::vmm
