// SPDX-License-Identifier: Apache-2.0
// Configuration files: Kata's, with our table, as an operator or another program wrote them.
#include <cstddef>
#include <cstdint>
#include <string>

#include "affinity/config/check.hpp"
#include "affinity/config/entries.hpp"
#include "base/text.hpp"
#include "tests/fuzz/require.hpp"

using namespace ka;

namespace {

void check_words(const base::Error& error) {
  tests::require(!error.message.empty() &&
                 base::is_printable(error.message, 2 * base::kMaxSentence));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto entries = config::parse_toml(text, "c.toml");
  if (!entries) check_words(entries.error());
  if (entries && *entries) {
    const auto checked = config::check(**entries);
    if (!checked) check_words(checked.error());
    if (checked) (void)config::check_cpus(**entries, policy::CpuSet::range(0, 7));
  }
  (void)config::parse_whole(text, "c.toml");
  return 0;
}
