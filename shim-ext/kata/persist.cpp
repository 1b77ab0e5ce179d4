// SPDX-License-Identifier: Apache-2.0
#include "shim-ext/kata/persist.hpp"

#include <boost/json/value.hpp>
#include <limits>

#include "base/json/json.hpp"
#include "base/json/lookup.hpp"
#include "base/text.hpp"

namespace ka::kata {
namespace {

namespace json = boost::json;

auto broken(const std::string& what) {
  return base::fail(base::ErrorCode::kInvalid, "persist.json: " + what);
}

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
  pod.pod_name = space.empty() ? name : base::printable(space + '/' + name);
}

base::Result<policy::ledger::ContainerSeen> read_container(const json::value& value,
                                                           const std::string& sandbox) {
  policy::ledger::ContainerSeen seen{.sandbox = sandbox, .id = base::text_at(value, "/ID")};
  const json::value& cpu = base::value_at(value, "/Resources/cpu");
  base::InputError wrong;
  auto cpus = policy::parse_list<policy::CpuTag>(base::strict_text_at(cpu, "/cpus", wrong));
  auto mems = policy::parse_list<policy::NodeTag>(base::strict_text_at(cpu, "/mems", wrong));
  seen.spec.quota = base::strict_number_at(cpu, "/quota", wrong);
  seen.spec.period = base::strict_number_at(cpu, "/period", wrong);
  seen.spec.shares = base::strict_number_at(cpu, "/shares", wrong);
  if (!cpus || !mems) wrong.add("", "has a malformed list of CPUs or NUMA nodes");
  if (!wrong.empty())
    return broken("container " + base::printable(seen.id) + ": " + wrong.error().message);
  seen.spec.name =
      annotation(value, "io.kubernetes.cri.container-name", "io.kubernetes.container.name");
  seen.spec.cpus = std::move(*cpus);
  seen.spec.mems = std::move(*mems);
  return seen;
}

}  // namespace

base::Result<PersistedSandbox> parse_persist(std::string_view text, const std::string& id) {
  const auto root = base::parse_json(text, "persist.json");
  if (!root) return unexpected(root.error());
  PersistedSandbox sandbox;
  sandbox.pod.id = id;
  base::InputError wrong;
  const std::int64_t pid = base::strict_number_at(*root, "/HypervisorState/Pid", wrong);
  if (!wrong.empty()) return broken(wrong.error().message);
  if (pid > 0 && pid <= std::numeric_limits<int>::max()) sandbox.vmm_pid = static_cast<int>(pid);
  for (const json::value& one : base::elements_at(*root, "/Config/ContainerConfigs")) {
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
