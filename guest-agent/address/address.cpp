// SPDX-License-Identifier: Apache-2.0
#include "guest-agent/address/address.hpp"

// Before linux/vm_sockets.h, which takes it for granted.
#include <sys/socket.h>

#include <linux/vm_sockets.h>

#include <algorithm>
#include <charconv>

#include "base/text.hpp"

namespace ka::guest {
namespace {

using base::ErrorCode;

std::optional<std::uint32_t> parse_u32(std::string_view text) {
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || text.empty()) {
    return std::nullopt;
  }
  return value;
}

/// Takes ":PORT" off the end, where there is one.
bool read_port(std::string_view& text, std::uint32_t& port) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return true;
  const auto number = parse_u32(text.substr(colon + 1));
  if (!number || *number == 0) return false;
  port = *number;
  text = text.substr(0, colon);
  return true;
}

bool read_vsock(std::string_view text, Address& address) {
  address.kind = Address::Kind::kVsock;
  if (!read_port(text, address.port)) return false;
  const auto cid = parse_u32(text);
  // 0 to 2 are the hypervisor, the local machine and the host: no guest.
  if (!cid || *cid <= VMADDR_CID_HOST || *cid == VMADDR_CID_ANY) return false;
  address.cid = *cid;
  return true;
}

bool read_path(std::string_view text, Address& address) {
  address.path = text;
  return text.starts_with('/') && text.size() > 1 && base::is_printable(text, base::kMaxPath);
}

/// KEY=VALUE of a list "a,KEY=VALUE,b" as QEMU and Cloud Hypervisor write options; empty: none.
std::string_view option(std::string_view list, std::string_view key) {
  while (!list.empty()) {
    const std::string_view part = list.substr(0, list.find(','));
    if (part.starts_with(key) && part.size() > key.size() && part[key.size()] == '=') {
      return part.substr(key.size() + 1);
    }
    list.remove_prefix(std::min(part.size() + 1, list.size()));
  }
  return {};
}

std::optional<Address> find_chardev(const std::vector<std::string>& arguments,
                                    std::string_view id) {
  for (std::size_t i = 0; i + 1 < arguments.size(); ++i) {
    const std::string_view value = arguments[i + 1];
    if (arguments[i] != "-chardev" || !value.starts_with("socket,")) continue;
    if (option(value, "id") != id) continue;
    Address address{.kind = Address::Kind::kSerial};
    if (read_path(option(value, "path"), address)) return address;
  }
  return std::nullopt;
}

std::optional<Address> by_option(std::string_view name, std::string_view value,
                                 const std::vector<std::string>& all) {
  if (name == "-device" && value.starts_with("vhost-vsock-")) {
    Address address;
    if (read_vsock(option(value, "guest-cid"), address)) return address;
  }
  if (name == "-device" && value.starts_with("virtserialport") &&
      option(value, "name") == kSerialPort) {
    return find_chardev(all, option(value, "chardev"));
  }
  if (name == "--vsock") {
    Address address{.kind = Address::Kind::kHybrid};
    if (read_path(option(value, "socket"), address)) return address;
  }
  return std::nullopt;
}

}  // namespace

base::Result<Address> parse_address(std::string_view text) {
  Address address;
  const auto is = [&text](std::string_view scheme) {
    if (!text.starts_with(scheme)) return false;
    text.remove_prefix(scheme.size());
    return true;
  };
  bool good = false;
  const std::string whole(text);
  if (is("vsock://")) {
    good = read_vsock(text, address);
  } else if (is("hvsock://")) {
    address.kind = Address::Kind::kHybrid;
    good = read_port(text, address.port) && read_path(text, address);
  } else if (is("serial://")) {
    address.kind = Address::Kind::kSerial;
    good = read_path(text, address);
  } else if (is("unix://")) {
    address.kind = Address::Kind::kUnix;
    good = read_path(text, address);
  }
  if (good) return address;
  return base::fail(ErrorCode::kInvalid, '"' + whole +
                                             "\" is not an agent address: vsock://CID[:PORT], "
                                             "hvsock:///PATH[:PORT], serial:///PATH or "
                                             "unix:///PATH");
}

std::string to_string(const Address& address) {
  const std::string port = ':' + std::to_string(address.port);
  switch (address.kind) {
    case Address::Kind::kVsock:
      return "vsock://" + std::to_string(address.cid) + port;
    case Address::Kind::kHybrid:
      return "hvsock://" + address.path + port;
    case Address::Kind::kSerial:
      return "serial://" + address.path;
    case Address::Kind::kUnix:
      return "unix://" + address.path;
  }
  return {};
}

std::optional<Address> address_of(const std::vector<std::string>& command_line) {
  for (std::size_t i = 0; i + 1 < command_line.size(); ++i) {
    if (auto found = by_option(command_line[i], command_line[i + 1], command_line)) return found;
  }
  return std::nullopt;
}

std::optional<Address> address_beside(std::string_view kata_agent_url) {
  auto address = parse_address(kata_agent_url);
  if (!address ||
      (address->kind != Address::Kind::kVsock && address->kind != Address::Kind::kHybrid)) {
    return std::nullopt;
  }
  address->port = kPort;
  return *address;
}

std::optional<Address> kata_agent_beside(const Address& ours) {
  // src/agent/src/config.rs of kata-containers: DEFAULT_AGENT_VSOCK_PORT.
  constexpr std::uint32_t kKataPort = 1024;
  if (ours.kind != Address::Kind::kVsock && ours.kind != Address::Kind::kHybrid) {
    return std::nullopt;
  }
  Address address = ours;
  address.port = kKataPort;
  return address;
}

}  // namespace ka::guest
