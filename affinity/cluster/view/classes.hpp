// SPDX-License-Identifier: Apache-2.0
// mode = "managed": the classes that pods ask for by annotation now, and those that the daemon
// knows of. A container runtime never tells of an annotation that changes while its pod runs.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "affinity/cluster/view/pods.hpp"
#include "base/result.hpp"

namespace ka::cluster {

/// What a container's pod asks for.
struct ClassRequest {
  std::string sandbox;  ///< an id that may be part of a path
  std::string pod_uid;
  std::string container;                 ///< its name
  std::optional<std::string> requested;  ///< absent: for no class

  bool operator==(const ClassRequest&) const = default;
};

/// As the daemon knows them: the response to GET /v1/pools. kInvalid: not what it answers.
base::Result<std::vector<ClassRequest>> read_class_requests(std::string_view pools);

/// Those of which the cluster says otherwise. Pods that it does not have are left out.
std::vector<ClassRequest> changed_requests(const std::vector<ClassRequest>& known,
                                           const Pods& pods);

}  // namespace ka::cluster
