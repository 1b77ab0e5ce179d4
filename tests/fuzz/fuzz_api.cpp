// SPDX-License-Identifier: Apache-2.0
// Requests of the API before the line sees them: a target on the first line, a body below it.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "affinity/api/path.hpp"
#include "affinity/api/requests.hpp"
#include "tests/fuzz/require.hpp"

using namespace ka;
using tests::require;

namespace {

/// Accepted, or refused with a reason that fits into one line.
void check(const base::Result<policy::ledger::Event>& event) {
  if (event) return;
  require(event.error().code == base::ErrorCode::kInvalid);
  require(!event.error().message.empty());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::size_t end = text.find('\n');
  const auto path = api::parse_target(text.substr(0, end));
  if (path) {
    require(!path->parts.empty());
    for (const std::string& part : path->parts) require(!part.empty());
  }
  if (end == std::string_view::npos) return 0;
  const std::string_view body = text.substr(end + 1);
  check(api::read_sandbox(policy::ledger::Source::kApi, "s1", body));
  check(api::read_container(policy::ledger::Source::kProxy, "s1", "c1", body));
  check(api::read_pin("s1", "vcpu", "1", body, {}));
  return 0;
}
