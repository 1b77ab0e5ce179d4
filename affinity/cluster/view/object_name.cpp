// SPDX-License-Identifier: Apache-2.0
#include "affinity/cluster/view/object_name.hpp"

#include <algorithm>

namespace ka::cluster {
namespace {

/// Of a DNS subdomain.
constexpr std::size_t kMaxObjectName = 253;

bool may_be_in_name(char letter) {
  return (letter >= 'a' && letter <= 'z') || (letter >= '0' && letter <= '9') || letter == '-' ||
         letter == '.';
}

}  // namespace

bool is_object_name(std::string_view name) {
  return !name.empty() && name.size() <= kMaxObjectName && name.front() != '.' &&
         std::ranges::all_of(name, may_be_in_name);
}

}  // namespace ka::cluster
