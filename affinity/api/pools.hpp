// SPDX-License-Identifier: Apache-2.0
// mode = "managed": the pools and who has what as JSON, and the request for another class.
#pragma once

#include <boost/json/object.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "affinity/line/verifier.hpp"
#include "affinity/managed/manager.hpp"
#include "base/result.hpp"
#include "policy/managed/rules.hpp"

namespace ka::api {

/// Gives containers of a pod another class: {"class":"exclusive","container":"app"}; without
/// "container" all of them. kInvalid says what is wrong with the body; else as Manager::change().
base::Result<void> change_class(managed::Manager& manager, const std::string& sandbox,
                                std::string_view body);

/// The pod of a running container asks for another class: {"container":"app","class":"share"};
/// without "class" for none any more. It is judged as when a container is created.
base::Result<void> request_class(managed::Manager& manager, const std::string& sandbox,
                                 std::string_view body);

/// One container of them.
boost::json::object to_json(const policy::managed::Entry& entry, const policy::CpuSet& cpus);

boost::json::object pools_to_json(const managed::Manager& manager);

/// As `verifier` reports it. With a manager, also containers whose cgroups allow other CPUs or
/// memory nodes than they were given: drift, or a note while the runtime may be writing them.
boost::json::object verified(line::Verifier& verifier, const managed::Manager* manager);

}  // namespace ka::api
