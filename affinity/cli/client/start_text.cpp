// SPDX-License-Identifier: Apache-2.0
#include "affinity/cli/client/start_text.hpp"

#include <boost/json/array.hpp>
#include <boost/json/value.hpp>
#include <string_view>

#include "affinity/cli/client/daemon.hpp"
#include "base/json/lookup.hpp"

namespace ka::cli {

std::string describe_start(const boost::json::value& document) {
  const boost::json::value& start = base::member(document, "start");
  std::string text;
  for (const boost::json::value& warning : array_of(start, "warnings")) {
    text += "! " + std::string(std::string_view(warning.as_string())) + '\n';
  }
  return text;
}

}  // namespace ka::cli
