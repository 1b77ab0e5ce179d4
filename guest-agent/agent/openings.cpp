// SPDX-License-Identifier: Apache-2.0
#include "guest-agent/agent/openings.hpp"

#include <cstdio>
#include <utility>

namespace ka::agent {

void Openings::add(Open open) {
  Left left{std::move(open), {}};
  if (!is_over(left)) left_.push_back(std::move(left));
}

void Openings::add_failed(Open open, const base::Error& failed) {
  Left left{std::move(open), {}};
  print(left, failed);
  left_.push_back(std::move(left));
}

void Openings::retry() { std::erase_if(left_, is_over); }

bool Openings::is_over(Left& left) {
  const auto done = left.open();
  if (done || done.error().code == base::ErrorCode::kUnavailable) return true;
  print(left, done.error());
  return done.error().code == base::ErrorCode::kPermission;
}

void Openings::print(Left& left, const base::Error& failed) {
  if (failed.message == left.printed) return;
  left.printed = failed.message;
  std::fprintf(stderr, "kata-affinity-agent: %s\n", left.printed.c_str());
}

}  // namespace ka::agent
