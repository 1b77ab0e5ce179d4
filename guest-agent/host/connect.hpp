// SPDX-License-Identifier: Apache-2.0
// Connects to a guest's agent.
#pragma once

#include "base/fd.hpp"
#include "base/result.hpp"
#include "guest-agent/address/address.hpp"
#include "guest-agent/host/opener.hpp"

namespace ka::guest {

/// The handshake on a connection to `address` before ttrpc begins.
Opening opening_of(const Address& address);

/// Connects without waiting: the connection may be on its way. kUnavailable, kPermission.
base::Result<base::Fd> connect(const Address& address);

}  // namespace ka::guest
