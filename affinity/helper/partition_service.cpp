// SPDX-License-Identifier: Apache-2.0
#include "affinity/helper/partition_service.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>
#include <set>
#include <utility>

#include "affinity/documents/partition.hpp"
#include "affinity/documents/thread.hpp"
#include "affinity/helper/power_service.hpp"
#include "base/json/json.hpp"
#include "base/text.hpp"

namespace ka::helper {
namespace {

namespace json = boost::json;
using base::Result;
using policy::CpuSet;
using policy::Partition;

/// Reads the partitions of one request, in which VMMs and CPUs are unique.
class PartitionReader {
 public:
  explicit PartitionReader(base::InputError& wrong) : wrong_(wrong) {}

  void read(const json::value& value, const std::string& path) {
    if (partitions_.size() == kMostPartitions) return wrong_.add(path, "more than 1024 partitions");
    base::Fields fields(value, path, wrong_);
    Partition partition = documents::read_partition(fields, wrong_);
    fields.finish();
    if (!vmms_.insert(partition.vmm.pid).second) fields.reject("vmm", "is there twice");
    if (partition.cpus.intersects(cpus_)) fields.reject("cpus", "are in another partition, too");
    vcpus_ += partition.vcpus.size();
    if (vcpus_ > kMostPartitionVcpus) fields.reject("vcpus", "more than 8192 in all");
    cpus_ |= partition.cpus;
    partitions_.push_back(std::move(partition));
  }

  std::vector<Partition> release() { return std::move(partitions_); }

 private:
  base::InputError& wrong_;
  std::vector<Partition> partitions_;
  std::set<int> vmms_;
  CpuSet cpus_;
  std::size_t vcpus_ = 0;
};

CpuSet cpus_of(const std::vector<Partition>& partitions) {
  CpuSet cpus;
  for (const Partition& one : partitions) cpus |= one.cpus;
  return cpus;
}

using Reasons = std::vector<std::string>;

/// Why each of these may not be taken; empty: it may. One that may not be must not keep the others
/// from theirs: where that holds for all together, it is one after the other.
Result<Reasons> why_not(const PartitionService::Admit& admit, const std::vector<CpuSet>& sets) {
  const auto in_pool = [](const CpuSet& taken) {
    return taken.empty() ? ""
                         : policy::format_list(taken) + " is of kubelet's shared pool, or reserved";
  };
  CpuSet all, granted;
  for (const CpuSet& one : sets) all |= one;
  const auto together = admit(all);
  Reasons reasons;
  for (const CpuSet& one : sets) {
    const auto admitted = together ? together : admit(granted | one);
    if (!admitted && admitted.error().code != base::ErrorCode::kInvalid) {
      return unexpected(admitted.error());
    }
    reasons.push_back(admitted ? in_pool(one - *admitted) : admitted.error().message);
    if (reasons.back().empty()) granted |= one;
  }
  return reasons;
}

}  // namespace

Result<std::vector<Partition>> read_partitions(std::string_view body) {
  const auto document = base::parse_json(body, "body");
  if (!document) return unexpected(document.error());
  base::InputError wrong;
  PartitionReader reader(wrong);
  base::Fields fields(*document, "", wrong);
  fields.require({"partitions"});
  fields.each("partitions",
              [&](const json::value& value, const std::string& path) { reader.read(value, path); });
  fields.finish();
  if (!wrong.empty()) return unexpected(wrong.error());
  return reader.release();
}

Verb PartitionService::verb() {
  return {.get =
              [this] {
                const std::lock_guard lock(mutex_);
                keeper_.check();
                keep_power();
                return text();
              },
          .post = [this](const std::string& body) { return keep(body); }};
}

Result<std::string> PartitionService::keep(const std::string& body) {
  auto partitions = read_partitions(body);
  if (!partitions) return unexpected(partitions.error());
  if (const auto refused = refuse(*partitions); !refused) return unexpected(refused.error());
  const std::lock_guard lock(mutex_);
  keeper_.keep(*std::move(partitions));
  keep_power();
  return text();
}

Result<void> PartitionService::refuse(std::vector<Partition>& partitions) {
  std::vector<CpuSet> sets;
  for (const Partition& one : partitions) sets.push_back(one.cpus);
  const auto reasons = why_not(admit_, sets);
  if (!reasons) return unexpected(reasons.error());
  refused_.clear();
  std::vector<Partition> admitted;
  for (std::size_t i = 0; i < partitions.size(); ++i) {
    Partition& one = partitions[i];
    if ((*reasons)[i].empty()) {
      admitted.push_back(std::move(one));
    } else {
      refused_.push_back({one.vmm, one.cpus, (*reasons)[i], {}});
    }
  }
  partitions = std::move(admitted);
  return {};
}

Verb PartitionService::power_verb() {
  return {.get =
              [this] {
                const std::lock_guard lock(mutex_);
                power_.check();
                return power_text();
              },
          .post = [this](const std::string& body) { return request_power(body); }};
}

Result<std::string> PartitionService::request_power(const std::string& body) {
  auto requests = read_power(body);
  if (!requests) return unexpected(requests.error());
  if (const auto refused = refuse(*requests); !refused) return unexpected(refused.error());
  const std::lock_guard lock(mutex_);
  power_.request(*std::move(requests));
  return power_text();
}

Result<void> PartitionService::refuse(policy::PowerRequests& requests) {
  std::vector<CpuSet> sets;
  for (const auto& [cpu, request] : requests) sets.push_back({cpu});
  const auto reasons = why_not(admit_, sets);
  if (!reasons) return unexpected(reasons.error());
  unpowered_.clear();
  for (std::size_t i = 0; i < sets.size(); ++i) {
    const int cpu = sets[i].first();
    if ((*reasons)[i].empty()) continue;
    unpowered_[cpu] = (*reasons)[i];
    requests.erase(cpu);
  }
  return {};
}

std::string PartitionService::power_text() const {
  policy::PowerProblems problems;
  for (const auto& [cpu, why] : unpowered_) problems[cpu] = {why, why};
  for (const auto& [cpu, problem] : power_.problems()) {
    if (power_.requested().contains(cpu)) problems[cpu] = problem;
  }
  return helper::power_text(problems, power_.problem());
}

/// Of CPUs that have a partition: nobody else's speed is ours to choose.
void PartitionService::keep_power() {
  CpuSet cpus;
  for (const Partition& one : keeper_.wanted()) {
    if (one.full_power && keeper_.has(one.vmm)) cpus |= one.cpus;
  }
  power_.keep(cpus);
}

std::string PartitionService::text() const {
  json::array array;
  std::vector<PartitionState> states = keeper_.state().partitions;
  states.insert(states.end(), refused_.begin(), refused_.end());
  for (const PartitionState& one : states) {
    array.push_back({{"vmm", documents::to_json(one.vmm)},
                     {"cpus", policy::format_list(one.cpus)},
                     {"problem", base::printable(one.problem, base::kMaxSentence)},
                     {"realtime_problem", base::printable(one.not_realtime, base::kMaxSentence)},
                     {"power_problem", power_.problem_of(one.cpus)},
                     {"undone", keeper_.times_undone(one.vmm)}});
  }
  return json::serialize(
             json::object{{"partitions", std::move(array)}, {"problem", keeper_.state().problem}}) +
         '\n';
}

/// While that cannot be judged, all stays as it is.
void PartitionService::check() {
  const auto admitted = admit_(cpus_of(wanted()));
  auto requests = power_.requested();
  const bool is_known = refuse(requests).has_value();
  const std::lock_guard lock(mutex_);
  if (admitted) {
    keeper_.restrict_to(*admitted);
  } else {
    keeper_.check();
  }
  if (is_known && requests != power_.requested()) power_.request(std::move(requests));
  keep_power();
}

void PartitionService::ended(const policy::ThreadKey& vmm) {
  const std::lock_guard lock(mutex_);
  keeper_.ended(vmm);
  keep_power();
}

std::string PartitionService::restore() {
  const std::lock_guard lock(mutex_);
  keeper_.keep({});
  power_.keep({});
  power_.request({});
  return keeper_.state().problem.empty() ? power_.problem() : keeper_.state().problem;
}

std::optional<CpuSet> PartitionService::overwritten(const std::string& thread) const {
  const std::lock_guard lock(mutex_);
  return keeper_.overwritten(thread);
}

void PartitionService::forget_overwritten(const std::string& thread) {
  const std::lock_guard lock(mutex_);
  keeper_.forget_overwritten(thread);
}

void PartitionService::save_overwritten() {
  const std::lock_guard lock(mutex_);
  keeper_.save_overwritten();
}

std::vector<Partition> PartitionService::wanted() const {
  const std::lock_guard lock(mutex_);
  return keeper_.wanted();
}

std::vector<policy::ThreadKey> PartitionService::vmms() const {
  std::vector<policy::ThreadKey> vmms;
  for (const Partition& one : wanted()) vmms.push_back(one.vmm);
  return vmms;
}

bool PartitionService::holds() const {
  const std::lock_guard lock(mutex_);
  return keeper_.holds() || power_.holds();
}

bool PartitionService::is_unfinished() const {
  const std::lock_guard lock(mutex_);
  return keeper_.is_unfinished();
}

}  // namespace ka::helper
