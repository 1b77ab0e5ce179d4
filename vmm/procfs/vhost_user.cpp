// SPDX-License-Identifier: Apache-2.0
#include "vmm/procfs/vhost_user.hpp"

#include <linux/magic.h>
#include <sys/socket.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>

#include "base/files.hpp"
#include "base/pidfd.hpp"
#include "vmm/procfs/words.hpp"

namespace ka::vmm {
namespace {

constexpr std::size_t kMostPeers = 64;
constexpr std::size_t kMostMaps = 8u << 20;  ///< bytes

// glibc has no pidfd_getfd before 2.36, which declares it without extern "C".
base::Fd copy_descriptor(int pidfd, int number) {
  return base::Fd(static_cast<int>(::syscall(SYS_pidfd_getfd, pidfd, number, 0)));
}

/// A descriptor that was closed meanwhile (EBADF) and a kernel without the call are not errors.
void record_errno(base::Trouble& trouble) {
  if (errno == EBADF || errno == ENOSYS || errno == EINVAL) return;
  trouble.record(base::system_error(errno, "sockets of a VMM"));
}

bool is_procfs(const std::filesystem::path& proc) {
  struct statfs status{};
  return ::statfs(proc.c_str(), &status) == 0 && status.f_type == PROC_SUPER_MAGIC;
}

/// 0 for a socket that is no unix socket or not connected.
int peer_of(int socket) {
  ucred peer{};
  socklen_t size = sizeof peer;
  int domain = 0;
  socklen_t domain_size = sizeof domain;
  if (::getsockopt(socket, SOL_SOCKET, SO_DOMAIN, &domain, &domain_size) != 0) return 0;
  if (domain != AF_UNIX || ::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) {
    return 0;
  }
  return peer.pid;
}

/// "7f00-7f10 rw-s 00000000 00:01 1029 /memfd:ram (deleted)"
std::optional<std::string> shared_file(std::string_view line) {
  next_word(line);
  const std::string_view rights = next_word(line);
  next_word(line);
  const std::string_view device = next_word(line), inode = next_word(line);
  const std::string_view path = next_word(line);
  if (rights != "rw-s" || inode == "0" || !path.starts_with('/')) return std::nullopt;
  return std::string(device) + ' ' + std::string(inode);
}

std::set<std::string> shared_files_of(const std::filesystem::path& proc, int pid,
                                      base::Trouble& trouble) {
  const auto maps = base::read_file(proc / std::to_string(pid) / "maps", kMostMaps);
  trouble.record(maps);
  return maps ? shared_files(*maps) : std::set<std::string>{};
}

}  // namespace

std::vector<int> unix_peers(const std::filesystem::path& proc, int pid,
                            std::span<const int> descriptors, base::Trouble& trouble) {
  if (descriptors.empty() || !is_procfs(proc)) return {};
  const base::Fd process = base::open_pidfd(pid);
  if (!process) {
    record_errno(trouble);
    return {};
  }
  std::set<int> peers;
  for (const int number : descriptors) {
    const base::Fd copy = copy_descriptor(process.get(), number);
    if (!copy) record_errno(trouble);
    const int peer = copy ? peer_of(copy.get()) : 0;
    if (peer > 0 && peer != pid) peers.insert(peer);
    if (peers.size() <= kMostPeers) continue;
    trouble.record_left_out("more than " + std::to_string(kMostPeers) +
                            " processes are connected to the VMM");
    peers.erase(std::prev(peers.end()));
    break;
  }
  return {peers.begin(), peers.end()};
}

std::set<std::string> shared_files(std::string_view maps) {
  std::set<std::string> files;
  while (!maps.empty()) {
    const std::string_view line = maps.substr(0, maps.find('\n'));
    if (auto file = shared_file(line)) files.insert(std::move(*file));
    maps.remove_prefix(std::min(line.size() + 1, maps.size()));
  }
  return files;
}

std::vector<int> back_ends(const std::filesystem::path& proc, int vmm, std::span<const int> peers,
                           base::Trouble& trouble) {
  if (peers.empty()) return {};
  const std::set<std::string> memory = shared_files_of(proc, vmm, trouble);
  std::vector<int> found;
  if (memory.empty()) return found;
  for (const int peer : peers) {
    const auto files = shared_files_of(proc, peer, trouble);
    const bool shares =
        std::ranges::any_of(files, [&](const std::string& file) { return memory.contains(file); });
    if (shares) found.push_back(peer);
  }
  return found;
}

}  // namespace ka::vmm
