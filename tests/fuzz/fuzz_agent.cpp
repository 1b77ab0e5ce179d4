// SPDX-License-Identifier: Apache-2.0
// A host that says anything to our agent, cut anywhere: the first byte is the length of the pieces.
// The guest has no files; nothing is written.
#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "guest-agent/agent/agent.hpp"
#include "guest-agent/agent/session.hpp"
#include "tests/fuzz/require.hpp"

using namespace ka;

namespace {

constexpr int kTurns = 16;

class NoThreads final : public agent::Calls {
 public:
  std::optional<policy::GuestCpuSet> affinity(int) const override { return std::nullopt; }
  int set_affinity(int, const policy::GuestCpuSet&) const override { return ESRCH; }
};

/// Where no file can be made.
agent::Roots nowhere() { return {"/proc/self/none", "/proc/self/none", "/proc/self/none"}; }

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::size_t piece = std::max<std::size_t>(data[0], 1);
  std::string_view rest(reinterpret_cast<const char*>(data + 1), size - 1);
  const agent::Roots roots = nowhere();
  const NoThreads threads;
  agent::Agent agent(roots, threads);
  const auto before = agent.report().generation;
  agent::Session session(agent);
  std::string out;
  while (!rest.empty() && session.receive(rest.substr(0, piece), out)) {
    rest.remove_prefix(std::min(piece, rest.size()));
    for (int turn = 0; turn < kTurns && agent.run_background(); ++turn) {
    }
    session.notify(out);
  }
  // A host that has not said which versions it speaks has no effect.
  tests::require(session.greeted() || agent.report().generation == before);
  return 0;
}
