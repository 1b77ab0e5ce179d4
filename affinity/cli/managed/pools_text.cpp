// SPDX-License-Identifier: Apache-2.0
#include "affinity/cli/managed/pools_text.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/value.hpp>
#include <tuple>
#include <vector>

#include "affinity/cli/client/daemon.hpp"

namespace ka::cli {
namespace {

namespace json = boost::json;

/// A container as a line of the table, and what is said of it below.
struct Row {
  std::string pod, name, use, pool, cpus, remark, problem;
};

std::string or_none(const std::string& cpus) { return cpus.empty() ? "-" : cpus; }

std::string problem_lines(const json::value& container) {
  const std::string problem = text_of(container, "problem");
  if (problem.empty()) return {};
  return fmt::format("  ! {}: {}\n    -> {}\n", problem, text_of(container, "reason"),
                     text_of(container, "remedy"));
}

std::string remark(const json::value& container) {
  std::string text = flag_of(container, "adopted") ? "adopted" : "";
  const std::string mems = text_of(container, "mems");
  if (!mems.empty()) text += (text.empty() ? "" : ", ") + ("memory on nodes " + mems);
  if (flag_of(container, "memory_unbound")) text += "no room for its memory near its CPUs";
  return text;
}

Row to_row(const json::value& container) {
  const std::string pod = text_of(container, "pod_name");
  return {pod.empty() ? text_of(container, "pod") : pod,
          text_of(container, "name"),
          text_of(container, "class"),
          text_of(container, "pool"),
          or_none(text_of(container, "cpus")),
          remark(container),
          problem_lines(container)};
}

std::size_t width_of(const std::vector<Row>& rows, std::string Row::* column) {
  std::size_t width = 0;
  for (const Row& row : rows) width = std::max(width, (row.*column).size());
  return width;
}

std::string without_trailing_blanks(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return line + '\n';
}

std::string pool_line(const json::value& pools, const char* pool, std::size_t width) {
  const auto has = std::ranges::count_if(
      array_of(pools, "containers"),
      [pool](const json::value& container) { return text_of(container, "pool") == pool; });
  return fmt::format("{:<9}  {:<{}}  {}\n", pool, or_none(text_of(pools, pool)), width, has);
}

std::string pools_table(const json::value& pools) {
  constexpr const char* kPools[] = {"exclusive", "shared", "infra"};
  std::size_t width = 4;
  for (const char* pool : kPools) width = std::max(width, text_of(pools, pool).size());
  std::string text = fmt::format("{:<9}  {:<{}}  {}\n", "POOL", "CPUS", width, "CONTAINERS");
  for (const char* pool : kPools) text += pool_line(pools, pool, width);
  return text;
}

std::string notes(const json::value& pools) {
  std::string text =
      fmt::format("\nfree for exclusive containers: {}\nalways shared: {}\n",
                  or_none(text_of(pools, "available")), or_none(text_of(pools, "kept_shared")));
  const std::string outside = text_of(pools, "outside");
  if (!outside.empty()) text += "owned by VMs without NRI: " + outside + '\n';
  const std::string unsaved = text_of(pools, "unsaved");
  return unsaved.empty() ? text : text + "! allocations are not on disk: " + unsaved + '\n';
}

}  // namespace

std::string describe_allocations(const json::array& containers) {
  std::vector<Row> rows;
  for (const json::value& container : containers) rows.push_back(to_row(container));
  std::ranges::sort(rows, {}, [](const Row& row) { return std::tie(row.pod, row.name); });
  rows.insert(rows.begin(), {"POD", "CONTAINER", "CLASS", "POOL", "CPUS", "", ""});
  const std::size_t pod = width_of(rows, &Row::pod), name = width_of(rows, &Row::name);
  const std::size_t use = width_of(rows, &Row::use), pool = width_of(rows, &Row::pool);
  const std::size_t cpus = width_of(rows, &Row::cpus);
  std::string text;
  for (const Row& row : rows) {
    text += without_trailing_blanks(fmt::format("{:<{}}  {:<{}}  {:<{}}  {:<{}}  {:<{}}  {}",
                                                row.pod, pod, row.name, name, row.use, use,
                                                row.pool, pool, row.cpus, cpus, row.remark)) +
            row.problem;
  }
  return text;
}

std::string describe_pools(const json::value& pools) {
  const json::array& containers = array_of(pools, "containers");
  return pools_table(pools) + notes(pools) + '\n' +
         (containers.empty() ? "no containers\n" : describe_allocations(containers));
}

}  // namespace ka::cli
