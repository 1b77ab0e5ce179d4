// SPDX-License-Identifier: Apache-2.0
#include "affinity/api/sources.hpp"

#include <boost/json/object.hpp>
#include <map>
#include <string_view>
#include <utility>

#include "base/inotify.hpp"

namespace ka::api {

namespace json = boost::json;

namespace {

using policy::ledger::Source;

/// One of which only is known that it is late: it finds shims, which have no status.
constexpr std::string_view kShims = "shims as they start";

json::object row_of(Source source, bool up, std::string_view text) {
  return {{"source", policy::ledger::source_name(source)}, {"up", up}, {"text", text}};
}

}  // namespace

json::array sources_to_json(const board::Board& board) {
  std::map<Source, json::object> rows;
  for (const auto& [source, view] : board.sources()) {
    rows.emplace(source, row_of(source, view.up, view.text));
  }
  for (const auto& [source, why] : board.late()) {
    json::object& row = rows.emplace(source, row_of(source, true, kShims)).first->second;
    row["late"] = why.message;
    row["remedy"] = base::inotify_remedy(why);
  }
  json::array sources;
  for (auto& [source, row] : rows) sources.push_back(std::move(row));
  return sources;
}

}  // namespace ka::api
