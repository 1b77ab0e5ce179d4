// SPDX-License-Identifier: Apache-2.0
#include "shim-ext/kata/persist.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>
#include <initializer_list>
#include <limits>

#include "base/text.hpp"

namespace ka::kata {
namespace {

namespace json = boost::json;
using base::ErrorCode;

/// A member at the end of a path; nullptr where there is none.
const json::value* find(const json::value& value, std::initializer_list<std::string_view> path) {
  const json::value* found = &value;
  for (const std::string_view name : path) {
    const json::object* object = found->if_object();
    found = object == nullptr ? nullptr : object->if_contains(name);
    if (found == nullptr) return nullptr;
  }
  return found;
}

std::string text_at(const json::value& value, std::initializer_list<std::string_view> path) {
  const json::value* found = find(value, path);
  return found != nullptr && found->is_string() ? base::printable(found->get_string())
                                                : std::string();
}

std::int64_t number_at(const json::value& value, std::initializer_list<std::string_view> path) {
  const json::value* found = find(value, path);
  boost::system::error_code error;
  const auto number = found == nullptr ? 0 : found->to_number<std::int64_t>(error);
  return error ? 0 : number;
}

/// containerd's annotation, or else CRI-O's.
std::string annotation(const json::value& container, std::string_view containerd,
                       std::string_view crio) {
  std::string text = text_at(container, {"Annotations", containerd});
  return text.empty() ? text_at(container, {"Annotations", crio}) : text;
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
  policy::ledger::ContainerSeen seen{.sandbox = sandbox, .id = text_at(value, {"ID"})};
  auto cpus = policy::parse_list<policy::CpuTag>(text_at(value, {"Resources", "cpu", "cpus"}));
  auto mems = policy::parse_list<policy::NodeTag>(text_at(value, {"Resources", "cpu", "mems"}));
  if (!cpus || !mems) {
    return base::fail(ErrorCode::kInvalid,
                      "persist.json: container " + seen.id + " has a malformed CPU list");
  }
  seen.spec.name =
      annotation(value, "io.kubernetes.cri.container-name", "io.kubernetes.container.name");
  seen.spec.cpus = std::move(*cpus);
  seen.spec.mems = std::move(*mems);
  seen.spec.quota = number_at(value, {"Resources", "cpu", "quota"});
  seen.spec.period = number_at(value, {"Resources", "cpu", "period"});
  seen.spec.shares = number_at(value, {"Resources", "cpu", "shares"});
  return seen;
}

}  // namespace

base::Result<PersistedSandbox> parse_persist(std::string_view text, const std::string& id) {
  boost::system::error_code error;
  const json::value root = json::parse(json::string_view(text.data(), text.size()), error);
  if (error) return base::fail(ErrorCode::kInvalid, "persist.json: " + error.message());
  const json::value* containers = find(root, {"Config", "ContainerConfigs"});
  PersistedSandbox sandbox;
  sandbox.pod.id = id;
  const std::int64_t pid = number_at(root, {"HypervisorState", "Pid"});
  if (pid > 0 && pid <= std::numeric_limits<int>::max()) sandbox.vmm_pid = static_cast<int>(pid);
  if (containers == nullptr || !containers->is_array()) return sandbox;
  for (const json::value& one : containers->get_array()) {
    if (text_at(one, {"ID"}) == id) {
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
