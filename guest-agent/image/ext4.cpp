// SPDX-License-Identifier: Apache-2.0
// ext4 by e2fsprogs' own debugfs: the file system's authors keep it, nothing is mounted, no right
// is needed, and what a hostile image does to it happens in another process.
#include <fmt/core.h>

#include <string_view>

#include "base/files.hpp"
#include "guest-agent/image/contents.hpp"
#include "guest-agent/image/disk.hpp"
#include "guest-agent/image/program.hpp"
#include "guest-agent/image/work_directory.hpp"

namespace ka::image {
namespace {

namespace fs = std::filesystem;
using base::ErrorCode;
using base::Result;
using Kind = Item::Kind;

/// e2fsprogs finds a file system inside of a file by "?offset=" behind its name; so the name is
/// relative, and never the caller's.
std::string target(const fs::path& image, std::uint64_t offset) {
  return image.filename().native() + "?offset=" + std::to_string(offset);
}

/// One command that only reads.
Result<Ended> run_debugfs(const fs::path& image, std::uint64_t offset, const std::string& command) {
  return run({.words = {"debugfs", "-R", command, target(image, offset)},
              .directory = fs::absolute(image).parent_path(),
              .input = {},
              .most = kMostAgent});
}

Result<void> check(const fs::path& image, std::uint64_t offset) {
  const auto ended = run({.words = {"e2fsck", "-f", "-n", target(image, offset)},
                          .directory = fs::absolute(image).parent_path(),
                          .input = {}});
  if (!ended) return unexpected(ended.error());
  if (ended->status == 0) return {};
  return base::fail(ErrorCode::kInvalid, "its ext4 file system is damaged: e2fsck -fn ends with " +
                                             std::to_string(ended->status));
}

/// debugfs' commands for an item whose data lies in the file `source`.
std::string commands(const Item& item, const std::string& source, int links) {
  const std::string path = '/' + item.path;
  switch (item.kind) {
    case Kind::kDirectory:
      return "mkdir " + path + '\n';
    case Kind::kLink:
      return fmt::format("rm {0}\nsymlink {0} {1}\n", path, item.data);
    case Kind::kHardLink:
      return fmt::format("rm {0}\nln /{1} {0}\n", path, item.data);
    case Kind::kFile:
      break;
  }
  return fmt::format(
      "rm {0}\nwrite {1} {0}\nsif {0} mode 0{2:o}\nsif {0} uid 0\nsif {0} gid 0\n"
      "sif {0} links_count {3}\n",
      path, source, 0100000U | item.mode, links);
}

/// `ln` of debugfs counts nothing, so the count is set where the file is made.
int names_of(const std::vector<Item>& items, const Item& file) {
  int names = 1;
  for (const Item& item : items) {
    if (item.kind == Kind::kHardLink && item.data == file.path) ++names;
  }
  return names;
}

}  // namespace

Result<Contents> read_ext4(const fs::path& image, std::uint64_t offset) {
  if (auto whole = check(image, offset); !whole) return unexpected(whole.error());
  const auto agent = run_debugfs(image, offset, std::string("cat ") + kAgentPath);
  if (!agent) return unexpected(agent.error());
  if (agent->status != 0) {
    return base::fail(ErrorCode::kInvalid, "its ext4 file system cannot be read");
  }
  const auto systemd = run_debugfs(image, offset, "stat /usr/lib/systemd/systemd");
  if (!systemd) return unexpected(systemd.error());
  return Contents{agent_version(agent->out),
                  systemd->out.find("Type: regular") != std::string::npos};
}

Result<void> add_to_ext4(const fs::path& image, std::uint64_t offset, const std::string& agent) {
  if (auto whole = check(image, offset); !whole) return whole;
  const WorkDirectory work(fs::absolute(image).parent_path());
  if (!work.good()) return unexpected(work.error());
  const auto items = files_of_root(agent);
  std::string script;
  for (std::size_t i = 0; i < items.size(); ++i) {
    const std::string source = std::to_string(i);
    if (items[i].kind == Kind::kFile) {
      auto written = base::write_atomically(work.path() / source, items[i].data);
      if (!written) return written;
    }
    script += commands(items[i], work.path().filename() / source, names_of(items, items[i]));
  }
  const auto ended = run({.words = {"debugfs", "-w", "-f", "-", target(image, offset)},
                          .directory = fs::absolute(image).parent_path(),
                          .input = script});
  if (!ended) return unexpected(ended.error());
  // debugfs ends well whatever happened: what counts is what is there afterwards.
  const auto read_back = run_debugfs(image, offset, std::string("cat ") + kAgentPath);
  if (!read_back || read_back->out != agent) {
    return base::fail(ErrorCode::kInvalid, "cannot write the agent: " + ended->input_error());
  }
  return {};
}

}  // namespace ka::image
