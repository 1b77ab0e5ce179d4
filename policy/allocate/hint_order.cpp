// SPDX-License-Identifier: Apache-2.0
#include "policy/allocate/hint_order.hpp"

#include <array>
#include <bit>

namespace ka::policy::allocate {
namespace {

constexpr int kMaskBits = 64;

std::vector<int> bits_of(Mask mask) {
  std::vector<int> bits;
  for (; mask != 0; mask &= mask - 1) bits.push_back(std::countr_zero(mask));
  return bits;
}

}  // namespace

Closeness::Closeness(Mask nodes, const std::vector<std::vector<int>>& distances)
    : distances_(&distances), bits_(bits_of(nodes)) {}

std::int64_t Closeness::spread(Mask mask) const {
  std::array<std::size_t, kMaskBits> rows;
  std::size_t count = 0;
  for (std::size_t row = 0; row < bits_.size(); ++row) {
    if ((mask >> bits_[row] & 1) != 0) rows[count++] = row;
  }
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::vector<int>& distances = (*distances_)[rows[i]];
    for (std::size_t j = 0; j < count; ++j) sum += distances[rows[j]];
  }
  return sum;
}

int HintOrder::width_key(Mask mask) const {
  const int count = width(mask);
  if (!best_count) return count;
  return count <= *best_count ? *best_count - count : kMaskBits + count;
}

HintOrder::Rank HintOrder::rank(Mask mask, int key) const {
  return {key, closeness ? closeness->spread(mask) : 0, mask};
}

std::optional<Mask> HintOrder::best_of(const std::vector<Mask>& masks) const {
  Rank best;
  for (const Mask mask : masks) {
    const bool no_better = best.mask != 0 && best.key <= 0 && !closeness && mask > best.mask;
    if (mask == 0 || no_better) continue;
    const int key = width_key(mask);
    if (best.mask != 0 && key > best.key) continue;
    const Rank next = rank(mask, key);
    if (best.mask == 0 || next < best) best = next;
  }
  return best.mask == 0 ? std::nullopt : std::optional(best.mask);
}

bool HintOrder::before(Mask mask, Mask other) const {
  return rank(mask, width_key(mask)) < rank(other, width_key(other));
}

}  // namespace ka::policy::allocate
