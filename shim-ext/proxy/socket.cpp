// SPDX-License-Identifier: Apache-2.0
#include "shim-ext/proxy/socket.hpp"

#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.hpp"
#include "base/unix_socket.hpp"

namespace ka::proxy {
namespace {

/// Who called listen(2) last, as this process counts pids; 0 when it does not see that one.
int listener_pid(const base::Fd& connected) {
  ucred peer{};
  socklen_t size = sizeof(peer);
  ::getsockopt(connected.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size);
  return peer.pid;
}

// exit(2) takes the table of descriptors away before it closes the first (kernel/exit.c,
// exit_files).
bool has_descriptors(const std::filesystem::path& proc, int pid) {
  const auto held = base::list_directory(proc / std::to_string(pid) / "fd");
  return held && !held->empty();
}

}  // namespace

base::Result<base::Fd> connect_to(const std::string& path) { return base::connect_unix(path); }

void listen_in_own_name(const base::Fd& listener) {
  // net/unix/af_unix.c, unix_listen: each call takes the caller's credentials anew.
  ::listen(listener.get(), base::kBacklog);
}

bool is_served(const std::string& path, const std::filesystem::path& proc) {
  const auto connected = connect_to(path);
  if (!connected) return connected.error().code == base::ErrorCode::kTransient;
  const int pid = listener_pid(*connected);
  return pid == 0 || has_descriptors(proc, pid);
}

FileId file_id(const std::string& path) {
  struct stat found{};
  if (::lstat(path.c_str(), &found) != 0) return {};
  return {found.st_dev, found.st_ino};
}

void remove_socket(const std::string& path, FileId id) {
  if (id != FileId{} && file_id(path) == id) ::unlink(path.c_str());
}

}  // namespace ka::proxy
