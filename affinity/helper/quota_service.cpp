// SPDX-License-Identifier: Apache-2.0
#include "affinity/helper/quota_service.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>
#include <set>

#include "affinity/documents/thread.hpp"
#include "affinity/host/cgroup_names.hpp"
#include "base/json/json.hpp"
#include "base/text.hpp"

namespace ka::helper {
namespace {

namespace json = boost::json;
using base::ErrorCode;
using base::Result;
using policy::CpuSet;
using policy::ThreadKey;

/// It is known that the thread's quotas are to stay, and why.
bool is_refusal(const base::Error& error) {
  return is_gone(error) || error.code == ErrorCode::kInvalid || error.code == ErrorCode::kConflict;
}

}  // namespace

Result<std::vector<ThreadKey>> read_quota_threads(std::string_view body) {
  const auto document = base::parse_json(body, "body");
  if (!document) return unexpected(document.error());
  std::vector<ThreadKey> threads;
  std::set<int> seen;
  base::InputError wrong;
  base::Fields fields(*document, "", wrong);
  fields.require({"threads"});
  fields.each("threads", [&](const json::value& value, const std::string& path) {
    if (threads.size() == kMostQuotaThreads) return wrong.add(path, "more than 8192 threads");
    base::Fields thread(value, path, wrong);
    threads.push_back(documents::read_thread(thread));
    thread.finish();
    if (!seen.insert(threads.back().tid).second) wrong.add(path, "is there twice");
  });
  fields.finish();
  if (!wrong.empty()) return unexpected(wrong.error());
  return threads;
}

Verb QuotaService::verb() {
  return {.get =
              [this] {
                keeper_.check();
                return text();
              },
          .post = [this](const std::string& body) { return keep(body); }};
}

Result<std::string> QuotaService::keep(const std::string& body) {
  const auto threads = read_quota_threads(body);
  if (!threads) return unexpected(threads.error());
  std::vector<Row> rows;
  std::set<std::string> cgroups;
  for (const ThreadKey& thread : *threads) {
    auto row = find_cgroups(thread);
    if (!row) return unexpected(row.error());
    cgroups.insert(row->cgroups.begin(), row->cgroups.end());
    rows.push_back(*std::move(row));
  }
  rows_ = std::move(rows);
  keeper_.keep(std::move(cgroups));
  return text();
}

/// One thread that is refused does not keep the others from theirs.
Result<QuotaService::Row> QuotaService::find_cgroups(const ThreadKey& thread) {
  auto way = admitted_way(thread);
  if (way) return Row{thread, *std::move(way), {}};
  if (!is_refusal(way.error())) return unexpected(way.error());
  return Row{thread, {}, way.error().message};
}

/// The kernel knows the thread by its number alone (I9).
Result<std::vector<std::string>> QuotaService::admitted_way(const ThreadKey& thread) {
  auto checked = threads_.check_identity(thread);
  if (checked) checked = check_cpus(thread);
  const auto home = checked ? tree_.home(thread) : unexpected(checked.error());
  if (home) checked = threads_.check_identity(thread);
  if (!home) return unexpected(home.error());
  if (!checked) return unexpected(checked.error());
  auto way = host::way_to_pod(*home);
  if (!way.empty()) return way;
  return base::fail(ErrorCode::kConflict, "it is in no cgroup of a pod of kubelet's");
}

/// Who may run anywhere else has no CPUs of its own.
Result<void> QuotaService::check_cpus(const ThreadKey& thread) {
  const auto cpus = calls_.get(thread.tid);
  const auto admitted = cpus ? admit_(*cpus) : cpus;
  if (!admitted) return unexpected(admitted.error());
  const CpuSet others = *cpus - *admitted;
  if (others.empty()) return {};
  return base::fail(ErrorCode::kConflict, "it may run on CPUs " + policy::format_list(others) +
                                              ", of kubelet's shared pool, or reserved");
}

std::string QuotaService::problem_of(const Row& row) const {
  if (!row.refusal.empty()) return row.refusal;
  for (const std::string& cgroup : row.cgroups) {
    std::string problem = keeper_.problem_of(cgroup);
    if (!problem.empty()) return problem;
  }
  return {};
}

std::string QuotaService::text() const {
  json::array array;
  for (const Row& row : rows_) {
    array.push_back({{"tid", row.thread.tid},
                     {"problem", base::printable(problem_of(row), base::kMaxSentence)}});
  }
  return json::serialize(
             json::object{{"threads", std::move(array)}, {"problem", keeper_.problem()}}) +
         '\n';
}

}  // namespace ka::helper
