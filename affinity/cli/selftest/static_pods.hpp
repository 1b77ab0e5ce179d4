// SPDX-License-Identifier: Apache-2.0
// The self-test's pods as static pods of kubelet, which assigns their CPUs.
#pragma once

#include "affinity/cli/selftest/kubelet.hpp"
#include "affinity/cli/selftest/launcher.hpp"
#include "affinity/cli/selftest/record.hpp"

namespace ka::cli::selftest {

class StaticPods final : public Launcher {
 public:
  /// `record` outlives it.
  StaticPods(Kubelet kubelet, Record& record);

  Finding::By witness() const override { return Finding::By::kKubelet; }
  base::Result<Assignments> assignments() const override;
  base::Result<void> start(const Pod& pod) override;
  base::Result<void> find_leftovers() override;
  std::vector<std::string> uids() const override;
  base::Result<void> remove() override { return record_.remove_manifests(); }
  base::Result<void> forget() override { return record_.clear(); }

 private:
  Kubelet kubelet_;
  Record& record_;
};

}  // namespace ka::cli::selftest
