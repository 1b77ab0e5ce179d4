// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace ka::cluster {

/// A DNS subdomain as Kubernetes names objects, loosely: safe as a part of a path.
bool is_object_name(std::string_view name);

}  // namespace ka::cluster
