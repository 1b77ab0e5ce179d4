// SPDX-License-Identifier: Apache-2.0
// Files with each container's CPUs: each container that requests it has a directory on the
// host, which NRI mounts into it, and whose files are kept up to date.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>

#include "affinity/board/feed.hpp"
#include "affinity/line/views.hpp"
#include "base/log/log.hpp"
#include "base/result.hpp"
#include "shim-ext/nri/listener.hpp"

namespace ka::board {
class Board;
}
namespace ka::line {
class Line;
}

namespace ka::containers {

class ContainerFiles {
 public:
  /// Where a container sees its directory. A guest has its own cpus.json at the same place.
  static constexpr std::string_view kSeenAt = "/run/kata-affinity";

  /// Subscribes to the feed of `board`: guests change, and the files of what is gone go too. The
  /// directories are below `directory`; those of an earlier daemon are kept on. `line` and `log`
  /// must outlive it.
  ContainerFiles(std::filesystem::path directory, line::Line& line, board::Board& board,
                 const log::Log& log);

  /// Makes the directory of a container that is about to be created, if it requests one. Returns
  /// what NRI adds to the container; empty without a request, or if there is no directory.
  nri::Adjustment adjust(const nri::CreateRequest& request);

  /// The ledger has all containers that there are: the files of others go.
  void forget_gone();

 private:
  using Texts = std::map<std::string, std::string>;  ///< by the file's name
  using Containers = std::map<std::string, Texts>;   ///< what each has in its files

  void adopt();
  void update(const std::string& sandbox);
  base::Result<void> make_folder(const std::filesystem::path& folder) const;
  void write(const line::SandboxView& view, const std::string& container, Texts& written) const;
  void handle(const board::Notification& notification);
  void forget(const std::string& sandbox, const std::string& container);
  std::filesystem::path folder_of(const std::string& sandbox, const std::string& container) const;

  std::filesystem::path directory_;
  line::Line& line_;
  const log::Log& log_;
  std::map<std::string, Containers> files_;  ///< by sandbox
  board::Subscription changes_, guests_;
};

}  // namespace ka::containers
