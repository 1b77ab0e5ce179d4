// SPDX-License-Identifier: Apache-2.0
// The sources that this node has.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "affinity/daemon/source_table.hpp"

namespace ka::daemon {

/// Must outlive the running of its io_context.
class Sources final : public source::Peers {
 public:
  /// Called with each source that a start waits for.
  using Expect = std::function<void(policy::ledger::Source)>;

  /// Makes the sources of `table`. Those whose reports decide what may be written at a start
  /// report at once; the others after start().
  Sources(std::span<const SourceRegistration> table, const SourceSettings& settings,
          const SourceContext& context, const Expect& expect);

  /// Called once, when the line has adopted what was before.
  void start();
  /// Reports what changed without a notification.
  void refresh();

  /// Asks what is not reported by itself; `answered` is called once, when all have answered or
  /// will not.
  void query_for_verify(std::function<void()> answered);

  void catch_up(const base::Deadline& deadline) override;
  void notify(source::Notice notice) override;

 private:
  std::vector<std::unique_ptr<source::Source>> sources_;
};

}  // namespace ka::daemon
