// SPDX-License-Identifier: Apache-2.0
// The table of a sandbox's threads.
#include <fmt/core.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <vector>

#include "affinity/cli/client/daemon.hpp"
#include "affinity/cli/status/describe.hpp"
#include "policy/facts/role.hpp"

namespace ka::cli {
namespace {

namespace json = boost::json;

/// One line of the table of threads.
struct Row {
  std::string thread, tid, wanted, actual, remark;
  int more = 0;  ///< further threads of which the same is true
};

const json::value* find_vcpu(const json::value& sandbox, long long index) {
  for (const json::value& vcpu : array_of(sandbox, "vcpus")) {
    if (number_of(vcpu, "index") == index) return &vcpu;
  }
  return nullptr;
}

/// "dedicated to c1", "floating", "floating for c1"
std::string vcpu_role(const json::value& sandbox, long long index) {
  const json::value* vcpu = find_vcpu(sandbox, index);
  if (vcpu == nullptr) return {};
  std::string role = text_of(*vcpu, "role");
  const std::string container = text_of(*vcpu, "container");
  if (container.empty()) return role;
  return role + (role == "dedicated" ? " to " : " for ") + container;
}

std::string remark_of(const json::value& sandbox, const json::value& thread) {
  std::string remark;
  if (flag_of(thread, "drift")) remark = "<- not as planned";
  if (const std::string problem = text_of(thread, "problem"); !problem.empty()) {
    remark = "<- " + problem;
  }
  if (!remark.empty()) return remark;
  if (text_of(thread, "role") == "vcpu") remark = vcpu_role(sandbox, number_of(thread, "vcpu"));
  if (flag_of(thread, "by_hand")) remark += remark.empty() ? "manual pin" : ", manual pin";
  return remark;
}

Row to_row(const json::value& sandbox, const json::value& thread) {
  const std::string role = text_of(thread, "role");
  Row row;
  row.thread = role;
  if (role == "vcpu") row.thread = "vCPU " + std::to_string(number_of(thread, "vcpu"));
  if (role == "iothread") row.thread += ' ' + text_of(thread, "name");
  row.tid = std::to_string(number_of(thread, "tid"));
  row.wanted = or_none(text_of(thread, "wanted"));
  row.actual = or_none(text_of(thread, "actual"));
  row.remark = remark_of(sandbox, thread);
  return row;
}

/// Where a role is shown; last one that a newer daemon has.
int rank_of(std::string_view name) {
  const auto* found = std::ranges::find(policy::kRoles, name, &policy::RoleInfo::name);
  return found == std::end(policy::kRoles) ? static_cast<int>(std::size(policy::kRoles))
                                           : found->rank;
}

/// vCPUs by their index, the others by tid; threads of which the same is true in one row.
std::vector<Row> rows_of(const json::value& sandbox) {
  std::vector<const json::value*> threads;
  for (const json::value& thread : array_of(sandbox, "threads")) threads.push_back(&thread);
  const auto rank = [](const json::value* thread) {
    return std::pair(rank_of(text_of(*thread, "role")), number_of(*thread, "vcpu"));
  };
  std::ranges::stable_sort(threads, {}, rank);
  std::vector<Row> rows;
  for (const json::value* thread : threads) {
    Row row = to_row(sandbox, *thread);
    Row* last = rows.empty() ? nullptr : &rows.back();
    if (last != nullptr && last->thread == row.thread && last->wanted == row.wanted &&
        last->actual == row.actual && last->remark == row.remark) {
      ++last->more;
    } else {
      rows.push_back(std::move(row));
    }
  }
  return rows;
}

std::size_t width_of(const std::vector<Row>& rows, std::string Row::* column, std::size_t least) {
  for (const Row& row : rows) least = std::max(least, (row.*column).size());
  return least;
}

}  // namespace

std::string describe_threads(const json::value& sandbox) {
  std::vector<Row> rows = rows_of(sandbox);
  if (rows.empty()) return {};
  for (Row& row : rows) {
    if (row.more > 0) row.tid += fmt::format(" +{}", row.more);
  }
  rows.insert(rows.begin(), {"THREAD", "TID", "WANTED", "ACTUAL", "", 0});
  const std::size_t thread = width_of(rows, &Row::thread, 12);
  const std::size_t tid = width_of(rows, &Row::tid, 9);
  const std::size_t wanted = width_of(rows, &Row::wanted, 10);
  const std::size_t actual = width_of(rows, &Row::actual, 10);
  std::string text;
  for (const Row& row : rows) {
    std::string line =
        fmt::format("  {:<{}}  {:<{}}  {:<{}}  {:<{}}  {}", row.thread, thread, row.tid, tid,
                    row.wanted, wanted, row.actual, actual, row.remark);
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + '\n';
  }
  return text;
}

}  // namespace ka::cli
