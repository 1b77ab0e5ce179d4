// SPDX-License-Identifier: Apache-2.0
// Resolves names of sandboxes and containers to ids: the only place that does.
#pragma once

#include <boost/json/fwd.hpp>
#include <string>
#include <vector>

#include "affinity/cli/client/daemon.hpp"
#include "base/result.hpp"

namespace ka::cli {

/// An id, and its other names.
struct Named {
  std::string id;
  std::vector<std::string> names;
};

/// The sandboxes of GET /v1/sandboxes, by id, `namespace/name` and name of the pod.
std::vector<Named> sandboxes_of(const boost::json::value& list);
/// The containers of a sandbox, by id and name.
std::vector<Named> containers_of(const boost::json::value& sandbox);

/// The id that `given` stands for: an id, else a name, else a prefix of either. Where several match
/// equally well the error lists them. Where none does it is `given`, which the daemon refuses.
base::Result<std::string> resolve(const std::vector<Named>& known, const std::string& given);

/// Ids, and the names that `resolve` maps back to them; for completion.
std::vector<std::string> unambiguous(const std::vector<Named>& known);

/// Like `resolve` among the sandboxes of the daemon; empty (all of them) stays empty.
base::Result<std::string> find_sandbox(const Daemon& daemon, const std::string& given);
/// The same among the containers of one sandbox, which is given by its id.
base::Result<std::string> find_container(const Daemon& daemon, const std::string& sandbox,
                                         const std::string& given);

}  // namespace ka::cli
