// SPDX-License-Identifier: Apache-2.0
// Documents that others made, and may extend, read as far as they make sense: what is absent, or of
// another type, reads as nothing. Documents that are ours are read strictly (json.hpp).
#pragma once

#include <boost/json/fwd.hpp>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/text.hpp"

namespace ka::base {

// By a JSON pointer (RFC 6901): "/metadata/annotations/kubernetes.io~1config.mirror".

/// Null pointer: there is no such value.
const boost::json::value* find_at(const boost::json::value& from, std::string_view pointer);
/// A null value: there is none.
const boost::json::value& value_at(const boost::json::value& from, std::string_view pointer);
/// Printable (base/text.hpp), at most `limit` bytes.
std::string text_at(const boost::json::value& from, std::string_view pointer,
                    std::size_t limit = kMaxSentence);
/// A whole number, `otherwise` where there is none.
std::int64_t number_at(const boost::json::value& from, std::string_view pointer,
                       std::int64_t otherwise = 0);
std::span<const boost::json::value> elements_at(const boost::json::value& from,
                                                std::string_view pointer);

// By the name of a member, as it is. A null value: there is none.
const boost::json::value& member(const boost::json::value& object, std::string_view name);

// What a value is.

/// As it is, not printable.
std::string text_in(const boost::json::value& value);
std::int64_t number_in(const boost::json::value& value, std::int64_t otherwise = 0);

}  // namespace ka::base
