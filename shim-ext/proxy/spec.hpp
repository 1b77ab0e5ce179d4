// SPDX-License-Identifier: Apache-2.0
// What a container may use, as containerd passes it to a shim: config.json in the container's
// bundle, and the resources of an Update.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace ka::proxy {

/// Of a config.json of a pod with a thousand mounts; containerd's own are a few tens of kilobytes.
inline constexpr std::size_t kLargestSpec = std::size_t{4} << 20;

struct Resources {
  std::string cpus;  ///< as written, not judged; empty: no constraint
  std::string mems;
  std::int64_t quota = 0;  ///< microseconds; 0: none
  std::int64_t period = 0;
  std::int64_t shares = 0;  ///< 0: none

  bool operator==(const Resources&) const = default;
};

struct Spec {
  /// The pod's, which is the container's own id outside a pod.
  std::string sandbox;
  /// The pod's own (pause) container: it has no CPUs of its own.
  bool is_pause = false;
  std::string name;
  std::string pod_uid;
  std::string pod_name;  ///< "namespace/name"
  std::string handler;
  Resources resources;

  bool operator==(const Spec&) const = default;
};

/// Of the bundle of container `id`. containerd's CRI names its pod by annotations
/// (pkg/cri/annotations). kInvalid also for an id, its own or its pod's, that base::is_id refuses:
/// it becomes part of a request.
base::Result<Spec> read_spec(const std::filesystem::path& bundle, const std::string& id);

/// The uid of the pod whose sandbox or container has this bundle; empty where it names none.
std::string pod_of_bundle(const std::filesystem::path& bundle);

/// `now` with an Update applied. What it leaves out, or leaves empty, stays: runc and Kata take
/// an empty cpuset for "unchanged". kInvalid: this is no such JSON.
///
/// The proxy merges itself, and reports whole specs: an Update that the shim refuses is reverted
/// by the spec of before, and while the daemon is away only a container's last report is kept.
base::Result<Resources> updated(Resources now, std::string_view json);

}  // namespace ka::proxy
