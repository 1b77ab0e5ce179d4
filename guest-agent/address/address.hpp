// SPDX-License-Identifier: Apache-2.0
// The address of a guest's agent.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "guest-agent/protocol/limits.hpp"

namespace ka::guest {

struct Address {
  enum class Kind { kVsock, kHybrid, kSerial, kUnix };
  Kind kind = Kind::kVsock;
  std::uint32_t cid = 0;       ///< kVsock
  std::uint32_t port = kPort;  ///< kVsock, kHybrid
  std::string path;            ///< all but kVsock: a unix socket

  bool operator==(const Address&) const = default;
};

/// "vsock://CID[:PORT]", "hvsock:///PATH[:PORT]" (as Kata writes them), "serial:///PATH" (the
/// socket behind a virtio-serial port), "unix:///PATH" (the agent's own socket). kInvalid for
/// others.
base::Result<Address> parse_address(std::string_view text);
std::string to_string(const Address& address);

/// The address in a VMM's command line: QEMU's vhost-vsock device or our virtio-serial port, Cloud
/// Hypervisor's --vsock. Absent if there is none.
std::optional<Address> address_of(const std::vector<std::string>& command_line);

/// Our agent's address, by that of Kata's agent ("/agent-url" of the shim's management socket):
/// the same place, another port. Absent if it is malformed.
std::optional<Address> address_beside(std::string_view kata_agent_url);

/// kata-agent's address, by ours; absent where kata-agent is not to be reached like that.
std::optional<Address> kata_agent_beside(const Address& ours);

}  // namespace ka::guest
