// SPDX-License-Identifier: Apache-2.0
// The daemon's responses as text: each from the document that --json prints.
#pragma once

#include <boost/json/fwd.hpp>
#include <cstddef>
#include <string>

namespace ka::cli {

/// A sandbox of GET /v1/sandboxes: a line about it, its threads as a table, its containers, its
/// warnings.
std::string describe_sandbox(const boost::json::value& sandbox);
/// The table of its threads alone.
std::string describe_threads(const boost::json::value& sandbox);
/// GET /v1/sandboxes.
std::string describe_sandboxes(const boost::json::value& list);
/// The same, a line for each sandbox, `columns` wide (80 at least); on request with its legend.
std::string describe_overview(const boost::json::value& list, std::size_t columns, bool legend);
/// The legend of the table of threads.
std::string describe_legend();
/// Of GET /v1/sandboxes, what belongs to no sandbox: other pods, CPUs with several owners, what the
/// start waits for, the sources.
std::string describe_rest(const boost::json::value& list);
/// A line for each source of events that is followed.
std::string describe_sources(const boost::json::value& list);
/// A line for each request of CRI-O's annotations.
std::string describe_tuned(const boost::json::value& list);
/// "as planned", "2 threads NOT as planned".
std::string state_of(const boost::json::value& sandbox);
/// GET /v1/explain/ID.
std::string describe_reasons(const boost::json::value& explanation);
/// GET /v1/explain/cpu/N.
std::string describe_cpu(const boost::json::value& cpu);
/// The verdict of POST /v1/verify; "unknown" where a daemon of another version gives none.
std::string verdict_of(const boost::json::value& report);
/// POST /v1/verify: the verdict, how much was read, and a line for each finding.
std::string describe_report(const boost::json::value& report);
/// The response of POST .../measure: a row for each vCPU, and the histogram of each.
std::string describe_latencies(const boost::json::value& result);
/// An event: one line.
std::string describe_event(const boost::json::value& event);
/// "-" for no CPUs.
std::string or_none(const std::string& cpus);
/// A line for each note, `mark` before it and its source, if any, behind it.
std::string list_notes(const boost::json::array& notes, const char* mark);

}  // namespace ka::cli
