// SPDX-License-Identifier: Apache-2.0
// What kata-affinity-helper responds may hold anything: it runs as root and reports names of
// others. It is refused, or bounded and printable. The first byte chooses the status.
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>

#include "affinity/quiet/answer.hpp"
#include "base/text.hpp"
#include "policy/plan/quiet.hpp"
#include "tests/fuzz/require.hpp"

using ka::tests::require;

namespace {

void require_clean(const std::string& text, std::size_t limit) {
  require(ka::base::is_printable(text, limit));
}

void check_kind(const ka::policy::QuietKind& kind) {
  require(kind.left.size() <= ka::quiet::kMaxLeft);
  require(static_cast<std::size_t>(kind.left_total) >= kind.left.size());
  require_clean(kind.problem, ka::base::kMaxSentence);
  for (const ka::policy::QuietRest& rest : kind.left) {
    require_clean(rest.name, ka::base::kMaxName);
    require_clean(rest.why, ka::base::kMaxSentence);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ka;
  if (size == 0) return 0;
  constexpr int kStatus[] = {200, 400, 503};
  const int status = kStatus[data[0] % std::size(kStatus)];
  const auto state = quiet::read_answer(
      {.status = status, .body = std::string(reinterpret_cast<const char*>(data + 1), size - 1)});
  require(status == 200 || !state);
  if (!state) return 0;
  require_clean(state->problem, base::kMaxSentence);
  require(state->kinds.size() <= std::size(policy::kQuietKinds));
  for (const policy::QuietKind& kind : state->kinds) check_kind(kind);
  const auto obstacle = policy::plan::quiet_obstacle(state->cpus, *state);
  require(!obstacle || obstacle->reason != policy::plan::NotQuiet::kPending);
  return 0;
}
