// Unix stream sockets of the proxy: non-blocking, not inherited.
#pragma once

#include <sys/types.h>

#include <string>

#include "affinity/base/fd.hpp"
#include "affinity/base/result.hpp"

namespace ka::proxy {

/// Connects at once or not at all. kGone: nobody listens there; kTransient: too many wait there.
base::Result<base::Fd> connect_to(const std::string& path);

/// Listens at `path`, mode 0600, where nothing may be. kConflict: something is there.
base::Result<base::Fd> listen_at(const std::string& path);

/// A file by what it is, not by its name.
struct FileId {
  dev_t device = 0;
  ino_t inode = 0;

  bool operator==(const FileId&) const = default;
};

/// All zero where there is no file.
FileId file_id(const std::string& path);

/// Removes the socket where it still is the one with this id: another may have taken the name.
void remove_socket(const std::string& path, FileId id);

}  // namespace ka::proxy
