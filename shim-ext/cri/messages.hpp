// SPDX-License-Identifier: Apache-2.0
// Messages of the Container Runtime Interface (k8s.io/cri-api/pkg/apis/runtime/v1), without I/O.
// Responses are bounded and read strictly: kInvalid is no such message, or more than is followed on
// a node (policy/facts/limits.hpp).
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "policy/facts/id_set.hpp"

namespace ka::cri {

using Labels = std::map<std::string, std::string>;

/// Linux resources; what is empty or 0 is not limited.
struct Resources {
  policy::CpuSet cpus;
  std::int64_t quota = 0;   ///< microseconds a period
  std::int64_t period = 0;  ///< microseconds
  std::int64_t shares = 0;  ///< 1024 for each CPU
  std::int64_t memory = 0;  ///< bytes

  bool operator==(const Resources&) const = default;
};

/// A pod in the node's network, so that it needs none of its own.
struct PodConfig {
  std::string name;
  std::string uid;
  std::string name_space;
  std::string cgroup_parent;  ///< empty: the runtime's default
  Labels labels;
  Resources resources;  ///< of its containers, all in all
};

/// A file of the host, read-only.
struct Mount {
  std::string on_host;
  std::string in_container;
};

struct ContainerConfig {
  std::string name;
  std::string image;
  Labels labels;
  Resources resources;
  std::vector<Mount> mounts = {};
};

std::string encode_id(const std::string& id);
std::string encode_run_pod(const PodConfig& pod, const std::string& handler);
/// Of pods with all these labels.
std::string encode_list_pods(const Labels& labels);
std::string encode_create_container(const std::string& pod_id, const ContainerConfig& container,
                                    const PodConfig& pod);
/// With the runtime's own, verbose part.
std::string encode_container_status(const std::string& id);
std::string encode_status();
/// `limit`: until the runtime ends it.
std::string encode_exec(const std::string& container, const std::vector<std::string>& words,
                        std::chrono::seconds limit);

struct Version {
  std::string runtime;  ///< "containerd"
  std::string version;
};

struct Settings {
  bool systemd_cgroup = false;  ///< of its runc
  std::string sandbox_image;    ///< empty where it is not reported (containerd 2)

  bool operator==(const Settings&) const = default;
};

struct Pod {
  std::string id;
  std::string uid;

  bool operator==(const Pod&) const = default;
};

struct Container {
  std::string id;
  std::string pod_id;
  std::string name;
  bool is_live = false;  ///< created or running

  bool operator==(const Container&) const = default;
};

/// A program that ended in a container. Its output is the container's: anything.
struct Ended {
  int status = 0;
  std::string output;
  std::string errors;

  bool operator==(const Ended&) const = default;
};

/// Of RunPodSandbox and CreateContainer.
base::Result<std::string> parse_id(std::string_view message);
base::Result<Version> parse_version(std::string_view message);
base::Result<std::vector<Pod>> parse_pods(std::string_view message);
base::Result<std::vector<Container>> parse_containers(std::string_view message);
/// Tags and digests.
base::Result<std::vector<std::string>> parse_images(std::string_view message);
/// The CPU resources of the OCI spec in a verbose ContainerStatus ("info" of containerd and CRI-O).
base::Result<Resources> parse_container_resources(std::string_view message);
base::Result<Ended> parse_ended(std::string_view message);
/// containerd's settings in its verbose Status.
base::Result<Settings> parse_settings(std::string_view message);

}  // namespace ka::cri
