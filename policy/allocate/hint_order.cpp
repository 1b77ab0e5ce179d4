// SPDX-License-Identifier: Apache-2.0
#include "policy/allocate/hint_order.hpp"

#include <array>
#include <bit>

namespace ka::policy::allocate {
namespace {

std::vector<int> bits_of(Mask mask) {
  std::vector<int> bits;
  for (; mask != 0; mask &= mask - 1) bits.push_back(std::countr_zero(mask));
  return bits;
}

}  // namespace

Closeness::Closeness(Mask nodes, const std::vector<std::vector<int>>& distances)
    : distances_(&distances), bits_(bits_of(nodes)) {}

std::int64_t Closeness::spread(Mask mask) const {
  std::array<std::size_t, 64> rows;
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

std::optional<Mask> HintOrder::best_of(const std::vector<Mask>& masks) const {
  Best best(*this);
  for (const Mask mask : masks) best.offer(mask);
  return best.mask();
}

bool HintOrder::before(Mask mask, Mask other) const {
  return rank(mask, width_key(mask)) < rank(other, width_key(other));
}

}  // namespace ka::policy::allocate
