// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <boost/json/array.hpp>
#include <boost/json/value.hpp>

#include "affinity/cli/client/daemon.hpp"
#include "affinity/cli/status/describe.hpp"

namespace ka::cli {
namespace {

namespace json = boost::json;

std::string headline(const json::value& cpu) {
  const std::string since = text_of(cpu, "since");
  return fmt::format("CPU {}: {}{}, since {}\n", number_of(cpu, "cpu"), text_of(cpu, "state"),
                     flag_of(cpu, "in_doubt") ? " (in doubt)" : "",
                     since.empty() ? "before the daemon's start" : since);
}

std::string owner_line(const json::value& owner) {
  return fmt::format("  - {} [{}{}]\n", text_of(owner, "text"), text_of(owner, "basis"),
                     flag_of(owner, "in_doubt") ? ", in doubt" : "");
}

std::string report_line(const json::value& report) {
  const std::string time = text_of(report, "time");
  return fmt::format("  {} {} [{}, {}]\n", flag_of(report, "decides") ? '*' : '-',
                     text_of(report, "text"), text_of(report, "source"),
                     time.empty() ? "no report since the start" : time);
}

std::string placed_line(const json::value& placed) {
  const std::string name = text_of(placed, "pod_name");
  return fmt::format("  - {}: {}\n", name.empty() ? text_of(placed, "sandbox") : name,
                     text_of(placed, "text"));
}

std::string section(const char* title, const json::array& rows,
                    std::string (*line)(const json::value&)) {
  std::string text = std::string(title) + '\n';
  for (const json::value& row : rows) text += line(row);
  return rows.empty() ? text + "  none\n" : text;
}

}  // namespace

std::string describe_cpu(const json::value& cpu) {
  return headline(cpu) + section("Owners [by]", array_of(cpu, "owners"), owner_line) +
         section("Reports [source, time], * decides", array_of(cpu, "reports"), report_line) +
         section("Placed here", array_of(cpu, "placed"), placed_line);
}

}  // namespace ka::cli
