// SPDX-License-Identifier: Apache-2.0
// What a shim's `start` prints, and the addresses in it.
//
// containerd takes a plain address, JSON (since 1.7) or a BootstrapResult message (since 2.3):
// parseStartResponse in core/runtime/v2/shim.go. A shim answers in its own form, whatever
// containerd is; we change nothing of it but the address.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace ka::proxy {

/// The address in an answer; absent when it has none that we know how to find.
std::optional<std::string> address_in(std::string_view answer);

/// The same answer with another address in place of its own; as it is where it has none. In JSON
/// and in a message all other content is kept, unknown fields included; blanks may go.
std::string with_address(std::string_view answer, std::string_view other);

/// "/run/…" of "unix:///run/…"; absent for other kinds of address.
std::optional<std::string> socket_path(std::string_view address);
std::string unix_address(std::string_view path);

/// Where the proxy of a shim listens: beside the shim's own socket, so that the other's path can
/// be distinguished from each. Absent when the name would be longer than a socket's may be.
std::optional<std::string> proxy_path(const std::string& shim_path);
/// Absent when the path is none of a proxy.
std::optional<std::string> shim_path(std::string_view proxy_path);

}  // namespace ka::proxy
