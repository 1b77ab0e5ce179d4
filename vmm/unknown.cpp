// SPDX-License-Identifier: Apache-2.0
#include "vmm/unknown.hpp"

#include <cstddef>
#include <set>

#include "vmm/procfs/relatives.hpp"
#include "vmm/procfs/thread_names.hpp"

namespace ka::vmm {
namespace {

using policy::Role;

constexpr std::size_t kMostNames = 8;

/// A helper's threads have names of their own: the process's counts.
bool is_unknown(const policy::ThreadFacts& thread, std::string_view vmm_comm) {
  if (thread.role == Role::kEmulator) {
    return thread.name != vmm_comm && !is_known_emulator(thread.name);
  }
  return thread.role == Role::kHelper && thread.key.tid == thread.key.pid &&
         !is_known_helper(thread.name);
}

std::string describe(const policy::ThreadFacts& thread) {
  const bool is_helper = thread.role == Role::kHelper;
  return (is_helper ? "process " : "thread ") + std::to_string(thread.key.tid) + " \"" +
         thread.name + "\" is unknown, and placed as " + (is_helper ? "helper" : "emulator") +
         ": report it as docs/understand/vmms.md (Unknown threads) says";
}

}  // namespace

std::vector<std::string> describe_unknown(const VmmThreads& named, std::string_view vmm_comm) {
  std::vector<std::string> sentences;
  std::set<std::string_view> names;
  for (const policy::ThreadFacts& thread : named.threads) {
    if (names.size() == kMostNames) break;
    if (!is_unknown(thread, vmm_comm) || !names.insert(thread.name).second) continue;
    sentences.push_back(describe(thread));
  }
  return sentences;
}

}  // namespace ka::vmm
