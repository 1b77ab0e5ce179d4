// SPDX-License-Identifier: Apache-2.0
// What can happen to a node, as a list that can be written down, played again and shortened: each
// step means something, or nothing, whatever the steps before it did.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <vector>

namespace ka::model {

enum class What {
  kAdmit,         ///< kubelet gives a pod its CPUs and writes its state
  kRunPod,        ///< the runtime starts an admitted pod
  kRunContainer,  ///< and its next container
  kExit,          ///< a container's process ends
  kRemovePod,     ///< the runtime removes a pod; kubelet takes its CPUs back, then or later
  kForget,        ///< kubelet takes back the CPUs of a pod that has gone
  kReconcile,     ///< kubelet gives containers the CPUs that they should have by now
  kVmmEnds,       ///< on its own; a stranger may get its number
  kPlug,          ///< one more vCPU
  kUnplug,        ///< one less
  kMasks,         ///< somebody gives the threads of a VM other masks
  kPin,           ///< somebody pins threads of a VM by hand
  kUnpin,         ///< and takes all of that back
  kRelease,       ///< an operator releases a sandbox, or all
  kReclaim,       ///< and takes it back
  kFault,         ///< a thread's mask cannot be read or written, or a VMM not be looked at
  kMend,          ///< all of that can be done again
  kOffline,       ///< a CPU goes
  kOnline,        ///< all CPUs are back
  kKubeletFile,   ///< the daemon reads kubelet's state, or what is in its place
  kKubeletAway,   ///< and finds none, or one that cannot be read
  kKubeletStale,  ///< and finds an old one, which somebody has put back
  kKubeletNew,    ///< kubelet restarts without its state, and gives its pods other CPUs
  kDeliver,       ///< one of the events under way arrives, not the oldest one
  kDouble,        ///< and arrives again; NRI's last one does
  kLose,          ///< or never does
  kRuntimeAway,   ///< the runtime's connection ends
  kRuntimeBack,   ///< and is there again, with all that the runtime has
  kLibvirtAway,   ///< libvirtd's connection ends
  kLibvirtBack,   ///< and is there again, with all domains that run
  kKill,          ///< the daemon ends and another one starts
  kKillInWrite,   ///< the same in the middle of what it does next
  kDamage,        ///< a state file is damaged, the daemon killed
  kTick,          ///< the drift check
  kTimeout,       ///< time passes; sources that are silent after a start are done without
  kQuiesce,       ///< all that was lost is told, all faults have ended
};

struct Step {
  What what = What::kTick;
  std::uint32_t choice = 0;  ///< which pod, CPU, event

  bool operator==(const Step&) const = default;
};

std::ostream& operator<<(std::ostream& out, const Step& step);

/// The same ones for the same seed. They end with kQuiesce.
std::vector<Step> any_steps(std::uint64_t seed, std::size_t count);

/// The shortest list that `fails` finds by leaving steps out of one that does fail.
template <typename Fails>
std::vector<Step> shortest(std::vector<Step> steps, const Fails& fails) {
  for (std::size_t part = steps.size() / 2; part > 0; part /= 2) {
    for (std::size_t from = 0; from + part <= steps.size();) {
      std::vector<Step> fewer = steps;
      const auto begin = fewer.begin() + static_cast<std::ptrdiff_t>(from);
      fewer.erase(begin, begin + static_cast<std::ptrdiff_t>(part));
      if (fails(fewer)) {
        steps = std::move(fewer);
      } else {
        from += part;
      }
    }
  }
  return steps;
}

}  // namespace ka::model
