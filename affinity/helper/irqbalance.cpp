// SPDX-License-Identifier: Apache-2.0
#include "affinity/helper/irqbalance.hpp"

#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <chrono>

#include "affinity/helper/mask_files.hpp"
#include "base/files.hpp"
#include "base/unix_socket.hpp"

namespace ka::helper {
namespace {

using base::ErrorCode;
using base::Result;
using policy::CpuSet;

constexpr std::chrono::seconds kTimeout{1};
constexpr std::size_t kMostAnswer = 16384;
constexpr std::string_view kBanned = "BANNED ";

base::Error failed(const char* what) {
  if (errno != EAGAIN) return base::system_error(errno, std::string("irqbalance: ") + what);
  return {ErrorCode::kTransient, "irqbalance does not respond yet", EAGAIN};
}

/// It reads a request with one recvmsg(2), and closes the connection after its answer.
Result<std::string> call(const std::filesystem::path& socket, const std::string& request) {
  const auto connected = base::connect_unix(socket, kTimeout);
  if (!connected) return unexpected(connected.error());
  if (::send(connected->get(), request.data(), request.size(), MSG_NOSIGNAL) < 0) {
    return unexpected(failed("send"));
  }
  std::string answer;
  std::array<char, 1024> buffer;
  while (answer.size() < kMostAnswer) {
    const ssize_t size = ::recv(connected->get(), buffer.data(), buffer.size(), 0);
    if (size < 0) return unexpected(failed("recv"));
    if (size == 0) break;
    answer.append(buffer.data(), static_cast<std::size_t>(size));
  }
  return answer;
}

}  // namespace

/// Sockets of those that were killed are left over.
Result<std::vector<HostMask>> Irqbalance::read() const {
  const auto names = base::list_directory(roots_.irqbalance);
  if (!names) return std::vector<HostMask>{};
  const auto possible = read_possible(roots_.sys);
  if (!possible) return unexpected(possible.error());
  std::vector<HostMask> masks;
  for (const std::string& name : *names) {
    auto mask = read_one(name, *possible);
    if (mask)
      masks.push_back(*std::move(mask));
    else if (!is_gone(mask))
      return unexpected(mask.error());
  }
  return masks;
}

Result<HostMask> Irqbalance::read_one(const std::string& name, const CpuSet& possible) const {
  const auto answer = call(roots_.irqbalance / name, "setup");
  if (!answer) return unexpected(answer.error());
  const std::size_t at = answer->rfind(kBanned);
  const auto banned = policy::parse_mask<policy::CpuTag>(
      at == std::string::npos ? "?" : std::string_view(*answer).substr(at + kBanned.size()));
  if (banned) return HostMask{name, "irqbalance", possible - *banned, {}};
  return base::fail(ErrorCode::kInvalid, "irqbalance responds with something other than its setup");
}

/// Without CPUs that are banned it decides itself again.
Result<void> Irqbalance::write(const HostMask& mask, const CpuSet& cpus) const {
  const auto possible = read_possible(roots_.sys);
  if (!possible) return unexpected(possible.error());
  const CpuSet banned = *possible - cpus;
  const std::string list = banned.empty() ? "NULL" : policy::format_list(banned);
  const auto answer = call(roots_.irqbalance / mask.name, "settings cpus " + list);
  return answer ? Result<void>() : unexpected(answer.error());
}

}  // namespace ka::helper
