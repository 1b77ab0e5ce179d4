// SPDX-License-Identifier: Apache-2.0
// How a connection through a hybrid vsock begins (Firecracker, Cloud Hypervisor: docs/vsock.md):
// "CONNECT <port>\n" to the VMM's unix socket, "OK <number>\n" from it, then the guest's bytes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace ka::guest {

std::string connect_line(std::uint32_t port);

/// Reads the VMM's answer, in whatever pieces it comes.
class ConnectAnswer {
 public:
  enum class State { kMore, kOpen, kRefused, kNonsense };

  /// Takes it off `bytes`; what is left after kOpen is the guest's.
  State consume(std::string_view& bytes);

 private:
  std::string line_;
};

}  // namespace ka::guest
