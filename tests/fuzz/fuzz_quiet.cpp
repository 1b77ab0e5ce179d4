// SPDX-License-Identifier: Apache-2.0
// What kata-affinity-helper responds may hold anything: it runs as root and reports names of
// others. It is refused, or bounded and printable. The first byte chooses the status.
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>

#include "affinity/helper_client/document.hpp"
#include "affinity/partitions/verb.hpp"
#include "affinity/quiet/answer.hpp"
#include "affinity/rdt/verb.hpp"
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

void check_classes(const ka::rdt::State& state) {
  require_clean(state.problem, ka::base::kMaxSentence);
  for (const auto& [name, group] : state.groups) {
    require_clean(group.problem, ka::base::kMaxSentence);
    for (const auto& [tid, problem] : group.threads) {
      require_clean(problem, ka::base::kMaxSentence);
    }
  }
}

void check_partitions(const ka::partitions::State& state) {
  require_clean(state.problem, ka::base::kMaxSentence);
  for (const auto& [vmm, one] : state.partitions) {
    require_clean(one.problem, ka::base::kMaxSentence);
    require_clean(one.not_realtime, ka::base::kMaxSentence);
    require_clean(one.low_power, ka::base::kMaxSentence);
  }
}

void check_state(const ka::policy::QuietState& state) {
  require_clean(state.problem, ka::base::kMaxSentence);
  require(state.kinds.size() <= std::size(ka::policy::kQuietKinds));
  for (const ka::policy::QuietKind& kind : state.kinds) check_kind(kind);
  const auto obstacle = ka::policy::plan::quiet_obstacle(state.cpus, state);
  require(!obstacle || obstacle->reason != ka::policy::plan::NotQuiet::kPending);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ka;
  if (size == 0) return 0;
  constexpr int kStatus[] = {200, 400, 503};
  const int status = kStatus[data[0] % std::size(kStatus)];
  const auto document = helper_client::document_in(
      {.status = status, .body = std::string(reinterpret_cast<const char*>(data + 1), size - 1)});
  require(document.has_value() == (status == 200));
  if (!document) return 0;
  if (const auto state = quiet::read_state(*document)) check_state(*state);
  if (const auto state = rdt::Verb::read(*document)) check_classes(*state);
  if (const auto state = partitions::Verb::read(*document)) check_partitions(*state);
  return 0;
}
