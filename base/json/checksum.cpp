// SPDX-License-Identifier: Apache-2.0
#include "base/json/checksum.hpp"

#include <boost/crc.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include "base/json/json.hpp"

namespace ka::base {
namespace {

constexpr std::string_view kChecksum = "checksum";
constexpr std::string_view kMember =
    ",\"checksum\":\"";              ///< in no string of JSON: quotes are escaped
constexpr std::size_t kDigits = 10;  ///< of any, so that all are of one length

std::string ending(std::string_view content) {
  boost::crc_32_type crc;
  crc.process_bytes(content.data(), content.size());
  std::string digits = std::to_string(crc.checksum());
  digits.insert(0, kDigits - digits.size(), '0');
  return std::string(kMember) + digits + "\"}\n";
}

}  // namespace

std::string with_checksum(const boost::json::object& document) {
  std::string text = boost::json::serialize(document);
  text.pop_back();  // its brace
  return text + ending(text);
}

void check_checksum(Fields& fields, std::string_view text) {
  if (fields.find(kChecksum) == nullptr) return;
  const auto content = text.substr(0, text.rfind(kMember));
  if (text.substr(content.size()) != ending(content)) {
    fields.reject(kChecksum, "not that of the content");
  }
}

}  // namespace ka::base
