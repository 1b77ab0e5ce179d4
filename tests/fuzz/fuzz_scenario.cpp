// SPDX-License-Identifier: Apache-2.0
// What people and programs write for us as JSON: machines and what-if scenarios. A machine that is
// accepted is printed and read back the same.
#include <boost/json/serialize.hpp>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "affinity/documents/scenario.hpp"
#include "affinity/documents/topology.hpp"
#include "base/json/json.hpp"
#include "tests/fuzz/require.hpp"

using ka::tests::require;

namespace {

ka::policy::Topology four_cpus() {
  const auto document = ka::base::parse_json(
      R"({"cpus":[{"cpu":0,"core":0,"socket":0,"numa":0},{"cpu":1,"core":0,"socket":0,"numa":0},
                  {"cpu":2,"core":1,"socket":0,"numa":1},{"cpu":3,"core":1,"socket":0,"numa":1}]})",
      "machine");
  return *ka::documents::topology_from_json(*document);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto document = ka::base::parse_json(text, "input");
  if (!document) return 0;
  if (const auto machine = ka::documents::topology_from_json(*document)) {
    const auto again = ka::documents::topology_from_json(ka::documents::to_json(*machine));
    require(again && *again == *machine);
  }
  (void)ka::documents::scenario_from_json(*document, four_cpus());
  return 0;
}
