// SPDX-License-Identifier: Apache-2.0
// A QMP server that says anything, cut anywhere: the first byte is the length of the pieces. What
// the session lets through goes on to those who read QEMU's answers.
#include <algorithm>
#include <boost/json/value.hpp>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "tests/fuzz/require.hpp"
#include "vmm/qmp/answers.hpp"
#include "vmm/qmp/session.hpp"

namespace {

using namespace ka::qmp;

void read(const boost::json::value& answer) {
  const auto cpus = read_cpus(answer);
  const auto slots = read_slots(answer);
  (void)read_iothreads(answer);
  (void)read_apic_id(answer);
  const auto facts =
      compose(cpus.value_or(std::vector<Cpu>{}), slots.value_or(std::vector<Slot>{}), {}, {});
  ka::tests::require(facts.vcpus.size() == (cpus ? cpus->size() : 0));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::size_t piece = std::max<std::size_t>(data[0], 1);
  std::string_view rest(reinterpret_cast<const char*>(data + 1), size - 1);
  Session session;
  while (!rest.empty()) {
    const auto received = session.feed(rest.substr(0, piece));
    if (!received) return 0;
    rest.remove_prefix(std::min(piece, rest.size()));
    for (const News& news : received->news) {
      const auto* answer = std::get_if<Answer>(&news);
      if (answer != nullptr && answer->result) read(*answer->result);
      // One command is under way from here on: an answer to "1" is expected.
      if (std::holds_alternative<Ready>(news)) (void)session.command("query-cpus-fast");
    }
  }
  return 0;
}
