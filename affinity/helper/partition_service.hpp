// SPDX-License-Identifier: Apache-2.0
// The verbs /v1/partitions: POST {"partitions": [PARTITION, ...]}
// (affinity/documents/partition.hpp), and /v1/power, of CPUs with partitions and of others.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "affinity/helper/partition_keeper.hpp"
#include "affinity/helper/power_keeper.hpp"
#include "affinity/helper/verb.hpp"
#include "base/result.hpp"
#include "policy/facts/partition.hpp"

namespace ka::helper {

/// More are rejected.
inline constexpr std::size_t kMostPartitions = 1024;
/// Of all partitions together.
inline constexpr std::size_t kMostPartitionVcpus = 8192;

/// The partitions of a request. kInvalid, with the path of what is wrong.
base::Result<std::vector<policy::Partition>> read_partitions(std::string_view body);

class PartitionService {
 public:
  static constexpr std::string_view kPath = "/v1/partitions", kPowerPath = "/v1/power";
  /// Which of these CPUs may be taken from the host: see admit().
  using Admit = std::function<base::Result<policy::CpuSet>(const policy::CpuSet&)>;

  /// `keeper` and `power` must outlive it, and are used through it alone.
  PartitionService(PartitionKeeper& keeper, PowerKeeper& power, Admit admit)
      : keeper_(keeper), power_(power), admit_(std::move(admit)) {}

  /// Must not outlive the service.
  Verb verb();
  /// The verb /v1/power (power_service.hpp).
  Verb power_verb();
  /// Looks at all again; CPUs that may not be taken any more are given back.
  void check();
  /// A VMM has ended. On any thread: it waits for nothing but another call.
  void ended(const policy::ThreadKey& vmm);
  /// All is put back. Returns why not; empty: it is, or will be.
  std::string restore();

  /// PartitionKeeper's, on any thread.
  std::optional<policy::CpuSet> overwritten(const std::string& thread) const;
  void forget_overwritten(const std::string& thread);
  void save_overwritten();

  std::vector<policy::ThreadKey> vmms() const;
  bool holds() const;
  bool is_unfinished() const;

 private:
  base::Result<std::string> keep(const std::string& body);
  base::Result<std::string> request_power(const std::string& body);
  std::vector<policy::Partition> wanted() const;
  base::Result<void> refuse(std::vector<policy::Partition>& partitions);
  base::Result<void> refuse(policy::PowerRequests& requests);
  void keep_power();
  std::string text() const;
  std::string power_text() const;

  PartitionKeeper& keeper_;
  PowerKeeper& power_;
  std::vector<PartitionState> refused_;   ///< of the last request: their CPUs may not be taken
  std::map<int, std::string> unpowered_;  ///< the same of /v1/power, by CPU
  Admit admit_;
  mutable std::mutex mutex_;  ///< of the keepers
};

}  // namespace ka::helper
