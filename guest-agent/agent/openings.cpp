// SPDX-License-Identifier: Apache-2.0
#include "guest-agent/agent/openings.hpp"

#include <cstdio>
#include <utility>

namespace ka::agent {

void Openings::add(Open open) {
  Left left{std::move(open), {}};
  if (!is_over(left)) left_.push_back(std::move(left));
}

void Openings::retry() { std::erase_if(left_, is_over); }

bool Openings::is_over(Left& left) {
  const auto done = left.open();
  if (done || done.error().code == base::ErrorCode::kUnavailable) return true;
  const std::string& message = done.error().message;
  if (message != left.printed) std::fprintf(stderr, "kata-affinity-agent: %s\n", message.c_str());
  left.printed = message;
  return done.error().code == base::ErrorCode::kPermission;
}

}  // namespace ka::agent
