// SPDX-License-Identifier: Apache-2.0
#include "affinity/cli/selftest/report.hpp"

#include <fmt/format.h>

#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>

namespace ka::cli::selftest {
namespace {

namespace json = boost::json;

json::object to_json(const Finding& finding) {
  return {{"by", witness_name(finding.by)},
          {"level", level_name(finding.level)},
          {"text", finding.text}};
}

json::object to_json(const Step& step) {
  json::array findings;
  for (const Finding& finding : step.findings) findings.push_back(to_json(finding));
  return {{"step", step.text},
          {"began", step.began},
          {"seconds", step.seconds},
          {"findings", std::move(findings)}};
}

std::string step_lines(const Step& step) {
  std::string text =
      fmt::format("\n{:7.1f} s  {} ({:.1f} s)\n", step.began, step.text, step.seconds);
  for (const Finding& one : step.findings) {
    text += fmt::format("           {:<8}  {:<7}  {}\n", level_name(one.level),
                        witness_name(one.by), one.text);
  }
  return text;
}

/// A string as it is, anything else as JSON.
std::string plain(const json::value& value) {
  const auto* text = value.if_string();
  const std::string plain = text == nullptr ? json::serialize(value) : std::string(*text);
  return plain == "[]" || plain == "{}" ? "none" : plain;
}

std::string node_lines(const json::object& node) {
  std::string text;
  for (const auto& [key, value] : node) {
    text += fmt::format("  {:<14} {}\n", std::string_view(key), plain(value));
  }
  return text;
}

}  // namespace

std::string_view verdict_name(Verdict verdict) {
  switch (verdict) {
    case Verdict::kKept:
      return "kept";
    case Verdict::kDegraded:
      return "degraded";
    case Verdict::kViolated:
      return "violated";
    case Verdict::kCannotRun:
      return "cannot-run";
    case Verdict::kInterrupted:
      return "interrupted";
    case Verdict::kCleaned:
      break;
  }
  return "cleaned";
}

Exit exit_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::kViolated:
      return Exit::kNo;
    case Verdict::kCannotRun:
    case Verdict::kInterrupted:
      return Exit::kWrong;
    default:
      return Exit::kDone;
  }
}

json::object to_json(const Report& report) {
  json::array steps;
  for (const Step& step : report.steps) steps.push_back(to_json(step));
  json::object document{{"verdict", verdict_name(report.verdict)},
                        {"reason", report.reason},
                        {"node", report.node},
                        {"steps", std::move(steps)}};
  if (report.demo) document["demo"] = to_json(*report.demo);
  return document;
}

std::string describe(const Report& report) {
  std::string text = fmt::format("self-test: {}{}{}\n\n", verdict_name(report.verdict),
                                 report.reason.empty() ? "" : ": ", report.reason);
  text += node_lines(report.node);
  for (const Step& step : report.steps) text += step_lines(step);
  if (report.demo) text += describe(*report.demo);
  return text;
}

}  // namespace ka::cli::selftest
