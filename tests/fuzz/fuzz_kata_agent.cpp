// SPDX-License-Identifier: Apache-2.0
// kata-agent's answers, cut anywhere: the first byte is how the conversation opens and the length
// of the pieces.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.hpp"
#include "guest-agent/host/kata_session.hpp"
#include "tests/fuzz/require.hpp"

using namespace ka;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::size_t piece = std::max<std::size_t>(data[0] / 2U, 1);
  const auto opening = data[0] % 2 == 0 ? guest::Opening::kNone : guest::Opening::kConnect;
  std::string_view rest(reinterpret_cast<const char*>(data + 1), size - 1);
  guest::KataSession session(opening, 1024);
  std::vector<guest::KataAnswer> answers;
  std::string out = session.start();
  session.update("c1", {0}, out);
  session.update("c2", {1}, out);
  while (!rest.empty() && session.receive(rest.substr(0, piece), answers, out)) {
    rest.remove_prefix(std::min(piece, rest.size()));
  }
  // At most one answer a question, in their order, and nothing of the guest's own words.
  tests::require(answers.size() <= 2);
  for (std::size_t i = 0; i < answers.size(); ++i) {
    tests::require(answers[i].container == (i == 0 ? "c1" : "c2"));
  }
  tests::require(base::is_printable(session.failure()));
  return 0;
}
