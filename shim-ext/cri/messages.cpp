// SPDX-License-Identifier: Apache-2.0
#include "shim-ext/cri/messages.hpp"

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>

#include "base/json/json.hpp"
#include "base/json/lookup.hpp"
#include "base/text.hpp"
#include "policy/facts/limits.hpp"
#include "shim-ext/proto/cri.pb.h"

namespace ka::cri {
namespace {

namespace json = boost::json;
using base::ErrorCode;
using base::Result;

constexpr int kNodeNetwork = 2;  ///< NamespaceMode
constexpr int kRunning = 1;      ///< ContainerState
constexpr const char* kInfo = "info";
constexpr const char* kConfig = "config";

auto broken(const std::string& what) { return base::fail(ErrorCode::kInvalid, what); }

template <typename Message>
Result<Message> parse(std::string_view bytes) {
  Message message;
  if (!message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return broken("not a message of the CRI");
  }
  return message;
}

/// Ids are sent back and shown.
bool is_id(const std::string& text) { return !text.empty() && base::is_printable(text); }

void write(const Resources& resources, proto::cri::LinuxContainerResources& into) {
  into.set_cpuset_cpus(policy::format_list(resources.cpus));
  into.set_cpu_quota(resources.quota);
  into.set_cpu_period(resources.period);
  into.set_cpu_shares(resources.shares);
  into.set_memory_limit_in_bytes(resources.memory);
}

void write(const PodConfig& pod, proto::cri::PodSandboxConfig& into) {
  auto& metadata = *into.mutable_metadata();
  metadata.set_name(pod.name);
  metadata.set_uid(pod.uid);
  metadata.set_namespace_(pod.name_space);
  into.mutable_labels()->insert(pod.labels.begin(), pod.labels.end());
  auto& linux_config = *into.mutable_linux();
  linux_config.set_cgroup_parent(pod.cgroup_parent);
  linux_config.mutable_security_context()->mutable_namespace_options()->set_network(kNodeNetwork);
  write(pod.resources, *linux_config.mutable_resources());
}

void write(const ContainerConfig& container, proto::cri::ContainerConfig& into) {
  into.mutable_metadata()->set_name(container.name);
  into.mutable_image()->set_image(container.image);
  for (const Mount& mount : container.mounts) {
    auto& one = *into.add_mounts();
    one.set_host_path(mount.on_host);
    one.set_container_path(mount.in_container);
    one.set_readonly(true);
  }
  into.mutable_labels()->insert(container.labels.begin(), container.labels.end());
  write(container.resources, *into.mutable_linux()->mutable_resources());
}

/// A JSON document of the verbose part.
template <typename Response>
Result<json::value> info_of(std::string_view message, const char* key) {
  const auto response = parse<Response>(message);
  if (!response) return unexpected(response.error());
  const auto found = response->info().find(key);
  if (found == response->info().end()) return broken("no verbose part");
  return base::parse_json(found->second, "the verbose part");
}

Result<void> add(const proto::cri::Container& seen, std::vector<Container>& list) {
  if (!is_id(seen.id()) || !is_id(seen.pod_sandbox_id())) return broken("a container without id");
  list.push_back({seen.id(), seen.pod_sandbox_id(), base::printable(seen.metadata().name()),
                  seen.state() <= kRunning});
  return {};
}

}  // namespace

std::string encode_id(const std::string& id) {
  proto::cri::Id message;
  message.set_id(id);
  return message.SerializeAsString();
}

std::string encode_run_pod(const PodConfig& pod, const std::string& handler) {
  proto::cri::RunPodSandboxRequest request;
  write(pod, *request.mutable_config());
  request.set_runtime_handler(handler);
  return request.SerializeAsString();
}

std::string encode_list_pods(const Labels& labels) {
  proto::cri::ListPodSandboxRequest request;
  request.mutable_filter()->mutable_label_selector()->insert(labels.begin(), labels.end());
  return request.SerializeAsString();
}

std::string encode_create_container(const std::string& pod_id, const ContainerConfig& container,
                                    const PodConfig& pod) {
  proto::cri::CreateContainerRequest request;
  request.set_pod_sandbox_id(pod_id);
  write(container, *request.mutable_config());
  write(pod, *request.mutable_sandbox_config());
  return request.SerializeAsString();
}

std::string encode_container_status(const std::string& id) {
  proto::cri::ContainerStatusRequest request;
  request.set_container_id(id);
  request.set_verbose(true);
  return request.SerializeAsString();
}

std::string encode_status() {
  proto::cri::StatusRequest request;
  request.set_verbose(true);
  return request.SerializeAsString();
}

std::string encode_exec(const std::string& container, const std::vector<std::string>& words,
                        std::chrono::seconds limit) {
  proto::cri::ExecSyncRequest request;
  request.set_container_id(container);
  for (const std::string& word : words) request.add_cmd(word);
  request.set_timeout(limit.count());
  return request.SerializeAsString();
}

Result<Ended> parse_ended(std::string_view message) {
  const auto response = parse<proto::cri::ExecSyncResponse>(message);
  if (!response) return unexpected(response.error());
  return Ended{response->exit_code(), response->output(), response->errors()};
}

Result<std::string> parse_id(std::string_view message) {
  const auto response = parse<proto::cri::Id>(message);
  if (!response) return unexpected(response.error());
  if (!is_id(response->id())) return broken("no id in the response");
  return response->id();
}

Result<Version> parse_version(std::string_view message) {
  const auto response = parse<proto::cri::VersionResponse>(message);
  if (!response) return unexpected(response.error());
  return Version{base::printable(response->runtime_name()),
                 base::printable(response->runtime_version())};
}

Result<std::vector<Pod>> parse_pods(std::string_view message) {
  const auto response = parse<proto::cri::ListPodSandboxResponse>(message);
  if (!response) return unexpected(response.error());
  if (static_cast<std::size_t>(response->items_size()) > policy::kMaxNodeContainers) {
    return broken("too many pods");
  }
  std::vector<Pod> list;
  for (const auto& seen : response->items()) {
    if (!is_id(seen.id())) return broken("a pod without id");
    list.push_back({seen.id(), base::printable(seen.metadata().uid())});
  }
  return list;
}

Result<std::vector<Container>> parse_containers(std::string_view message) {
  const auto response = parse<proto::cri::ListContainersResponse>(message);
  if (!response) return unexpected(response.error());
  if (static_cast<std::size_t>(response->containers_size()) > policy::kMaxNodeContainers) {
    return broken("too many containers");
  }
  std::vector<Container> list;
  for (const auto& seen : response->containers()) {
    if (auto added = add(seen, list); !added) return unexpected(std::move(added.error()));
  }
  return list;
}

Result<std::vector<std::string>> parse_images(std::string_view message) {
  const auto response = parse<proto::cri::ListImagesResponse>(message);
  if (!response) return unexpected(response.error());
  std::vector<std::string> names;
  for (const auto& image : response->images()) {
    for (const std::string& tag : image.repo_tags()) names.push_back(base::printable(tag));
    for (const std::string& one : image.repo_digests()) names.push_back(base::printable(one));
  }
  return names;
}

Result<Resources> parse_container_resources(std::string_view message) {
  const auto info = info_of<proto::cri::ContainerStatusResponse>(message, kInfo);
  if (!info) return unexpected(info.error());
  const json::value& cpu = base::value_at(*info, "/runtimeSpec/linux/resources/cpu");
  base::InputError wrong;
  const auto cpus = policy::parse_list<policy::CpuTag>(base::strict_text_at(cpu, "/cpus", wrong));
  Resources found;
  found.quota = base::strict_number_at(cpu, "/quota", wrong);
  found.period = base::strict_number_at(cpu, "/period", wrong);
  found.shares = base::strict_number_at(cpu, "/shares", wrong);
  if (!wrong.empty()) return broken("a container's CPUs: " + wrong.error().message);
  if (!cpus) return broken("a container's cpuset is not a list of CPUs");
  found.cpus = *cpus;
  return found;
}

Result<Settings> parse_settings(std::string_view message) {
  const auto config = info_of<proto::cri::StatusResponse>(message, kConfig);
  if (!config) return unexpected(config.error());
  const auto* flag =
      base::value_at(*config, "/containerd/runtimes/runc/options/SystemdCgroup").if_bool();
  return Settings{flag != nullptr && *flag,
                  base::text_at(*config, "/sandboxImage", base::kMaxName)};
}

}  // namespace ka::cri
