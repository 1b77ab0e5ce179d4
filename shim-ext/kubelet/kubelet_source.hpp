// SPDX-License-Identifier: Apache-2.0
// kubelet as a source: its cpu_manager_state is the first to report a newly exclusive CPU.
#pragma once

#include <boost/asio/io_context.hpp>
#include <filesystem>
#include <optional>

#include "base/log/log.hpp"
#include "shim-ext/kubelet/kubelet_watch.hpp"
#include "shim-ext/source/node.hpp"
#include "shim-ext/source/source.hpp"

namespace ka::kubelet {

class KubeletSource final : public source::Source {
 public:
  /// Reads the file. `node` and `log` must outlive it.
  KubeletSource(boost::asio::io_context& io, std::filesystem::path file, LastState last,
                source::Node& node, const log::Log& log);

  void start() override {}
  void refresh() override;
  void catch_up(const base::Deadline& deadline) override;

 private:
  std::optional<policy::ledger::KubeletSeen> poll();

  source::Node& node_;
  KubeletWatch watch_;
};

}  // namespace ka::kubelet
