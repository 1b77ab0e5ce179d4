// SPDX-License-Identifier: Apache-2.0
// The client of /v1/quiet.
#pragma once

#include <string_view>

#include "affinity/helper_client/client.hpp"
#include "affinity/quiet/answer.hpp"

namespace ka::quiet {

struct QuietVerb {
  using Wanted = policy::QuietRequest;
  using State = policy::QuietState;

  static http::Request request(const Wanted& wanted) { return quiet_request(wanted); }
  static base::Result<State> read(std::string_view document) { return read_state(document); }
};

using helper_client::ClientOptions;
using Client = helper_client::Client<QuietVerb>;

}  // namespace ka::quiet
