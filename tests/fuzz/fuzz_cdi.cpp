// SPDX-License-Identifier: Apache-2.0
// CDI files of dra-driver-cpu, and the entries of an environment, which a tenant writes.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/text.hpp"
#include "shim-ext/dra/cdi_file.hpp"
#include "shim-ext/watch/claim_entry.hpp"
#include "tests/fuzz/require.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ka;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto claim = dra::parse_cdi_file(text, "u1")) {
    tests::require(claim->uid == "u1" && !claim->cpus.empty());
  }
  if (const auto entry = watch::parse_claim_entry(text)) {
    tests::require(base::is_printable(entry->uid));
  }
  (void)dra::claim_of_name(text);
  return 0;
}
