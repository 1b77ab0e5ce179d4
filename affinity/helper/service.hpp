// SPDX-License-Identifier: Apache-2.0
// The verb /v1/quiet: POST {"cpus": "4-7"}, with "interrupts": "2-3" for CPUs that only the host's
// interrupts are kept off.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "affinity/helper/admission.hpp"
#include "affinity/helper/keeper.hpp"
#include "affinity/helper/verb.hpp"
#include "policy/facts/quiet.hpp"

namespace ka::helper {

/// The document of the verb: at most 64 masks a kind that are left.
std::string to_text(const State& state);

/// What may change while the helper runs.
struct Environment {
  /// From the configuration as it is now.
  std::function<base::Result<Limits>()> limits;
  /// The machine, where other CPUs are online than these.
  std::function<std::optional<policy::Topology>(const policy::CpuSet& online)> changed_machine;
};

class Service {
 public:
  static constexpr std::string_view kPath = "/v1/quiet";

  /// `keeper` must outlive it.
  Service(Keeper& keeper, policy::Topology machine, Environment environment);

  /// Must not outlive the service.
  Verb verb();
  /// Looks at the host again; CPUs that nobody owns any more are given back.
  void check();
  /// admit() with the machine and the configuration as they are now. No CPUs need nobody's leave.
  base::Result<policy::CpuSet> admit_now(const policy::CpuSet& requested);

 private:
  base::Result<std::string> keep_off(const std::string& body);
  base::Result<void> apply(const policy::QuietRequest& requested);
  policy::CpuSet admitted_interrupts(const policy::QuietRequest& requested);

  Keeper& keeper_;
  policy::Topology machine_;
  Environment environment_;
};

}  // namespace ka::helper
