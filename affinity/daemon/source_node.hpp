// SPDX-License-Identifier: Apache-2.0
// Line and board, as sources see them.
#pragma once

#include <string>
#include <vector>

#include "base/clock.hpp"
#include "shim-ext/source/node.hpp"

namespace ka::board {
class Board;
}
namespace ka::line {
class Line;
}

namespace ka::daemon {

class SourceNode final : public source::Node {
 public:
  /// All must outlive it.
  SourceNode(line::Line& line, board::Board& board, const base::Clock& clock)
      : line_(line), board_(board), clock_(clock) {}

  void handle(const std::vector<policy::ledger::Event>& events) override;
  void narrow(const std::vector<policy::ledger::Event>& events,
              const base::Deadline& deadline) override;
  void finish(std::string_view sandbox) override;
  void observe(std::string_view sandbox) override;
  void synced(policy::ledger::Source source) override;
  void set_status(policy::ledger::Source source, source::Status status) override;
  void set_late(policy::ledger::Source source, const std::optional<base::Error>& why) override;
  void count_answer(std::chrono::nanoseconds elapsed) override;
  void count_narrowed_shim(const std::string& sandbox, std::chrono::nanoseconds age) override;
  const policy::ledger::Ledger& ledger() const override;
  const policy::Topology& topology() const override;
  bool may_widen() const override;
  std::vector<std::string> sandbox_ids() const override;
  std::optional<source::SandboxState> sandbox(std::string_view id) const override;

 private:
  line::Line& line_;
  board::Board& board_;
  const base::Clock& clock_;
};

}  // namespace ka::daemon
