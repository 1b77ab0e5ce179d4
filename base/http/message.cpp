// SPDX-License-Identifier: Apache-2.0
#include "base/http/message.hpp"

#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

namespace ka::http {

Response error_response(int status, std::string_view text) {
  return {.status = status,
          .body = boost::json::serialize(boost::json::object{{"error", text}}) + "\n"};
}

}  // namespace ka::http
