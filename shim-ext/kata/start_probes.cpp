// SPDX-License-Identifier: Apache-2.0
#include "shim-ext/kata/start_probes.hpp"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

namespace ka::kata {

StartProbes::StartProbes(boost::asio::io_context& io, const base::Clock& clock,
                         std::function<bool(const std::string& sandbox)> probe)
    : clock_(clock), probe_(std::move(probe)), next_(io, clock) {}

void StartProbes::add(const std::string& sandbox) {
  sandboxes_.try_emplace(sandbox, Entry{clock_.now() + kPauses.front()});
  await_next();
}

/// A probe may add sandboxes.
void StartProbes::probe_due() {
  const auto now = clock_.now();
  std::vector<std::string> due;
  for (const auto& [sandbox, entry] : sandboxes_) {
    if (entry.due <= now) due.push_back(sandbox);
  }
  for (const std::string& sandbox : due) {
    const bool goes_on = probe_(sandbox);
    Entry& entry = sandboxes_.at(sandbox);
    if (goes_on && ++entry.probes < kPauses.size()) {
      entry.due = clock_.now() + kPauses[entry.probes];
    } else {
      sandboxes_.erase(sandbox);
    }
  }
  await_next();
}

void StartProbes::await_next() {
  std::optional<base::Clock::Time> due;
  for (const auto& [sandbox, entry] : sandboxes_)
    due = std::min(due.value_or(entry.due), entry.due);
  if (due) next_.at(*due, [this] { probe_due(); });
}

}  // namespace ka::kata
