// SPDX-License-Identifier: Apache-2.0
// VMMs that have ended, by the pods whose they were. A source that names a VMM by its number alone
// may go on doing so: of the same pod that number stands for the process that has ended, whoever
// has it by now.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "policy/facts/process_id.hpp"
#include "policy/ledger/source.hpp"

namespace ka::policy::ledger {

struct EndedVmm {
  ProcessId id;
  Source source = Source::kState;  ///< that reported the pod
  std::uint64_t order = 0;
};

class EndedVmms {
 public:
  using ByPod = std::map<std::string, EndedVmm, std::less<>>;

  /// Sources report within minutes that a pod is gone; what none ever reports makes room for
  /// others.
  static constexpr std::size_t kMost = 1024;

  /// The VMM of a pod has ended. The result: the pod that is forgotten for it; empty: none is.
  std::string record(const std::string& pod, const ProcessId& vmm, Source source);
  /// The pod is gone. False: it had no VMM that ended.
  bool forget(std::string_view pod);

  /// Null: none of the pod has ended, or none that is remembered.
  const EndedVmm* find(std::string_view pod) const;
  /// The process has the number of the pod's VMM that ended, and is another one.
  bool is_successor(std::string_view pod, const ProcessId& process) const;
  const ByPod& all() const { return by_pod_; }

 private:
  std::string forget_oldest();

  ByPod by_pod_;
  std::uint64_t last_ = 0;
};

}  // namespace ka::policy::ledger
