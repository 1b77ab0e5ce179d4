// SPDX-License-Identifier: Apache-2.0
// Documents that others made, and may extend: members that are not known are passed over, and what
// is absent reads as nothing. So does what has another type, unless it decides where CPUs go: then
// it is an error (strict_*). Documents that are ours are read strictly as a whole (json.hpp). All
// of them are parsed by parse_json(), or said why not.
#pragma once

#include <boost/json/fwd.hpp>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/text.hpp"

namespace ka::base {

class InputError;

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

// The same for what decides: another type than this or null is added to `wrong`, with the pointer,
// and reads as nothing.

/// As it is, not printable.
std::string strict_text_at(const boost::json::value& from, std::string_view pointer,
                           InputError& wrong);
/// A whole number, `otherwise` where there is none.
std::int64_t strict_number_at(const boost::json::value& from, std::string_view pointer,
                              InputError& wrong, std::int64_t otherwise = 0);

// By the name of a member, as it is. A null value: there is none.
const boost::json::value& member(const boost::json::value& object, std::string_view name);

// What a value is.

/// As it is, not printable.
std::string text_in(const boost::json::value& value);
std::int64_t number_in(const boost::json::value& value, std::int64_t otherwise = 0);

}  // namespace ka::base
