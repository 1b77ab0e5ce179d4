// SPDX-License-Identifier: Apache-2.0
// A verb of the helper is a path: GET looks again and says how things are, POST says what is wanted
// as a whole.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "base/http/message.hpp"
#include "base/result.hpp"

namespace ka::helper {

struct Verb {
  std::function<std::string()> get;  ///< the document
  /// The document, after what the body wants. kInvalid: it is wrong or refused, and nothing has
  /// changed; other errors: it cannot be judged now.
  std::function<base::Result<std::string>(const std::string& body)> post;
};

using Verbs = std::map<std::string_view, Verb>;  ///< by path

http::Response respond(const Verbs& verbs, const http::Request& request);

}  // namespace ka::helper
