// SPDX-License-Identifier: Apache-2.0
#include "affinity/cluster/view/lookup.hpp"

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/value.hpp>
#include <boost/system/error_code.hpp>

#include "base/text.hpp"

namespace ka::cluster {
namespace json = boost::json;
namespace {

/// Of a DNS subdomain.
constexpr std::size_t kMaxObjectName = 253;

bool may_be_in_name(char letter) {
  return (letter >= 'a' && letter <= 'z') || (letter >= '0' && letter <= '9') || letter == '-' ||
         letter == '.';
}

}  // namespace

const json::value* find_at(const json::value& from, std::string_view pointer) {
  boost::system::error_code error;
  return from.find_pointer({pointer.data(), pointer.size()}, error);
}

std::string text_at(const json::value& from, std::string_view pointer) {
  const json::value* found = find_at(from, pointer);
  const json::string* text = found == nullptr ? nullptr : found->if_string();
  return text == nullptr ? "" : base::printable({text->data(), text->size()}, base::kMaxSentence);
}

std::int64_t number_at(const json::value& from, std::string_view pointer) {
  const json::value* found = find_at(from, pointer);
  const std::int64_t* number = found == nullptr ? nullptr : found->if_int64();
  return number == nullptr ? 0 : *number;
}

std::span<const json::value> elements_at(const json::value& from, std::string_view pointer) {
  const json::value* found = find_at(from, pointer);
  const json::array* array = found == nullptr ? nullptr : found->if_array();
  if (array == nullptr) return {};
  return {array->data(), array->size()};
}

bool is_object_name(std::string_view name) {
  return !name.empty() && name.size() <= kMaxObjectName && name.front() != '.' &&
         std::ranges::all_of(name, may_be_in_name);
}

}  // namespace ka::cluster
