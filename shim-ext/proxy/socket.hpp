// SPDX-License-Identifier: Apache-2.0
// The sockets of the proxy and of the real shim, by their paths.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>

#include "base/fd.hpp"
#include "base/result.hpp"

namespace ka::proxy {

/// Connects at once or not at all. kGone: no server listens there; kTransient: its backlog is full.
base::Result<base::Fd> connect_to(const std::string& path);

/// Makes the caller the one whom a listening socket names to those who connect.
void listen_in_own_name(const base::Fd& listener);

/// True when a living process listens at `path` in its own name. One that was killed has closed its
/// connections, in any order, before its listening socket stops to answer.
bool is_served(const std::string& path, const std::filesystem::path& proc);

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
