// SPDX-License-Identifier: Apache-2.0
#include "base/json/doubled_key.hpp"

#include <boost/json/basic_parser_impl.hpp>
#include <set>
#include <vector>

namespace ka::base {
namespace {

/// What Boost.JSON's parser calls as it reads; false with an error stops it.
class KeyWatch {
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
      error = boost::json::error::extra_data;
      return false;
    }
    key_.clear();
    return true;
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
  bool on_double(double, Text, Error&) { return true; }
  bool on_bool(bool, Error&) { return true; }
  bool on_null(Error&) { return true; }
  bool on_comment_part(Text, Error&) { return true; }
  bool on_comment(Text, Error&) { return true; }

  /// The key that was read last, when it stopped the parser.
  const std::string& key() const { return key_; }

 private:
  std::vector<std::set<std::string>> objects_;  ///< keys so far, from the outermost object in
  std::string key_;
};

}  // namespace

std::optional<DoubledKey> find_doubled_key(std::string_view json) {
  boost::json::basic_parser<KeyWatch> parser{boost::json::parse_options{}};
  boost::system::error_code doubled;
  const std::size_t end = parser.write_some(false, json.data(), json.size(), doubled);
  if (!doubled) return std::nullopt;
  return DoubledKey{parser.handler().key(), end};
}

}  // namespace ka::base
