// SPDX-License-Identifier: Apache-2.0
#include "policy/plan/closeness.hpp"

#include <algorithm>
#include <utility>

namespace ka::policy::plan {
namespace {

/// Replaces ids by their rank; answers how many different ones there are.
std::size_t renumber(std::vector<int>& ids) {
  std::vector<int> sorted = ids;
  std::ranges::sort(sorted);
  sorted.erase(std::ranges::unique(sorted).begin(), sorted.end());
  for (int& id : ids) {
    id = static_cast<int>(std::ranges::lower_bound(sorted, id) - sorted.begin());
  }
  return sorted.size();
}

template <typename Id>
std::vector<int> collect(const std::vector<Seat>& seats, Id id) {
  std::vector<int> ids;
  ids.reserve(seats.size());
  for (const Seat& seat : seats) ids.push_back(id(seat));
  return ids;
}

/// One number for each guest core.
std::vector<int> core_ids(const std::vector<Seat>& seats) {
  std::vector<std::pair<int, int>> cores;
  cores.reserve(seats.size());
  for (const Seat& seat : seats) cores.push_back(guest_core(*seat.vcpu));
  std::ranges::sort(cores);
  return collect(seats, [&](const Seat& seat) {
    return static_cast<int>(std::ranges::lower_bound(cores, guest_core(*seat.vcpu)) -
                            cores.begin());
  });
}

}  // namespace

Overlap::Overlap(std::vector<int> guest, std::vector<int> host)
    : guest_(std::move(guest)), host_(std::move(host)) {
  guests_ = renumber(guest_);
  const std::size_t hosts = renumber(host_);
  matters_ = guests_ < guest_.size() && hosts > 1 && guests_ > 1;
  if (!matters_) return;
  counts_.assign(hosts * guests_, 0);
  for (std::size_t i = 0; i < guest_.size(); ++i) ++count(host_[i], guest_[i]);
}

int Overlap::gain(std::size_t i, std::size_t j) const {
  if (!matters_ || guest_[i] == guest_[j] || host_[i] == host_[j]) return 0;
  const int now = count(host_[i], guest_[i]) - 1 + count(host_[j], guest_[j]) - 1;
  return count(host_[j], guest_[i]) + count(host_[i], guest_[j]) - now;
}

void Overlap::swap(std::size_t i, std::size_t j) {
  if (matters_) {
    --count(host_[i], guest_[i]);
    --count(host_[j], guest_[j]);
    ++count(host_[i], guest_[j]);
    ++count(host_[j], guest_[i]);
  }
  std::swap(guest_[i], guest_[j]);
}

Closeness::Closeness(const std::vector<Seat>& seats)
    : siblings_(core_ids(seats), collect(seats, [](const Seat& s) { return s.cpu->core; })),
      nodes_(collect(seats, [](const Seat& s) { return s.vcpu->numa; }),
             collect(seats, [](const Seat& s) { return s.cpu->numa; })) {}

}  // namespace ka::policy::plan
