// SPDX-License-Identifier: Apache-2.0
// gRPC's framing of messages, and the text of its status.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace ka::grpc {

/// Whether the message is compressed, and its length as four bytes.
inline constexpr std::size_t kPrefixSize = 5;

std::string frame(std::string_view message);

/// The one message of a unary response. kInvalid: there is none, more than one, or it is compressed
/// (no compression was offered).
base::Result<std::string> unframe(std::string body);

/// grpc-message: UTF-8, with bytes as %XX. For display: unprintable characters are escaped.
std::string decode_status_message(std::string_view text);

}  // namespace ka::grpc
