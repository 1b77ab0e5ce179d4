// SPDX-License-Identifier: Apache-2.0
#include "base/json/ambiguity.hpp"

#include <boost/json/basic_parser_impl.hpp>
#include <cmath>
#include <set>
#include <utility>
#include <vector>

#include "base/json/json.hpp"
#include "base/text.hpp"

namespace ka::base {
namespace {

/// What Boost.JSON's parser calls as it reads; false with an error stops it.
class Reader {
 public:
  static constexpr std::size_t max_object_size = static_cast<std::size_t>(-1);
  static constexpr std::size_t max_array_size = static_cast<std::size_t>(-1);
  static constexpr std::size_t max_key_size = static_cast<std::size_t>(-1);
  static constexpr std::size_t max_string_size = static_cast<std::size_t>(-1);
  using Error = boost::system::error_code;
  using Text = boost::json::string_view;

  bool on_object_begin(Error&) {
    objects_.emplace_back();
    return true;
  }
  bool on_object_end(std::size_t, Error&) {
    objects_.pop_back();
    return true;
  }
  bool on_key_part(Text part, std::size_t, Error&) {
    key_.append(part.data(), part.size());
    return true;
  }
  bool on_key(Text last, std::size_t, Error& error) {
    key_.append(last.data(), last.size());
    if (!objects_.back().insert(key_).second) {
      return stop('"' + printable(key_) + "\" is a duplicate key", error);
    }
    key_.clear();
    return true;
  }
  bool on_double(double number, Text, Error& error) {
    return std::isfinite(number) || stop("a number is out of range", error);
  }

  bool on_document_begin(Error&) { return true; }
  bool on_document_end(Error&) { return true; }
  bool on_array_begin(Error&) { return true; }
  bool on_array_end(std::size_t, Error&) { return true; }
  bool on_string_part(Text, std::size_t, Error&) { return true; }
  bool on_string(Text, std::size_t, Error&) { return true; }
  bool on_number_part(Text, Error&) { return true; }
  bool on_int64(std::int64_t, Text, Error&) { return true; }
  bool on_uint64(std::uint64_t, Text, Error&) { return true; }
  bool on_bool(bool, Error&) { return true; }
  bool on_null(Error&) { return true; }
  bool on_comment_part(Text, Error&) { return true; }
  bool on_comment(Text, Error&) { return true; }

  /// Why it stopped the parser; empty: it did not.
  const std::string& reason() const { return reason_; }

 private:
  bool stop(std::string reason, Error& error) {
    reason_ = std::move(reason);
    error = boost::json::error::extra_data;
    return false;
  }

  std::vector<std::set<std::string>> objects_;  ///< keys so far, from the outermost object in
  std::string key_;
  std::string reason_;
};

}  // namespace

std::optional<Ambiguity> find_ambiguity(std::string_view json) {
  boost::json::parse_options options;
  options.max_depth = kMaxJsonDepth;
  boost::json::basic_parser<Reader> parser{options};
  boost::system::error_code stopped;
  const std::size_t end = parser.write_some(false, json.data(), json.size(), stopped);
  if (!stopped) return std::nullopt;
  return Ambiguity{parser.handler().reason(), end};
}

}  // namespace ka::base
