// SPDX-License-Identifier: Apache-2.0
// Strict reading of JSON: every key must be known, every value of the right type. The first
// error is reported with its path, as in "sandboxes[0].containers[1].cpuz: unknown key".
//
// Errors are sticky, as with streams: a reader goes through a document field by field, and asks its
// InputError once, at the end, whether all of it made sense.
#pragma once

#include <boost/json/fwd.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "base/text.hpp"
#include "policy/facts/id_set.hpp"

namespace ka::base {

/// A text of all ids, none of them in a range with another, is shorter.
inline constexpr std::size_t kMaxSetText = std::size_t{8} * policy::kMaxIds;

/// How many arrays and objects of a document may lie within each other.
inline constexpr std::size_t kMaxJsonDepth = 32;

/// Parses one JSON document (at most kMaxJsonDepth levels deep, no key twice in an object, no
/// number beyond a double). Errors are kInvalid and begin with "<name>:<line>:<column>: ";
/// `first_line` is where in the input `text` begins.
Result<boost::json::value> parse_json(std::string_view text, const std::string& name,
                                      int first_line = 1);

/// The first thing that was found wrong.
class InputError {
 public:
  /// Keeps "<path>: <what>" unless an error was kept before.
  void add(const std::string& path, const std::string& what);

  bool empty() const { return text_.empty(); }
  /// kInvalid; precondition: !empty().
  Error error() const { return {ErrorCode::kInvalid, text_, 0}; }

 private:
  std::string text_;
};

/// One JSON object that is being read. Holds references to the value and to the InputError, so
/// it lives shorter than both.
class Fields {
 public:
  /// An error if `value` is not an object; it then reads as an empty one. `path` is that of the
  /// object, empty for a document.
  Fields(const boost::json::value& value, std::string path, InputError& input_error);

  /// The value of a key, nullptr where it is absent. The key counts as known from now on.
  const boost::json::value* find(std::string_view name);
  /// Path of a key of this object.
  std::string path(std::string_view name) const;
  /// An error for each of these keys that is absent.
  void require(std::initializer_list<std::string_view> names);

  // Each leaves `into` as it is where the key is absent; true when a good value was there.

  /// A whole number from 0 to 2^31-1.
  bool read(std::string_view name, int& into);
  bool read(std::string_view name, std::int64_t& into);
  bool read(std::string_view name, bool& into);
  /// Text that is printable (base/text.hpp) and has at most `limit` bytes.
  bool read(std::string_view name, std::string& into, std::size_t limit = kMaxPath);
  bool read(std::string_view name, std::vector<std::string>& into);
  bool read(std::string_view name, std::vector<std::int64_t>& into);
  /// A CpuSet, NodeSet or VcpuSet in the kernel's list format.
  template <typename Tag>
  bool read(std::string_view name, policy::IdSet<Tag>& into);

  using Visit = std::function<void(const boost::json::value& element, const std::string& path)>;
  /// Visits the elements of an array; nothing where the key is absent.
  void each(std::string_view name, const Visit& visit);

  void reject(std::string_view name, const std::string& what) const;
  /// Reports keys that no call has read.
  void finish() const;

 private:
  const boost::json::object& object_;
  std::string path_;
  InputError& errors_;
  std::vector<std::string_view> known_;
};

}  // namespace ka::base
