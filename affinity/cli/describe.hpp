// The daemon's answers for people: each from the document that --json prints.
#pragma once

#include <boost/json/fwd.hpp>
#include <string>

namespace ka::cli {

/// A sandbox of GET /v1/sandboxes: a line about it, its threads as a table, its containers, its
/// warnings.
std::string describe_sandbox(const boost::json::value& sandbox);
/// The table of its threads alone.
std::string describe_threads(const boost::json::value& sandbox);
/// GET /v1/sandboxes.
std::string describe_sandboxes(const boost::json::value& list);
/// GET /v1/explain/ID.
std::string describe_reasons(const boost::json::value& explanation);
/// POST /v1/verify.
std::string describe_report(const boost::json::value& report);
/// What a change did.
std::string describe_outcome(const boost::json::value& outcome);
/// An event: one line.
std::string describe_event(const boost::json::value& event);
/// GET /v1/node.
std::string describe_node(const boost::json::value& node);

/// "1 thread", "2 threads".
std::string counted(long long number, const std::string& what);

}  // namespace ka::cli
