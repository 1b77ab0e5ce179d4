// SPDX-License-Identifier: Apache-2.0
#include "base/json/lookup.hpp"

#include <boost/json/array.hpp>
#include <boost/json/value.hpp>
#include <boost/system/error_code.hpp>
#include <optional>

#include "base/json/json.hpp"

namespace ka::base {
namespace {

namespace json = boost::json;

const json::value& nothing() {
  static const json::value kNothing;
  return kNothing;
}

std::optional<std::int64_t> whole_number(const json::value& value) {
  if (!value.is_number()) return std::nullopt;
  boost::system::error_code wrong;
  const auto number = value.to_number<std::int64_t>(wrong);
  return wrong ? std::nullopt : std::optional(number);
}

}  // namespace

const json::value* find_at(const json::value& from, std::string_view pointer) {
  boost::system::error_code error;
  return from.find_pointer({pointer.data(), pointer.size()}, error);
}

const json::value& value_at(const json::value& from, std::string_view pointer) {
  const json::value* found = find_at(from, pointer);
  return found == nullptr ? nothing() : *found;
}

std::string text_at(const json::value& from, std::string_view pointer, std::size_t limit) {
  return printable(text_in(value_at(from, pointer)), limit);
}

std::int64_t number_at(const json::value& from, std::string_view pointer, std::int64_t otherwise) {
  return number_in(value_at(from, pointer), otherwise);
}

std::span<const json::value> elements_at(const json::value& from, std::string_view pointer) {
  const json::array* array = value_at(from, pointer).if_array();
  if (array == nullptr) return {};
  return {array->data(), array->size()};
}

std::string strict_text_at(const json::value& from, std::string_view pointer, InputError& wrong) {
  const json::value& value = value_at(from, pointer);
  if (!value.is_null() && !value.is_string()) wrong.add(std::string(pointer), "must be a string");
  return text_in(value);
}

std::int64_t strict_number_at(const json::value& from, std::string_view pointer, InputError& wrong,
                              std::int64_t otherwise) {
  const json::value& value = value_at(from, pointer);
  const auto number = whole_number(value);
  if (!value.is_null() && !number) wrong.add(std::string(pointer), "must be a whole number");
  return number.value_or(otherwise);
}

const json::value& member(const json::value& object, std::string_view name) {
  const json::object* members = object.if_object();
  const json::value* found = members == nullptr ? nullptr : members->if_contains(name);
  return found == nullptr ? nothing() : *found;
}

std::string text_in(const json::value& value) {
  const json::string* text = value.if_string();
  return text == nullptr ? std::string() : std::string(text->data(), text->size());
}

std::int64_t number_in(const json::value& value, std::int64_t otherwise) {
  return whole_number(value).value_or(otherwise);
}

}  // namespace ka::base
