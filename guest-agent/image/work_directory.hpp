// SPDX-License-Identifier: Apache-2.0
// A directory for what is made on the way; it disappears with this object.
#pragma once

#include <stdlib.h>

#include <cerrno>
#include <filesystem>
#include <string>

#include "base/result.hpp"

namespace ka::image {

class WorkDirectory {
 public:
  /// In `parent`, so that what is made can be renamed to its place there.
  explicit WorkDirectory(const std::filesystem::path& parent) {
    std::string name = (parent / ".kata-affinity-XXXXXX").native();
    if (::mkdtemp(name.data()) == nullptr) {
      error_ = base::system_error(errno, parent.native());
    } else {
      path_ = name;
    }
  }
  WorkDirectory(const WorkDirectory&) = delete;
  WorkDirectory& operator=(const WorkDirectory&) = delete;
  ~WorkDirectory() {
    std::error_code ignored;
    if (good()) std::filesystem::remove_all(path_, ignored);
  }

  bool good() const { return !path_.empty(); }
  const base::Error& error() const { return error_; }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  base::Error error_;
};

}  // namespace ka::image
