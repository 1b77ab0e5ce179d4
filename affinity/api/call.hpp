// SPDX-License-Identifier: Apache-2.0
// A call of the API, taken apart: what its path, query and body say. What it does is the router's.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "affinity/api/path.hpp"
#include "base/http/message.hpp"
#include "base/result.hpp"
#include "policy/ledger/source.hpp"

namespace ka::api {

/// A call, taken apart.
struct Call {
  std::string sandbox;    ///< where the path names one
  std::string container;  ///< where the path names one
  std::string role;       ///< of threads, where the path names one
  std::string thread;     ///< of that role, where the path names one
  std::string cpu;        ///< where the path names one
  std::string only;       ///< ?id=; empty: all sandboxes
  /// ?source=proxy: the shim proxy reports what containerd asked its shim for. Otherwise the client
  /// is the source.
  policy::ledger::Source source = policy::ledger::Source::kApi;
  std::string_view body;
  std::optional<http::Peer> peer;  ///< who calls, where that is known
};

/// What calls of one kind look like.
struct Pattern {
  std::string_view method;
  /// Parts that begin with ":" are ids.
  std::span<const std::string_view> parts;
  std::string_view query = {};  ///< the key that it understands: "id" or "source"
};

/// Whether the path is one of the pattern's, whatever the method.
bool matches(const Pattern& pattern, const Path& path);

/// Of a path that matches. kInvalid: an id that is none, or a query that it does not understand.
/// The call refers to the body of `request`.
base::Result<Call> read_call(const Pattern& pattern, const Path& path,
                             const http::Request& request);

}  // namespace ka::api
