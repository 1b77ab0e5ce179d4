// SPDX-License-Identifier: Apache-2.0
// Values of documents that others made: what is absent, or of another type, reads as empty.
#pragma once

#include <boost/json/fwd.hpp>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace ka::cluster {

/// `pointer` is a JSON pointer (RFC 6901). Null: there is no such value.
const boost::json::value* find_at(const boost::json::value& from, std::string_view pointer);
/// Printable (base/text.hpp), at most 1 KiB.
std::string text_at(const boost::json::value& from, std::string_view pointer);
std::int64_t number_at(const boost::json::value& from, std::string_view pointer);
std::span<const boost::json::value> elements_at(const boost::json::value& from,
                                                std::string_view pointer);

/// A DNS subdomain as Kubernetes names objects, loosely: safe as a part of a path.
bool is_object_name(std::string_view name);

}  // namespace ka::cluster
