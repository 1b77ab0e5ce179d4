// SPDX-License-Identifier: Apache-2.0
#include "affinity/host/capabilities.hpp"

#include <linux/capability.h>

#include <charconv>
#include <cstdint>
#include <string_view>

#include "base/files.hpp"

namespace ka::host {
namespace {

struct Need {
  std::string_view name;
  std::uint64_t any_of;  ///< sets of capabilities as the kernel prints them
  std::string_view unseen;
};

constexpr std::uint64_t bit(unsigned capability) { return std::uint64_t{1} << capability; }

constexpr Need kNeeds[] = {
    {"CAP_SYS_PTRACE", bit(CAP_SYS_PTRACE),
     "descriptors, programs and memory of VMMs of other users or with more capabilities, and the "
     "processes that serve their devices"},
    {"CAP_DAC_READ_SEARCH", bit(CAP_DAC_READ_SEARCH) | bit(CAP_DAC_OVERRIDE),
     "directories of VMMs of other users"}};

/// The set that is in effect (proc(5)).
base::Result<std::uint64_t> effective(const std::filesystem::path& process) {
  constexpr std::string_view kKey = "\nCapEff:\t";
  constexpr int kHex = 16;
  const auto status = base::read_file(process / "status");
  if (!status) return unexpected(status.error());
  std::uint64_t set = 0;
  const auto at = status->find(kKey);
  const char* const end = status->data() + status->size();
  if (at == std::string::npos ||
      std::from_chars(status->data() + at + kKey.size(), end, set, kHex).ec != std::errc()) {
    return base::fail(base::ErrorCode::kInvalid, (process / "status").string() + " has no CapEff");
  }
  return set;
}

}  // namespace

base::Result<std::string> unseen_without_capabilities(const std::filesystem::path& process) {
  const auto set = effective(process);
  if (!set) return unexpected(set.error());
  std::string text;
  for (const Need& need : kNeeds) {
    if ((*set & need.any_of) != 0) continue;
    if (!text.empty()) text += "; ";
    text.append("without ").append(need.name).append(", ").append(need.unseen);
  }
  return text;
}

}  // namespace ka::host
