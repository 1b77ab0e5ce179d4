// inotify on the cgroups that matter: a container's appears, goes, or somebody writes its cpuset.
#pragma once

#include <filesystem>
#include <map>
#include <vector>

#include "affinity/base/fd.hpp"

namespace ka::agent {

class TreeWatch {
 public:
  TreeWatch();

  /// Watches these directories and no others. True when one of them was not watched before: nobody
  /// told what was made there until now.
  bool follow(const std::vector<std::filesystem::path>& directories);
  int fd() const { return inotify_.get(); }
  /// Reads all that is there; true when it may concern us.
  bool drain();

 private:
  base::Fd inotify_;
  std::map<std::filesystem::path, int> watches_;
};

}  // namespace ka::agent
