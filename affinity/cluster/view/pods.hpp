// SPDX-License-Identifier: Apache-2.0
// The pods of one node as the API server has them, as far as this program reads them.
#pragma once

#include <boost/json/fwd.hpp>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace ka::cluster {

/// The type of the condition that we write.
inline constexpr std::string_view kCondition = "kata-affinity.io/Isolated";

struct Condition {
  std::string status;   ///< "True", "False", "Unknown"
  std::string reason;   ///< "Isolated", "PinnedByHand", ...
  std::string message;  ///< a sentence

  bool operator==(const Condition&) const = default;
};

struct Pod {
  std::string uid;
  /// The uid by which kubelet, and with it the daemon, knows the pod: a static pod's differs.
  std::string node_uid;
  std::string name_space, name;
  std::optional<Condition> isolated;  ///< ours, as it is in the pod's status
  std::string transition;             ///< when that last changed its status
  /// Its annotations by which containers ask for a class (policy/managed).
  std::map<std::string, std::string> class_annotations;

  bool operator==(const Pod&) const = default;
};

/// Absent: it lacks what every pod has, or names that could not be part of a path.
std::optional<Pod> read_pod(const boost::json::value& object);

/// What a list and a watch have told, by uid.
class Pods {
 public:
  using Map = std::map<std::string, Pod>;

  /// A PodList. kInvalid: it is none; nothing has changed.
  base::Result<void> replace(std::string_view list);
  /// One line of a watch. kGone: the version is too old, list again; kUnavailable: another error of
  /// the server; kInvalid: it is no event of a watch.
  base::Result<void> apply(std::string_view line);

  const Map& all() const { return pods_; }
  /// Where a watch goes on; empty before the first list.
  const std::string& version() const { return version_; }

 private:
  Map pods_;
  std::string version_;
};

}  // namespace ka::cluster
