// SPDX-License-Identifier: Apache-2.0
// The page of `report --html`.
#pragma once

#include <boost/json/object.hpp>
#include <chrono>
#include <string>
#include <string_view>

namespace ka::cli {

/// What the page shows, as the daemon responded.
struct ReportData {
  std::string host;  ///< the node's name
  std::chrono::system_clock::time_point time;
  boost::json::object node;    ///< GET /v1/node
  boost::json::object list;    ///< GET /v1/sandboxes
  boost::json::object verify;  ///< POST /v1/verify
  boost::json::object drifts;  ///< GET /v1/drifts
  boost::json::object waits;   ///< GET /v1/waits
};

/// An HTML document without scripts and without any other resource. Reads the documents leniently:
/// the daemon may be older or newer than this program.
std::string draw_page(const ReportData& data);

/// Text as HTML shows it, also inside a quoted attribute; control characters become "?". Names of
/// pods, containers and threads are chosen by tenants.
std::string escape_html(std::string_view text);

}  // namespace ka::cli
