// SPDX-License-Identifier: Apache-2.0
#include "affinity/board/trespasses.hpp"

namespace ka::board {
namespace {

constexpr Trespasses::Durations kNone{{0.0005, 0.001, 0.005, 0.02, 0.05, 0.25, 1.0, 10.0}};

}  // namespace

void Trespasses::record(const std::string& sandbox, const policy::CpuSet& touched,
                        const Cause& cause, Clock::time_point now) {
  const auto known = open_.find(sandbox);
  if (touched.empty()) {
    if (known == open_.end()) return;
    const Cause& began = known->second.cause;
    durations_.try_emplace(began.source, kNone).first->second.add(now - began.since);
    open_.erase(known);
    return;
  }
  Open& open = known == open_.end() ? open_[sandbox] : known->second;
  if (open.cpus.empty()) open.cause = cause;
  const auto fresh = (touched - open.cpus).size();
  if (fresh > 0) cpus_[cause.source] += static_cast<std::uint64_t>(fresh);
  open.cpus = touched;
}

void Trespasses::forget(std::string_view sandbox) {
  if (const auto known = open_.find(sandbox); known != open_.end()) open_.erase(known);
}

int Trespasses::open_cpus() const {
  int sum = 0;
  for (const auto& [sandbox, open] : open_) sum += open.cpus.size();
  return sum;
}

}  // namespace ka::board
