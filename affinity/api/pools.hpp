// SPDX-License-Identifier: Apache-2.0
// mode = "managed": the pools and who has what as JSON, and the request for another class.
#pragma once

#include <boost/json/object.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "affinity/managed/manager.hpp"
#include "base/result.hpp"
#include "policy/managed/rules.hpp"

namespace ka::api {

struct ClassRequest {
  policy::managed::CpuUse use = policy::managed::CpuUse::kNone;
  std::optional<std::string> container;  ///< its name; absent: all of the pod
};

/// {"class":"exclusive","container":"app"}. kInvalid says what is wrong.
base::Result<ClassRequest> read_class(std::string_view body);

boost::json::object pools_to_json(const managed::Manager& manager);

}  // namespace ka::api
