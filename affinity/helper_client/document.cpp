// SPDX-License-Identifier: Apache-2.0
#include "affinity/helper_client/document.hpp"

#include <boost/json/value.hpp>

#include "base/json/lookup.hpp"
#include "base/text.hpp"

namespace ka::helper_client {
namespace {

using base::ErrorCode;

constexpr int kGood = 200;
constexpr int kRefused = 400;

/// Why it refuses a request.
std::string error_in(const std::string& body) {
  const auto document = base::parse_json(body, "error");
  const std::string text =
      document ? base::text_at(*document, "/error") : base::printable(body, base::kMaxSentence);
  return text.empty() ? "it does not say why" : text;
}

}  // namespace

base::Result<std::string> document_in(const http::Response& response) {
  if (response.status == kRefused) {
    return base::fail(ErrorCode::kConflict, error_in(response.body));
  }
  if (response.status == kGood) return response.body;
  return base::fail(ErrorCode::kUnavailable, "status " + std::to_string(response.status));
}

std::string trouble_of(const base::Error& error) {
  const bool refuses = error.code == ErrorCode::kConflict;
  return std::string("the helper (kata-affinity-helper) ") +
         (refuses ? "refuses it: " : "does not respond: ") + error.message;
}

base::Result<std::string> read_rows(std::string_view document, std::string_view name,
                                    const ReadRow& read) {
  const auto parsed = base::parse_json(document, "response");
  if (!parsed) return unexpected(parsed.error());
  std::string problem;
  base::InputError wrong;
  base::Fields fields(*parsed, "", wrong);
  fields.require({name, "problem"});
  fields.each(name, [&](const boost::json::value& row, const std::string& path) {
    read(row, path, wrong);
  });
  read_text(fields, "problem", problem, base::kMaxSentence);
  fields.finish();
  if (!wrong.empty()) return unexpected(wrong.error());
  return problem;
}

void read_text(base::Fields& fields, std::string_view name, std::string& into, std::size_t limit) {
  const boost::json::value* value = fields.find(name);
  if (value == nullptr) return;
  if (!value->is_string()) return fields.reject(name, "must be text");
  into = base::printable(value->get_string(), limit);
}

}  // namespace ka::helper_client
