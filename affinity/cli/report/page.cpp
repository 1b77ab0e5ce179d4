// SPDX-License-Identifier: Apache-2.0
#include "affinity/cli/report/page.hpp"

#include <fmt/chrono.h>
#include <fmt/core.h>

#include <boost/json/array.hpp>
#include <boost/json/value.hpp>
#include <chrono>
#include <map>
#include <utility>
#include <vector>

#include "affinity/cli/client/daemon.hpp"
#include "affinity/cli/map/map_svg.hpp"
#include "affinity/cli/map/node_map.hpp"

namespace ka::cli {
namespace {

namespace json = boost::json;

constexpr const char* kHead =
    "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
    "<meta http-equiv=\"Content-Security-Policy\" "
    "content=\"default-src 'none'; style-src 'unsafe-inline'\">\n";

constexpr const char* kPageStyle =
    ":root{color-scheme:light dark}"
    "body{font:15px/1.4 sans-serif;margin:1rem;background:#fff;color:#111}"
    "h1,h2,h3{line-height:1.2;overflow-wrap:anywhere}.wide{overflow-x:auto}"
    "table{border-collapse:collapse;margin-bottom:1rem}td,th{border:1px solid #999;padding:.2rem "
    ".5rem;"
    "text-align:left;vertical-align:top;unicode-bidi:isolate}"
    ".verdict{display:inline-block;padding:.3rem .8rem;border:3px solid #b00;font-weight:bold}"
    ".verdict.ok{border-color:#080}.verdict.degraded{border-color:#c80}"
    "@media (prefers-color-scheme:dark){body{background:#0d1117;color:#f0f6fc}}";

using Row = std::vector<std::string>;  ///< cells, not escaped
using ThreadId = std::pair<std::string, long long>;
using Waits = std::map<ThreadId, long long>;  ///< nanoseconds

std::string row_html(const Row& row, const char* cell) {
  std::string html = "<tr>";
  for (const std::string& text : row)
    html += fmt::format("<{0}>{1}</{0}>", cell, escape_html(text));
  return html + "</tr>\n";
}

std::string table(const Row& head, const std::vector<Row>& rows) {
  if (rows.empty()) return "<p>None.</p>\n";
  std::string html = "<div class=\"wide\"><table>\n<thead>" + row_html(head, "th") + "</thead>\n";
  html += "<tbody>\n";
  for (const Row& row : rows) html += row_html(row, "td");
  return html + "</tbody></table></div>\n";
}

std::string verdict_html(const json::value& verify) {
  const std::string verdict = text_of(verify, "verdict");
  std::vector<Row> findings;
  for (const json::value& finding : array_of(verify, "findings")) {
    findings.push_back({text_of(finding, "severity"), text_of(finding, "sandbox"),
                        text_of(finding, "text"), text_of(finding, "remedy")});
  }
  const std::string shown = escape_html(verdict.empty() ? "unknown" : verdict);
  return fmt::format("<h2>Verdict</h2>\n<p class=\"verdict {0}\">{0}</p>\n", shown) +
         table({"severity", "sandbox", "finding", "remedy"}, findings);
}

std::string picture_html(const json::value& node) {
  const std::string svg = draw_svg(read_map(node));
  return "<h2>CPUs</h2>\n<div class=\"wide\">\n" + svg.substr(svg.find("<svg")) + "</div>\n";
}

/// "vCPU 1 on 4, vCPU 2 on 5".
std::string vcpus_of(const json::value& sandbox, const std::string& container) {
  std::string text;
  for (const json::value& vcpu : array_of(sandbox, "vcpus")) {
    if (text_of(vcpu, "container") != container) continue;
    text += fmt::format("{}vCPU {} on {}", text.empty() ? "" : ", ", number_of(vcpu, "index"),
                        text_of(vcpu, "cpus"));
  }
  return text;
}

std::string isolation_of(const json::value& container) {
  if (flag_of(container, "isolated")) return "isolated";
  std::string text;
  for (const json::value& obstacle : array_of(container, "obstacles")) {
    text += (text.empty() ? "NOT isolated: " : "; ") + text_of(obstacle, "text");
  }
  return text.empty() ? "shared" : text;
}

std::string containers_html(const json::value& sandbox) {
  std::vector<Row> rows;
  for (const json::value& container : array_of(sandbox, "containers")) {
    const std::string id = text_of(container, "id"), name = text_of(container, "name");
    rows.push_back({name.empty() ? id : name, text_of(container, "cpus"), vcpus_of(sandbox, id),
                    isolation_of(container)});
  }
  return table({"container", "CPUs", "vCPU to CPU", "isolation"}, rows);
}

Waits waits_of(const json::value& document) {
  Waits waits;
  for (const json::value& thread : array_of(document, "threads")) {
    waits[{text_of(thread, "sandbox"), number_of(thread, "tid")}] =
        number_of(thread, "nanoseconds");
  }
  return waits;
}

std::string wait_text(const Waits& waits, const ThreadId& thread) {
  constexpr double kNanoseconds = 1e9;
  const auto found = waits.find(thread);
  if (found == waits.end()) return "not read";
  return fmt::format("{:.3f} s", static_cast<double>(found->second) / kNanoseconds);
}

std::string threads_html(const json::value& sandbox, const Waits& waits) {
  const std::string id = text_of(sandbox, "id");
  std::vector<Row> rows;
  for (const json::value& thread : array_of(sandbox, "threads")) {
    const long long tid = number_of(thread, "tid");
    rows.push_back({text_of(thread, "role"), text_of(thread, "name"), std::to_string(tid),
                    text_of(thread, "wanted"), text_of(thread, "actual"),
                    flag_of(thread, "drift") ? "not as planned" : "as planned",
                    wait_text(waits, {id, tid})});
  }
  return table({"role", "thread", "tid", "planned CPUs", "actual CPUs", "state", "waited"}, rows);
}

std::string sandboxes_html(const json::value& list, const Waits& waits) {
  std::string html = "<h2>Sandboxes</h2>\n";
  if (array_of(list, "sandboxes").empty()) html += "<p>None.</p>\n";
  for (const json::value& sandbox : array_of(list, "sandboxes")) {
    const std::string pod = text_of(sandbox, "pod_name"), id = text_of(sandbox, "id");
    html += "<h3>" + escape_html(pod.empty() ? id : pod) + "</h3>\n";
    html += "<p>" + escape_html(id) + (flag_of(sandbox, "released") ? ", released" : "") + "</p>\n";
    html += containers_html(sandbox) + threads_html(sandbox, waits);
  }
  return html;
}

std::string drifts_html(const json::value& drifts) {
  std::vector<Row> rows;
  for (const json::value& drift : array_of(drifts, "drifts")) {
    rows.push_back({text_of(drift, "time"), text_of(drift, "sandbox"), text_of(drift, "text")});
  }
  return "<h2>Drift</h2>\n" + table({"time", "sandbox", "drift"}, rows);
}

}  // namespace

std::string escape_html(std::string_view text) {
  std::string html;
  for (const char c : text) {
    switch (c) {
      case '&':
        html += "&amp;";
        break;
      case '<':
        html += "&lt;";
        break;
      case '>':
        html += "&gt;";
        break;
      case '"':
        html += "&quot;";
        break;
      case '\'':
        html += "&#39;";
        break;
      default:
        html += static_cast<unsigned char>(c) < ' ' || c == '\x7f' ? '?' : c;
    }
  }
  return html;
}

std::string draw_page(const ReportData& data) {
  const std::string title = escape_html("kata-affinity on " + data.host);
  const std::string time = fmt::format("{:%Y-%m-%d %H:%M:%S} UTC", fmt::gmtime(data.time));
  return fmt::format(
             "{0}<title>{1}</title>\n<style>{2}</style>\n</head>\n<body>\n<h1>{1}</h1>\n<p>{3}{4}</"
             "p>\n",
             kHead, title, kPageStyle, time,
             flag_of(data.node, "observe") ? "; mode observe: planned, not placed" : "") +
         verdict_html(data.verify) + picture_html(data.node) +
         sandboxes_html(data.list, waits_of(data.waits)) + drifts_html(data.drifts) +
         "</body>\n</html>\n";
}

}  // namespace ka::cli
