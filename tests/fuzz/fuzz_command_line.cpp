// SPDX-License-Identifier: Apache-2.0
// A VMM's command line, as /proc/PID/cmdline has it: whoever starts a VM chooses its arguments.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/split.hpp"
#include "guest-agent/address/address.hpp"
#include "guest-agent/host/boot.hpp"
#include "tests/fuzz/require.hpp"

using namespace ka;

namespace {

void check(const guest::Address& address) {
  const auto again = guest::parse_address(guest::to_string(address));
  tests::require(again && *again == address);
  (void)guest::kata_agent_beside(address);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  std::vector<std::string> arguments;
  for (const std::string_view part : base::split(bytes, '\0')) arguments.emplace_back(part);
  if (const auto address = guest::address_of(arguments)) check(*address);
  if (const auto address = guest::parse_address(bytes)) check(*address);
  if (const auto address = guest::address_beside(bytes)) check(*address);
  (void)guest::boot_facts(arguments);
  return 0;
}
