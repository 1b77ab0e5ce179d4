// SPDX-License-Identifier: Apache-2.0
#include "base/log/limiter.hpp"

#include <algorithm>
#include <utility>

namespace ka::log {
namespace {

/// More keys than this are not kept: those that have been quiet are forgotten.
constexpr std::size_t kMostKeys = 4096;

}  // namespace

Limiter::Limiter(int burst, std::chrono::seconds refill) : burst_(burst), refill_(refill) {}

std::optional<std::uint64_t> Limiter::admit(const std::string& key, Time now) {
  if (buckets_.size() >= kMostKeys && !buckets_.contains(key)) drop_idle(now);
  Bucket& bucket = buckets_.try_emplace(key, Bucket{burst_, now}).first->second;
  bucket.lines = std::min(burst_, bucket.lines + (now - bucket.filled) / refill_);
  bucket.filled = now;
  if (bucket.lines < 1) {
    ++bucket.left_out;
    return std::nullopt;
  }
  --bucket.lines;
  return std::exchange(bucket.left_out, 0);
}

void Limiter::drop_idle(Time now) {
  std::erase_if(buckets_, [&](const auto& entry) {
    return entry.second.lines + (now - entry.second.filled) / refill_ >= burst_;
  });
  if (buckets_.size() >= kMostKeys) buckets_.clear();
}

}  // namespace ka::log
