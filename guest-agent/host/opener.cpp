// SPDX-License-Identifier: Apache-2.0
#include "guest-agent/host/opener.hpp"

namespace ka::guest {

Opener::Opener(Opening opening, std::uint32_t port) : opening_(opening), port_(port) {}

std::string Opener::first() const {
  switch (opening_) {
    case Opening::kMark:
      return std::string(kLineMark);
    case Opening::kConnect:
      return connect_line(port_);
    case Opening::kNone:
      break;
  }
  return {};
}

bool Opener::consume(std::string_view& bytes) {
  if (opening_ == Opening::kNone) return true;
  if (opening_ == Opening::kConnect) return read_connected(bytes);
  const auto behind = scanner_.find(bytes);
  if (behind) bytes.remove_prefix(*behind);
  return behind.has_value();
}

bool Opener::read_connected(std::string_view& bytes) {
  switch (connect_.consume(bytes)) {
    case ConnectAnswer::State::kMore:
      return false;
    case ConnectAnswer::State::kNonsense:
      failure_ = "no response to CONNECT from the VMM's vsock socket";
      return false;
    case ConnectAnswer::State::kRefused:
      failure_ = "nothing listens on the agent's port in the guest";
      return false;
    case ConnectAnswer::State::kOpen:
      break;
  }
  return true;
}

}  // namespace ka::guest
