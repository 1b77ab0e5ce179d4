// SPDX-License-Identifier: Apache-2.0
// A blocking client of our own API over a unix socket, for programs that do nothing else
// meanwhile.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/http/message.hpp"
#include "base/result.hpp"
#include "base/wait_limit.hpp"

namespace ka::http {

/// Sends a request and waits for its answer, as long as `wait_limit` has it, else 60 s for each
/// part. Of the answer, status and body are filled in. kUnavailable: the connection fails (with its
/// errno), or the answer does not come or ends early (without one).
base::Result<Response> call(const std::filesystem::path& socket, const Request& request,
                            std::optional<base::WaitLimit> wait_limit = std::nullopt);

/// Sends a GET and hands over the lines of the answer one by one (without their ends), for as long
/// as they come and `handle` returns true. An answer that is no stream of lines comes back.
base::Result<Response> stream_lines(const std::filesystem::path& socket, const std::string& target,
                                    const std::function<bool(std::string_view line)>& handle);

}  // namespace ka::http
