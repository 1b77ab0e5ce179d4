// SPDX-License-Identifier: Apache-2.0
#include "affinity/api/call.hpp"

#include <utility>

#include "base/text.hpp"

namespace ka::api {
namespace {

using base::ErrorCode;

base::Result<std::string> checked_id(const std::string& what, const std::string& text) {
  if (base::is_id(text)) return text;
  return base::fail(ErrorCode::kInvalid,
                    what + " id must be 1 to 128 characters of A-Z, a-z, 0-9, \"_\", \".\", \"-\"");
}

std::string& part_of(Call& call, std::string_view what) {
  if (what == "container") return call.container;
  if (what == "role") return call.role;
  if (what == "cpu") return call.cpu;
  return what == "thread" ? call.thread : call.sandbox;
}

base::Result<void> read_ids(const Pattern& pattern, const Path& path, Call& call) {
  for (std::size_t i = 0; i < pattern.parts.size(); ++i) {
    if (!pattern.parts[i].starts_with(':')) continue;
    const std::string what(pattern.parts[i].substr(1));
    auto id = checked_id(what, path.parts[i]);
    if (!id) return unexpected(id.error());
    part_of(call, what) = std::move(*id);
  }
  return {};
}

base::Result<void> read_source(const std::string& name, Call& call) {
  if (name != policy::ledger::source_name(policy::ledger::Source::kProxy)) {
    return base::fail(ErrorCode::kInvalid, "source: must be \"proxy\"");
  }
  call.source = policy::ledger::Source::kProxy;
  return {};
}

base::Result<void> read_query(const Pattern& pattern, const Path& path, Call& call) {
  for (const auto& [name, value] : path.query) {
    if (name != pattern.query) {
      return base::fail(ErrorCode::kInvalid,
                        "unknown query parameter \"" + base::printable(name) + '"');
    }
    if (name == "source") {
      if (auto done = read_source(value, call); !done) return done;
      continue;
    }
    auto id = checked_id("sandbox", value);
    if (!id) return unexpected(id.error());
    call.only = std::move(*id);
  }
  return {};
}

}  // namespace

bool matches(const Pattern& pattern, const Path& path) {
  if (pattern.parts.size() != path.parts.size()) return false;
  for (std::size_t i = 0; i < pattern.parts.size(); ++i) {
    if (!pattern.parts[i].starts_with(':') && pattern.parts[i] != path.parts[i]) return false;
  }
  return true;
}

base::Result<Call> read_call(const Pattern& pattern, const Path& path,
                             const http::Request& request) {
  Call call{.body = request.body, .peer = request.peer};
  if (const auto ids = read_ids(pattern, path, call); !ids) return unexpected(ids.error());
  if (const auto query = read_query(pattern, path, call); !query) return unexpected(query.error());
  return call;
}

}  // namespace ka::api
