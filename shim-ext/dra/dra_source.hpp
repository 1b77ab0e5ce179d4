// SPDX-License-Identifier: Apache-2.0
// dra-driver-cpu as a source: which CPUs it has prepared for a ResourceClaim, and not yet
// unprepared. Whose a claim is, is in the environment of the container, which NRI reports.
#pragma once

#include <boost/asio/io_context.hpp>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/log/log.hpp"
#include "shim-ext/dra/claim_directory.hpp"
#include "shim-ext/source/node.hpp"
#include "shim-ext/source/source.hpp"
#include "shim-ext/watch/inotify.hpp"

namespace ka::dra {

class DraSource final : public source::Source {
 public:
  /// Reads the directory of CDI files. `node` and `log` must outlive it.
  DraSource(boost::asio::io_context& io, std::filesystem::path directory, source::Node& node,
            const log::Log& log);

  void start() override {}
  void refresh() override;
  void catch_up(const base::Deadline& deadline) override;

 private:
  std::optional<policy::ledger::PreparedSeen> poll();
  void record_problems();
  void set_status(const base::Result<void>& read, const policy::ledger::PreparedSeen& seen);

  std::filesystem::path path_;
  ClaimDirectory directory_;
  source::Node& node_;
  const log::Log& log_;
  watch::Inotify inotify_;
  bool is_absent_ = false;  ///< there was no directory, and one above it is watched
  bool has_status_ = false;
  std::optional<policy::ledger::PreparedSeen> last_;
  std::vector<std::string> problems_;  ///< logged last
};

}  // namespace ka::dra
