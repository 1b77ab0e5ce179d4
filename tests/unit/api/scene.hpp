// SPDX-License-Identifier: Apache-2.0
// The API's calls against a real line on a node made of files.
#pragma once

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <string>

#include "affinity/api/router.hpp"
#include "tests/catch.hpp"
#include "tests/unit/line/scene.hpp"

namespace ka::tests {

namespace json = boost::json;

struct Api {
  Api() : router(scene.line(), scene.requests(), scene.verifier(), feed) {
    scene.boot_vm(100, 3);
    scene.boot_vm(200, 2);
  }

  http::Response call(const std::string& method, const std::string& target,
                      const std::string& body = {}) {
    return router.handle({method, target, body});
  }

  /// The document of a call that must succeed.
  json::object good(const std::string& method, const std::string& target,
                    const std::string& body = {}) {
    const http::Response response = call(method, target, body);
    CAPTURE(method, target, body, response.body);
    REQUIRE(response.status == 200);
    return json::parse(response.body).as_object();
  }

  /// Status and reason of a call that must fail.
  std::string bad(const std::string& method, const std::string& target,
                  const std::string& body = {}) {
    const http::Response response = call(method, target, body);
    REQUIRE(response.content_type == "application/json");
    const json::object document = json::parse(response.body).as_object();
    REQUIRE(document.size() == 1);
    return std::to_string(response.status) + ' ' + std::string(document.at("error").as_string());
  }

  void play_pod() {
    good("PUT", "/v1/sandboxes/s1", R"({"vmm_pid":100,"pod_uid":"u1","pod_name":"shop/cart"})");
    good("PUT", "/v1/sandboxes/s1/containers/c1",
         R"({"name":"app","cpus":"4-5","mems":"0","quota":200000,"period":100000})");
    good("PUT", "/v1/sandboxes/s1/containers/c2", R"({"cpus":"0-1"})");
  }

  LineScene scene;
  http::Feed feed;
  api::Router router;
};

inline std::string text(const json::value& value) { return json::serialize(value); }

}  // namespace ka::tests
