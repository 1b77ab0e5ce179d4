// SPDX-License-Identifier: Apache-2.0
#include "affinity/helper/verb.hpp"

namespace ka::helper {
namespace {

using http::error_response;
using http::Response;

constexpr int kBadRequest = 400, kNotFound = 404, kWrongMethod = 405, kUnavailable = 503;

Response post(const Verb& verb, const std::string& body) {
  auto document = verb.post(body);
  if (document) return {.body = *std::move(document)};
  const bool is_wrong = document.error().code == base::ErrorCode::kInvalid;
  return error_response(is_wrong ? kBadRequest : kUnavailable, document.error().message);
}

}  // namespace

Response respond(const Verbs& verbs, const http::Request& request) {
  const auto verb = verbs.find(request.target);
  if (verb == verbs.end()) return error_response(kNotFound, "no such path");
  if (request.method == "POST") return post(verb->second, request.body);
  if (request.method == "GET") return {.body = verb->second.get()};
  Response wrong = error_response(kWrongMethod, "method not allowed");
  wrong.allow = "GET, POST";
  return wrong;
}

}  // namespace ka::helper
