// SPDX-License-Identifier: Apache-2.0
#include "base/log/journal.hpp"

#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/unix_socket.hpp"

namespace ka::log {
namespace {

char name_letter(char c) {
  if (c >= 'a' && c <= 'z') return static_cast<char>(c - 'a' + 'A');
  return (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ? c : '_';
}

/// "NAME=value\n"; a value of several lines has its length before it, in 8 bytes, the lowest first.
void append(std::string& entry, std::string_view name, std::string_view value) {
  std::ranges::transform(name, std::back_inserter(entry), name_letter);
  if (value.find('\n') == std::string_view::npos) {
    entry.append("=").append(value).append("\n");
    return;
  }
  entry += '\n';
  for (std::size_t i = 0, size = value.size(); i < 8; ++i, size >>= 8) {
    entry += static_cast<char>(size & 0xff);
  }
  entry.append(value).append("\n");
}

}  // namespace

bool Journal::is_behind(int fd, const char* journal_stream) {
  struct stat is{};
  if (journal_stream == nullptr || ::fstat(fd, &is) != 0) return false;
  return std::to_string(is.st_dev) + ':' + std::to_string(is.st_ino) == journal_stream;
}

Journal::Journal(std::filesystem::path socket)
    : path_(std::move(socket)),
      socket_(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {}

bool Journal::send(Level level, std::string_view text, Fields fields) const {
  const auto address = base::unix_address(path_);
  if (!address || !socket_) return false;
  const std::string entry = to_entry(level, text, fields);
  const auto* to = reinterpret_cast<const sockaddr*>(&*address);
  return ::sendto(socket_.get(), entry.data(), entry.size(), MSG_NOSIGNAL, to, sizeof *address) ==
         static_cast<ssize_t>(entry.size());
}

std::string to_entry(Level level, std::string_view text, Fields fields) {
  std::string entry;
  append(entry, "MESSAGE", to_line(text, fields));
  append(entry, "PRIORITY", std::string(1, priority_of(level)));
  append(entry, "SYSLOG_IDENTIFIER", "kata-affinityd");
  for (const auto& [name, value] : fields) {
    if (!value.empty()) append(entry, name, value);
  }
  return entry;
}

}  // namespace ka::log
