// SPDX-License-Identifier: Apache-2.0
#include "shim-ext/kata/persist.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>
#include <limits>

#include "base/json/lookup.hpp"
#include "base/text.hpp"

namespace ka::kata {
namespace {

namespace json = boost::json;
using base::ErrorCode;

/// containerd's annotation, or else CRI-O's.
std::string annotation(const json::value& container, std::string_view containerd,
                       std::string_view crio) {
  const json::value& annotations = base::member(container, "Annotations");
  std::string text = base::printable(base::text_in(base::member(annotations, containerd)));
  return text.empty() ? base::printable(base::text_in(base::member(annotations, crio))) : text;
}

void read_pod(const json::value& container, policy::ledger::PodSeen& pod) {
  pod.pod_uid = annotation(container, "io.kubernetes.cri.sandbox-uid", "io.kubernetes.pod.uid");
  const std::string name =
      annotation(container, "io.kubernetes.cri.sandbox-name", "io.kubernetes.pod.name");
  const std::string space =
      annotation(container, "io.kubernetes.cri.sandbox-namespace", "io.kubernetes.pod.namespace");
  pod.pod_name = space.empty() ? name : space + '/' + name;
}

base::Result<policy::ledger::ContainerSeen> read_container(const json::value& value,
                                                           const std::string& sandbox) {
  policy::ledger::ContainerSeen seen{.sandbox = sandbox, .id = base::text_at(value, "/ID")};
  auto cpus = policy::parse_list<policy::CpuTag>(base::text_at(value, "/Resources/cpu/cpus"));
  auto mems = policy::parse_list<policy::NodeTag>(base::text_at(value, "/Resources/cpu/mems"));
  if (!cpus || !mems) {
    return base::fail(ErrorCode::kInvalid,
                      "persist.json: container " + seen.id + " has a malformed CPU list");
  }
  seen.spec.name =
      annotation(value, "io.kubernetes.cri.container-name", "io.kubernetes.container.name");
  seen.spec.cpus = std::move(*cpus);
  seen.spec.mems = std::move(*mems);
  seen.spec.quota = base::number_at(value, "/Resources/cpu/quota");
  seen.spec.period = base::number_at(value, "/Resources/cpu/period");
  seen.spec.shares = base::number_at(value, "/Resources/cpu/shares");
  return seen;
}

}  // namespace

base::Result<PersistedSandbox> parse_persist(std::string_view text, const std::string& id) {
  boost::system::error_code error;
  const json::value root = json::parse(json::string_view(text.data(), text.size()), error);
  if (error) return base::fail(ErrorCode::kInvalid, "persist.json: " + error.message());
  const json::value& containers = base::value_at(root, "/Config/ContainerConfigs");
  PersistedSandbox sandbox;
  sandbox.pod.id = id;
  const std::int64_t pid = base::number_at(root, "/HypervisorState/Pid");
  if (pid > 0 && pid <= std::numeric_limits<int>::max()) sandbox.vmm_pid = static_cast<int>(pid);
  for (const json::value& one : base::elements_at(containers, "")) {
    if (base::text_at(one, "/ID") == id) {
      read_pod(one, sandbox.pod);
      continue;
    }
    auto seen = read_container(one, id);
    if (!seen) return unexpected(std::move(seen.error()));
    sandbox.containers.push_back(std::move(*seen));
  }
  return sandbox;
}

}  // namespace ka::kata
