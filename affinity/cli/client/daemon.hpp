// SPDX-License-Identifier: Apache-2.0
// The daemon as a client of its API sees it.
#pragma once

#include <boost/json/fwd.hpp>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.hpp"
#include "base/wait_limit.hpp"

namespace ka::cli {

class Daemon {
 public:
  /// `wait_limit`: for each call; without it http::call()'s own.
  explicit Daemon(std::string socket, std::function<base::WaitLimit()> wait_limit = {})
      : socket_(std::move(socket)), wait_limit_(std::move(wait_limit)) {}

  /// The document that a call is answered with. A refusal is an error with the daemon's message;
  /// kUnavailable: the daemon cannot be reached.
  base::Result<boost::json::object> get(const std::string& target) const;
  base::Result<boost::json::object> post(const std::string& target) const;
  base::Result<boost::json::object> post(const std::string& target,
                                         const boost::json::object& body) const;
  base::Result<boost::json::object> put(const std::string& target,
                                        const boost::json::object& body) const;
  base::Result<boost::json::object> remove(const std::string& target) const;

  /// The process that listens at the socket; absent: none does, or it is not in our namespace.
  std::optional<int> pid() const;

  /// Hands over each event, one line of JSON, until `handle` returns false or the daemon ends.
  base::Result<void> stream_events(const std::function<bool(std::string_view line)>& handle) const;

 private:
  base::Result<boost::json::object> call(const std::string& method, const std::string& target,
                                         const std::string& body) const;

  std::string socket_;
  std::function<base::WaitLimit()> wait_limit_;
};

/// Why the daemon's socket cannot be connected to (`number`: errno), and what to do about it.
std::string connect_advice(const std::string& socket, int number, bool is_root);

/// An id as part of a target: whatever is no letter, digit, "_", "." or "-" is percent-encoded.
std::string encode(std::string_view id);

// A document's members, read leniently: the daemon may be older or newer than this program. What
// is missing or of another type is empty.

std::string text_of(const boost::json::value& object, std::string_view name);
long long number_of(const boost::json::value& object, std::string_view name);
double real_of(const boost::json::value& object, std::string_view name);
bool flag_of(const boost::json::value& object, std::string_view name);
const boost::json::array& array_of(const boost::json::value& object, std::string_view name);

}  // namespace ka::cli
