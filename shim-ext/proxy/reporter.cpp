// SPDX-License-Identifier: Apache-2.0
#include "shim-ext/proxy/reporter.hpp"

#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <utility>

namespace ka::proxy {
namespace {

namespace json = boost::json;

// A pod has a few containers; those beyond this are not reported.
constexpr std::size_t kMostContainers = 1024;

// The API takes callers for operators, who override kubelet: this marks the report as the proxy's.
constexpr const char* kOurs = "?source=proxy";

std::string sandbox_path(const Spec& spec) { return "/v1/sandboxes/" + spec.sandbox + kOurs; }

std::string container_path(const Spec& spec, const std::string& container) {
  return "/v1/sandboxes/" + spec.sandbox + "/containers/" + container + kOurs;
}

void put(json::object& object, const char* key, const std::string& value) {
  if (!value.empty()) object[key] = value;
}

Report container_report(const Spec& spec, const std::string& container,
                        const Resources& resources) {
  json::object body;
  put(body, "name", spec.name);
  put(body, "cpus", resources.cpus);
  put(body, "mems", resources.mems);
  if (resources.quota > 0) body["quota"] = resources.quota;
  if (resources.period > 0) body["period"] = resources.period;
  if (resources.shares > 0) body["shares"] = resources.shares;
  return {"PUT", container_path(spec, container), json::serialize(body)};
}

}  // namespace

Reporter::Container* Reporter::find(const std::string& container) {
  const auto found = containers_.find(container);
  return found != containers_.end() ? &found->second : add(container, bundles_ / container);
}

Reporter::Container* Reporter::add(const std::string& container,
                                   const std::filesystem::path& bundle) {
  if (containers_.size() >= kMostContainers && !containers_.contains(container)) return nullptr;
  auto spec = read_spec(bundle, container);
  if (!spec) return nullptr;
  return &containers_.insert_or_assign(container, Container{std::move(*spec), {}}).first->second;
}

/// `vmm_pid` 0: not known yet.
Report Reporter::sandbox_report(const Spec& spec, int vmm_pid) const {
  json::object body;
  if (vmm_pid > 0) body["vmm_pid"] = vmm_pid;
  put(body, "pod_uid", spec.pod_uid);
  put(body, "pod_name", spec.pod_name);
  put(body, "handler", spec.handler);
  if (self_.pid > 0) body["proxy_pid"] = self_.pid;
  put(body, "original_cpus", policy::format_list(self_.original_cpus));
  return {"PUT", sandbox_path(spec), json::serialize(body)};
}

std::vector<Report> Reporter::on_request(const Call& call) {
  if (call.verb == Verb::kCreate) {
    const Container* container = add(call.container, call.bundle);
    if (container == nullptr) return {};
    std::vector<Report> reports{sandbox_report(container->spec, 0)};
    if (!container->spec.is_pause) {
      reports.push_back(
          container_report(container->spec, call.container, container->spec.resources));
    }
    return reports;
  }
  if (call.verb != Verb::kUpdate) return {};
  Container* container = find(call.container);
  if (container == nullptr || container->spec.is_pause) return {};
  const auto wanted = updated(container->spec.resources, call.resources);
  if (!wanted) return {};
  container->wanted = *wanted;
  return {container_report(container->spec, call.container, *wanted)};
}

std::vector<Report> Reporter::on_response(const Call& call, const Response& response) {
  if (call.verb == Verb::kDelete) {
    return response.good ? gone(call.container) : std::vector<Report>();
  }
  if (call.verb == Verb::kCreate && !response.good) return gone(call.container);
  if (call.verb == Verb::kCreate || call.verb == Verb::kStart) return created(call, response);
  Container* container = find(call.container);
  if (container == nullptr || !container->wanted) return {};
  const auto wanted = *std::exchange(container->wanted, std::nullopt);
  if (response.good) container->spec.resources = wanted;
  return {container_report(container->spec, call.container, container->spec.resources)};
}

// Every task of a pod VM has the VMM's pid. runc's have their own, of which the sandbox's counts.
std::vector<Report> Reporter::created(const Call& call, const Response& response) {
  const Container* container = find(call.container);
  if (container == nullptr || !response.good) return {};
  const bool of_sandbox = container->spec.sandbox == call.container;
  std::vector<Report> reports{sandbox_report(container->spec, of_sandbox ? response.pid : 0)};
  if (!container->spec.is_pause) {
    reports.push_back(container_report(container->spec, call.container, container->spec.resources));
  }
  return reports;
}

std::vector<Report> Reporter::gone(const std::string& container) {
  const Container* known = find(container);
  if (known == nullptr) return {};
  const Spec spec = known->spec;
  containers_.erase(container);
  if (spec.sandbox == container) return {{"DELETE", sandbox_path(spec), {}}};
  return {{"DELETE", container_path(spec, container), {}}};
}

}  // namespace ka::proxy
