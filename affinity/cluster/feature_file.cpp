// SPDX-License-Identifier: Apache-2.0
#include "affinity/cluster/feature_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string>
#include <string_view>

#include "affinity/cluster/view/feature_text.hpp"
#include "base/descriptors.hpp"
#include "base/fd.hpp"

namespace ka::cluster {
namespace {

/// Whether it has been removed while it was mounted.
bool is_removed(int file) {
  struct stat status{};
  return ::fstat(file, &status) == 0 && status.st_nlink == 0;
}

bool contains(int file, std::string_view text) {
  std::array<char, 128> buffer{};
  const ssize_t got = ::pread(file, buffer.data(), buffer.size(), 0);
  return got >= 0 && std::string_view(buffer.data(), static_cast<std::size_t>(got)) == text;
}

}  // namespace

/// Without O_TRUNC: nfd-worker would read the file when it becomes empty, and not look at changes
/// within the next second.
base::Result<void> FeatureFile::write(std::optional<NodeState> state) const {
  const base::Fd file = base::open_file(path_, O_RDWR);
  if (!file) return base::fail_errno(errno, path_.string());
  if (is_removed(file.get())) {
    return base::fail(base::ErrorCode::kGone,
                      path_.string() + " was removed from the node: delete this pod");
  }
  const std::string text = feature_text(state);
  if (contains(file.get(), text)) return {};
  const auto size = static_cast<off_t>(text.size());
  if (::pwrite(file.get(), text.data(), text.size(), 0) < 0 || ::ftruncate(file.get(), size) < 0)
    return base::fail_errno(errno, path_.string());
  return {};
}

}  // namespace ka::cluster
