// SPDX-License-Identifier: Apache-2.0
// What on a host says where the host itself runs: one class for each kind of mask, and one table of
// them. Others write these masks, too; none of them is ours alone.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "policy/facts/id_set.hpp"

namespace ka::helper {

/// Where the kernel's trees are, and the sockets of systemd and of irqbalance.
struct Roots {
  std::filesystem::path proc = "/proc";
  std::filesystem::path sys = "/sys";
  std::filesystem::path systemd = "/run/systemd/private";
  std::filesystem::path irqbalance = "/run/irqbalance";
};

inline constexpr std::size_t kMostTitle = 128;  ///< of a mask, in bytes

/// Why a thread is `fixed` whose mask nobody can write (PF_NO_SETAFFINITY).
inline constexpr const char* kBoundByKernel = "bound by the kernel";

struct HostMask {
  std::string name;     ///< unique within its kind, and not reused for another one
  std::string title;    ///< for display
  policy::CpuSet cpus;  ///< "no limit" reads as all CPUs that the kernel could ever have
  std::string fixed;    ///< why the kernel lets nobody change it; empty: it does
};

class HostMasks {
 public:
  HostMasks() = default;
  HostMasks(const HostMasks&) = delete;
  HostMasks& operator=(const HostMasks&) = delete;
  virtual ~HostMasks() = default;

  virtual std::string_view kind() const = 0;
  /// Whether they say where interrupts go.
  virtual bool is_of_interrupts() const { return false; }
  /// Whether one that would have no CPU left may get others.
  virtual bool moves_elsewhere() const { return false; }
  /// The kind whose only mask new ones of this kind are born with; empty: there is none.
  virtual std::string_view born_by() const { return {}; }
  /// Others of this kind, which read() cannot see; empty: there are none.
  virtual std::string_view out_of_reach() const { return {}; }
  /// All that there are, but for those that take no part (a queue without a mask). What goes away
  /// meanwhile is not among them.
  virtual base::Result<std::vector<HostMask>> read() const = 0;
  /// Those of `known` as they are now; as read() where no cheaper way is known, with others.
  virtual base::Result<std::vector<HostMask>> read_again(const std::vector<HostMask>& known) const;
  /// Done when it returns without an error. kGone: it is not there any more.
  virtual base::Result<void> write(const HostMask& mask, const policy::CpuSet& cpus) const = 0;
};

using AllHostMasks = std::vector<std::unique_ptr<HostMasks>>;

/// Each kind once. `clock` must outlive them.
AllHostMasks all_host_masks(const Roots& roots, const base::Clock& clock,
                            std::unique_ptr<HostMasks> kernel_threads);

}  // namespace ka::helper
