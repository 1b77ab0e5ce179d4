// SPDX-License-Identifier: Apache-2.0
// The report of verify as text.
#include <fmt/core.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>

#include "affinity/cli/client/daemon.hpp"
#include "affinity/cli/status/describe.hpp"
#include "affinity/messages/terms.hpp"
#include "base/json/lookup.hpp"

namespace ka::cli {
namespace {

namespace json = boost::json;
using messages::counted;

/// A number of `seen` or `known` of a report.
long long extent_of(const json::value& report, const char* whose, const char* what) {
  return number_of(base::member(report, whose), what);
}

/// "3 of 4 threads": what was read, of what there is.
std::string share_of(const json::value& report, const char* what, const char* one,
                     const char* several) {
  const long long known = extent_of(report, "known", what);
  return fmt::format("{} of {} {}", extent_of(report, "seen", what), known,
                     known == 1 ? one : several);
}

/// How much of the node was read.
std::string scope_of(const json::value& report) {
  std::string scope = share_of(report, "threads", "thread", "threads") + " in " +
                      share_of(report, "sandboxes", "sandbox", "sandboxes") + " read";
  if (const long long interrupts = number_of(report, "interrupts"); interrupts > 0) {
    scope = counted(interrupts, "interrupt") + ", " + scope;
  }
  if (const long long released = number_of(report, "released"); released > 0) {
    scope += fmt::format(" ({} released, not checked)", released);
  }
  return scope;
}

/// "no violation found", of what was read. Notes are no findings against anything.
std::string summary_of(const json::value& report) {
  const auto& all = array_of(report, "findings");
  const long long notes = std::ranges::count_if(
      all, [](const json::value& one) { return text_of(one, "severity") == "note"; });
  const std::string remarks = notes == 0 ? "" : ", " + counted(notes, "note");
  const long long findings = static_cast<long long>(all.size()) - notes;
  if (findings > 0) return counted(findings, "finding") + remarks;
  if (extent_of(report, "known", "sandboxes") == 0) return "no sandbox is known" + remarks;
  return "no violation found" + remarks;
}

/// "  violated  I4        s1: emulator may run on CPU 4", and the remedy.
std::string finding_lines(const json::value& finding) {
  const std::string sandbox = text_of(finding, "sandbox");
  const std::string remedy = text_of(finding, "remedy");
  std::string text = fmt::format("  {:<8}  {:<9} {}{}\n", text_of(finding, "severity"),
                                 text_of(finding, "invariant"),
                                 sandbox.empty() ? "" : sandbox + ": ", text_of(finding, "text"));
  return remedy.empty() ? text : text + "            -> " + remedy + '\n';
}

}  // namespace

std::string describe_report(const json::value& report) {
  std::string text =
      verdict_of(report) + ": " + scope_of(report) + ", " + summary_of(report) + '\n';
  for (const json::value& finding : array_of(report, "findings")) text += finding_lines(finding);
  return text;
}

std::string verdict_of(const json::value& report) {
  const std::string verdict = text_of(report, "verdict");
  return verdict.empty() ? "unknown" : verdict;
}

}  // namespace ka::cli
