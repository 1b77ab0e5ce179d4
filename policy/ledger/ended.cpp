// SPDX-License-Identifier: Apache-2.0
#include "policy/ledger/ended.hpp"

#include <algorithm>

namespace ka::policy::ledger {

std::string EndedVmms::record(const std::string& pod, const ProcessId& vmm, Source source) {
  by_pod_.insert_or_assign(pod, EndedVmm{vmm, source, ++last_});
  return by_pod_.size() > kMost ? forget_oldest() : std::string();
}

std::string EndedVmms::forget_oldest() {
  const auto oldest =
      std::ranges::min_element(by_pod_, {}, [](const auto& entry) { return entry.second.order; });
  return by_pod_.extract(oldest).key();
}

bool EndedVmms::forget(std::string_view pod) {
  const auto known = by_pod_.find(pod);
  if (known == by_pod_.end()) return false;
  by_pod_.erase(known);
  return true;
}

const EndedVmm* EndedVmms::find(std::string_view pod) const {
  const auto known = by_pod_.find(pod);
  return known == by_pod_.end() ? nullptr : &known->second;
}

bool EndedVmms::is_successor(std::string_view pod, const ProcessId& process) const {
  const EndedVmm* ended = find(pod);
  return ended != nullptr && ended->id.pid == process.pid && ended->id != process;
}

}  // namespace ka::policy::ledger
