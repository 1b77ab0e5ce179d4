// SPDX-License-Identifier: Apache-2.0
#include "guest-agent/agent/kernel.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <span>

namespace ka::agent {
namespace {

constexpr std::size_t kWords = policy::kMaxIds / 64;

}  // namespace

std::optional<policy::GuestCpuSet> Calls::affinity(int tid) const {
  std::array<std::uint64_t, kWords> words{};
  const long size = ::syscall(SYS_sched_getaffinity, tid, sizeof words, words.data());
  if (size < 0) return std::nullopt;
  const std::size_t used = (static_cast<std::size_t>(size) + 7) / 8;
  return policy::GuestCpuSet::from_words(std::span(words).first(used));
}

int Calls::set_affinity(int tid, const policy::GuestCpuSet& cpus) const {
  const auto words = cpus.words();
  const long done =
      ::syscall(SYS_sched_setaffinity, tid, words.size() * sizeof(words[0]), words.data());
  return done == 0 ? 0 : errno;
}

}  // namespace ka::agent
