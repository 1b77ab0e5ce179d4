// SPDX-License-Identifier: Apache-2.0
#include "affinity/cli/selftest/static_pods.hpp"

#include <utility>

namespace ka::cli::selftest {

using base::Result;

StaticPods::StaticPods(Kubelet kubelet, Record& record)
    : kubelet_(std::move(kubelet)), record_(record) {}

Result<Assignments> StaticPods::assignments() const { return read_assignments(kubelet_.state); }

Result<void> StaticPods::start(const Pod& pod) { return record_.place(kubelet_.manifests, pod); }

Result<void> StaticPods::find_leftovers() {
  record_.add_leftovers(kubelet_.manifests);
  return {};
}

std::vector<std::string> StaticPods::uids() const {
  std::vector<std::string> found;
  for (const Placed& one : record_.placed()) found.push_back(one.uid);
  return found;
}

}  // namespace ka::cli::selftest
