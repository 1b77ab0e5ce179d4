// SPDX-License-Identifier: Apache-2.0
#include "shim-ext/proxy/orphan.hpp"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <csignal>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "base/files.hpp"
#include "base/pidfd.hpp"
#include "shim-ext/proxy/answer.hpp"
#include "shim-ext/proxy/socket.hpp"

namespace ka::proxy {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kLargestTable = std::size_t{64} << 20;
constexpr unsigned long kListens = 1UL << 16;  // __SO_ACCEPTCON
constexpr int kExitTimeout = 2000;             // milliseconds

std::optional<std::string> own_path(const fs::path& bundle) {
  for (const char* file : {"bootstrap.json", "address"}) {
    const auto text = base::read_regular_file(bundle / file);
    const auto address = text ? address_in(*text) : std::nullopt;
    if (address) return socket_path(*address);
  }
  return std::nullopt;
}

/// "socket:[123]" of the socket that listens at a path (/proc/net/unix: address, references,
/// protocol, flags, type, state, inode, path).
std::string listener_of(const fs::path& proc, const std::string& path) {
  const auto table = base::read_file(proc / "net/unix", kLargestTable);
  if (!table) return {};
  std::istringstream lines(*table);
  for (std::string line; std::getline(lines, line);) {
    if (!line.ends_with(' ' + path)) continue;
    std::istringstream words(line);
    std::string skipped, inode;
    unsigned long flags = 0;
    words >> skipped >> skipped >> skipped >> std::hex >> flags >> skipped >> skipped >> inode;
    if ((flags & kListens) != 0) return "socket:[" + inode + ']';
  }
  return {};
}

bool holds(const fs::path& process, const std::string& socket) {
  const auto descriptors = base::list_directory(process / "fd");
  if (!descriptors) return false;
  for (const std::string& descriptor : *descriptors) {
    const auto link = base::read_link(process / "fd" / descriptor);
    if (link && *link == socket) return true;
  }
  return false;
}

// Held by its descriptor from before the last look, so that no other process can take its number.
void kill_holder(const fs::path& proc, int pid, const std::string& socket) {
  const base::Fd process = base::open_pidfd(pid);
  if (!process || !holds(proc / std::to_string(pid), socket)) return;
  ::syscall(SYS_pidfd_send_signal, process.get(), SIGKILL, nullptr, 0);
  pollfd ended{.fd = process.get(), .events = POLLIN, .revents = 0};
  ::poll(&ended, 1, kExitTimeout);
}

std::vector<int> holders(const fs::path& proc, const std::string& socket) {
  auto processes = base::list_numbers(proc);
  if (socket.empty() || !processes) return {};
  std::erase_if(*processes, [&](int pid) { return !holds(proc / std::to_string(pid), socket); });
  return *processes;
}

/// The real shim does not identify itself: its socket was made by another process than serves it.
void kill_listeners(const fs::path& proc, const std::string& path) {
  const std::string socket = listener_of(proc, path);
  for (const int pid : holders(proc, socket)) kill_holder(proc, pid, socket);
}

}  // namespace

void end_orphan(const fs::path& bundle, const fs::path& proc) {
  const auto own = own_path(bundle);
  const auto shim = own ? shim_path(*own) : std::nullopt;
  if (!shim || is_served(*own, proc)) return;
  kill_listeners(proc, *shim);
  ::unlink(own->c_str());
  if (holders(proc, listener_of(proc, *shim)).empty()) ::unlink(shim->c_str());
}

}  // namespace ka::proxy
