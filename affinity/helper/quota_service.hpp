// SPDX-License-Identifier: Apache-2.0
// The verb /v1/quotas: POST {"threads": [{"pid": 1, "tid": 2, "start_time": 3}]}: no CFS quota
// stops these threads, from their container's cgroup up to their pod's.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "affinity/helper/cgroup_tree.hpp"
#include "affinity/helper/quota_keeper.hpp"
#include "affinity/helper/verb.hpp"
#include "affinity/helper/vmm_threads.hpp"
#include "affinity/host/affinity_calls.hpp"
#include "base/result.hpp"
#include "policy/facts/id_set.hpp"
#include "policy/facts/sandbox.hpp"

namespace ka::helper {

/// More are rejected.
inline constexpr std::size_t kMostQuotaThreads = 8192;

/// The threads of a request. kInvalid, with the path of what is wrong.
base::Result<std::vector<policy::ThreadKey>> read_quota_threads(std::string_view body);

class QuotaService {
 public:
  static constexpr std::string_view kPath = "/v1/quotas";
  /// Which of these CPUs may be taken from the host: see admit().
  using Admit = std::function<base::Result<policy::CpuSet>(const policy::CpuSet&)>;

  /// `keeper`, `tree` and `calls` must outlive it.
  QuotaService(QuotaKeeper& keeper, const CgroupTree& tree, VmmThreads threads,
               host::AffinityCalls& calls, Admit admit)
      : keeper_(keeper),
        tree_(tree),
        threads_(std::move(threads)),
        calls_(calls),
        admit_(std::move(admit)) {}

  /// Must not outlive the service.
  Verb verb();

 private:
  /// A thread of the last request.
  struct Row {
    policy::ThreadKey thread;
    std::vector<std::string> cgroups;
    std::string refusal;  ///< why its quotas stay; empty: they need not
  };

  base::Result<std::string> keep(const std::string& body);
  base::Result<Row> find_cgroups(const policy::ThreadKey& thread);
  base::Result<std::vector<std::string>> admitted_way(const policy::ThreadKey& thread);
  base::Result<void> check_cpus(const policy::ThreadKey& thread);
  std::string problem_of(const Row& row) const;
  std::string text() const;

  QuotaKeeper& keeper_;
  const CgroupTree& tree_;
  VmmThreads threads_;
  host::AffinityCalls& calls_;
  Admit admit_;
  std::vector<Row> rows_;
};

}  // namespace ka::helper
