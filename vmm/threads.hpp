// SPDX-License-Identifier: Apache-2.0
// Which threads a sandbox's VMM has, and what each is for.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "base/thread_stats.hpp"
#include "vmm/facts/facts.hpp"

namespace ka::vmm {

/// Who named a process, and so how far its program's name can be trusted.
enum class Word {
  kTenant,    ///< a container's process: the image's author chose the program
  kRuntime,   ///< the process that a container runtime, Kata or libvirt has for the sandbox itself
  kOperator,  ///< a process named by an operator, who vouches for it
};

/// What a process currently is.
struct Examined {
  policy::ProcessId id;
  bool is_vmm = false;
};

/// The process that has this number, or a thread with it, at this moment. kGone without one.
base::Result<policy::ProcessId> identify(const Roots& roots, int pid);

/// The same, and whether it is a VMM: it holds a KVM VM (`anon_inode:kvm-vm`), or the name of its
/// program (QEMU, Cloud Hypervisor, ...; all there is to see under software emulation and before
/// /dev/kvm is opened) is believed: an operator's always, a runtime's where the process is not
/// contained, a tenant's where a Kata shim has started it. kTransient: neither can be seen, since
/// the first thread has ended before others.
base::Result<Examined> examine(const Roots& roots, int pid, Word word);

/// Whether the process runs in another pid namespace than we do, or that cannot be seen: a program
/// of a container. Kata's VMMs and shims do not.
bool is_contained(const Roots& roots, int pid);

/// The command line of this process, and of none that has its number later: then kGone.
base::Result<std::vector<std::string>> arguments_of(const Roots& roots,
                                                    const policy::ProcessId& process);

/// The process of a libvirt domain on this machine: a VMM with "-uuid UUID" among its arguments
/// (src/qemu/qemu_command.c). Of several, whose arguments anybody may have chosen, the one in
/// libvirt's own file, `libvirt/qemu/NAME.pid` below `roots.run` (qemuProcessLaunch() in
/// src/qemu/qemu_process.c). kNotFound when there is none (a domain of another machine), kConflict
/// when there are several and no such file names one of them.
base::Result<policy::ProcessId> find_domain(const Roots& roots, const std::string& name,
                                            std::string_view uuid);

/// Bytes of a shim's `shim.pid`.
inline constexpr std::size_t kLargestPidFile = 64;

/// The shim of a sandbox by the file `shim.pid` that it has in containerd's directory for it
/// (TASKS/NAMESPACE/SANDBOX): a few reads.
std::optional<policy::ProcessId> shim_by_bundle(const Roots& roots,
                                                const std::filesystem::path& tasks,
                                                const std::string& sandbox);

/// Kata's shims that run now, by the sandbox that their command line names (`-id`). Our own proxy
/// is none of them. Walks over all processes of the node.
std::map<std::string, policy::ProcessId> find_shims(const Roots& roots);

/// Whether this process is Kata's shim of the sandbox.
bool is_shim_of(const Roots& roots, const policy::ProcessId& process, const std::string& sandbox);

enum class ShimKind {
  kNone,   ///< none runs yet
  kKata,   ///< one of Kata's, by the name of its program
  kOther,  ///< another runtime's (runc), or one that is not known as Kata's
};

/// A sandbox's shim, searched while it is being started.
struct FoundShim {
  ShimKind kind = ShimKind::kNone;
  policy::ProcessId id;  ///< of one of Kata's
};

/// By the pid that it left in its bundle: a few reads.
FoundShim shim_in_bundle(const Roots& roots, const std::filesystem::path& bundle,
                         const std::string& sandbox);

/// By sandbox; none of ShimKind::kNone.
using StartingShims = std::map<std::string, FoundShim>;

/// By the command lines of all processes of the node (`-id`).
StartingShims starting_shims(const Roots& roots);

/// The VMM that a shim has started: a child of it, or (Dragonball) the shim itself. Uses no
/// source. kGone: there is none, or the shim has ended. Any other error: none was seen, and not all
/// of them could be read.
base::Result<policy::ProcessId> vmm_of_shim(const Roots& roots, const policy::ProcessId& shim);

/// The other sandbox whose VMM a process is; empty: none's.
using NeighbourOf = std::function<std::string(const policy::ProcessId&)>;

/// The threads of one sandbox, scanned repeatedly. It caches what cannot have changed:
/// while the same threads have the same names, a scan costs one listing and one stat line a
/// thread. Not safe for use by several threads.
class Discovery {
 public:
  /// `roots` must outlive it.
  Discovery(const Roots& roots, Target target);
  Discovery(const Discovery&) = delete;
  Discovery& operator=(const Discovery&) = delete;
  Discovery(Discovery&&) noexcept;
  Discovery& operator=(Discovery&&) noexcept;
  ~Discovery();

  const Target& target() const;

  /// Lists and names every thread of the sandbox: those of the VMM, its vhost kernel threads, its
  /// virtiofsd, its shim, and any other process of the sandbox cgroup (vhost-user back-end, else
  /// helper). Not those of another sandbox's VMM, nor of one that it has started; where an operator
  /// named the cgroup, only those that the VMM or its shim has started or that are connected to the
  /// VMM by a unix socket. `monitor` may be null. Threads that exit during the scan are left out.
  /// kGone when the VMM is (see read_process), also when its pid belongs to another process by now.
  /// What cannot be read for now is listed as last read (VmmThreads::unread, trouble); any other
  /// error: nothing is known yet, or the VMM itself cannot be read. `stats`: of the current pass.
  base::Result<VmmThreads> observe(const MonitorFacts* monitor, base::ThreadStats& stats,
                                   const NeighbourOf& neighbour_of);

  /// The next scan reads everything anew: for `verify`, and after a device was plugged (a vhost
  /// worker of kernels before 6.4 is no thread of the VMM).
  void forget();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace ka::vmm
