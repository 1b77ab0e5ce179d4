// SPDX-License-Identifier: Apache-2.0
#include "base/json/json.hpp"

#include <algorithm>
#include <boost/json/object.hpp>
#include <boost/json/parser.hpp>
#include <boost/json/value.hpp>
#include <limits>

#include "base/json/ambiguity.hpp"
#include "base/sets.hpp"
#include "base/text.hpp"

namespace ka::base {
namespace {

/// "<line>:<column>" of a byte offset, both from 1.
std::string line_and_column(std::string_view text, std::size_t offset, int first_line) {
  const std::string_view before = text.substr(0, offset);
  const auto line = std::ranges::count(before, '\n') + first_line;
  const std::size_t start = before.rfind('\n');
  const std::size_t column = start == std::string_view::npos ? offset + 1 : offset - start;
  return std::to_string(line) + ':' + std::to_string(column);
}

const boost::json::object& object_or_empty(const boost::json::value& value) {
  static const boost::json::object kEmpty;
  const auto* object = value.if_object();
  return object == nullptr ? kEmpty : *object;
}

/// A number as int64; false for anything else, and for what does not fit.
bool to_integer(const boost::json::value& value, std::int64_t& into) {
  if (const auto* number = value.if_int64()) {
    into = *number;
    return true;
  }
  return false;
}

/// Why a value is not acceptable text; empty: it is.
std::string wrong_text(const boost::json::value& value, std::size_t limit) {
  const auto* text = value.if_string();
  if (text == nullptr) return "must be a string";
  if (text->size() > limit) return "is longer than " + std::to_string(limit) + " bytes";
  return is_printable(*text, limit) ? "" : "has control characters";
}

}  // namespace

Result<boost::json::value> parse_json(std::string_view text, const std::string& name,
                                      int first_line) {
  boost::json::parse_options options;
  options.max_depth = kMaxJsonDepth;
  boost::json::parser parser({}, options);
  boost::system::error_code wrong;
  const std::size_t consumed = parser.write_some(text.data(), text.size(), wrong);
  if (!wrong && consumed < text.size()) wrong = boost::json::error::extra_data;
  if (wrong) {
    return fail(ErrorCode::kInvalid, name + ':' + line_and_column(text, consumed, first_line) +
                                         ": not JSON: " + wrong.message());
  }
  if (const auto ambiguity = find_ambiguity(text)) {
    return fail(
        ErrorCode::kInvalid,
        name + ':' + line_and_column(text, ambiguity->end, first_line) + ": " + ambiguity->text);
  }
  return parser.release();
}

void InputError::add(const std::string& path, const std::string& what) {
  if (!text_.empty()) return;
  text_ = printable(path.empty() ? what : path + ": " + what, kMaxSentence);
}

Fields::Fields(const boost::json::value& value, std::string path, InputError& input_error)
    : object_(object_or_empty(value)), path_(std::move(path)), errors_(input_error) {
  if (!value.is_object()) errors_.add(path_, "must be an object");
}

const boost::json::value* Fields::find(std::string_view name) {
  known_.push_back(name);
  return object_.if_contains(name);
}

std::string Fields::path(std::string_view name) const {
  return path_.empty() ? std::string(name) : path_ + '.' + std::string(name);
}

void Fields::require(std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names) {
    if (find(name) == nullptr) reject(name, "missing");
  }
}

bool Fields::read(std::string_view name, int& into) {
  const auto* value = find(name);
  if (value == nullptr) return false;
  std::int64_t number = 0;
  if (!to_integer(*value, number) || number < 0 || number > std::numeric_limits<int>::max()) {
    reject(name, "must be a whole number, 0 or more");
    return false;
  }
  into = static_cast<int>(number);
  return true;
}

bool Fields::read(std::string_view name, std::int64_t& into) {
  const auto* value = find(name);
  if (value == nullptr) return false;
  if (to_integer(*value, into)) return true;
  reject(name, "must be a whole number");
  return false;
}

bool Fields::read(std::string_view name, bool& into) {
  const auto* value = find(name);
  if (value == nullptr) return false;
  if (!value->is_bool()) {
    reject(name, "must be true or false");
    return false;
  }
  into = value->get_bool();
  return true;
}

bool Fields::read(std::string_view name, std::string& into, std::size_t limit) {
  const auto* value = find(name);
  if (value == nullptr) return false;
  if (const std::string wrong = wrong_text(*value, limit); !wrong.empty()) {
    reject(name, wrong);
    return false;
  }
  into = std::string(std::string_view(value->get_string()));
  return true;
}

bool Fields::read(std::string_view name, std::vector<std::string>& into) {
  if (find(name) == nullptr) return false;
  into.clear();
  each(name, [&](const boost::json::value& element, const std::string& path) {
    if (const std::string wrong = wrong_text(element, kMaxPath); !wrong.empty()) {
      errors_.add(path, wrong);
    } else {
      into.emplace_back(std::string_view(element.get_string()));
    }
  });
  return errors_.empty();
}

bool Fields::read(std::string_view name, std::vector<std::int64_t>& into) {
  if (find(name) == nullptr) return false;
  each(name, [&](const boost::json::value& element, const std::string& path) {
    std::int64_t number = 0;
    if (to_integer(element, number)) {
      into.push_back(number);
    } else {
      errors_.add(path, "must be a whole number");
    }
  });
  return errors_.empty();
}

template <typename Tag>
bool Fields::read(std::string_view name, policy::IdSet<Tag>& into) {
  std::string text;
  if (!read(name, text, kMaxSetText)) return false;
  auto set = parse_set<Tag>(text);
  if (!set) {
    reject(name, set.error().message);
    return false;
  }
  into = std::move(*set);
  return true;
}

template bool Fields::read(std::string_view, policy::CpuSet&);
template bool Fields::read(std::string_view, policy::NodeSet&);
template bool Fields::read(std::string_view, policy::VcpuSet&);
template bool Fields::read(std::string_view, policy::GuestCpuSet&);

void Fields::each(std::string_view name, const Visit& visit) {
  const auto* value = find(name);
  if (value == nullptr) return;
  const auto* elements = value->if_array();
  if (elements == nullptr) return reject(name, "must be an array");
  for (std::size_t i = 0; i < elements->size(); ++i) {
    visit((*elements)[i], path(name) + '[' + std::to_string(i) + ']');
  }
}

void Fields::reject(std::string_view name, const std::string& what) const {
  errors_.add(path(name), what);
}

void Fields::finish() const {
  for (const auto& member : object_) {
    if (std::ranges::find(known_, std::string_view(member.key())) == known_.end()) {
      reject(member.key(), "unknown key");
    }
  }
}

}  // namespace ka::base
