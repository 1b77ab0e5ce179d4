// SPDX-License-Identifier: Apache-2.0
// Kubernetes' API server, asked as this node's service account.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <string_view>

#include "affinity/cluster/account.hpp"
#include "affinity/cluster/view/documents.hpp"
#include "affinity/cluster/view/outbox.hpp"
#include "base/clock.hpp"
#include "base/http/message.hpp"
#include "base/result.hpp"
#include "base/tls/session.hpp"

namespace ka::cluster {

class ApiServer {
 public:
  /// Where it listens.
  struct Address {
    std::string host, port;
  };

  /// `clock` must outlive it. `taints`: a broken node gets a taint, too.
  ApiServer(const base::Clock& clock, Address address, Account account, std::string node,
            bool taints);

  /// How long the server asks to be left alone (Retry-After); 0: it does not say.
  using Pause = std::chrono::seconds;

  /// The node's pods, a PodList.
  base::Result<std::string> list(Pause& pause) const;
  /// Hands over the lines of a watch from `version` on, until the server ends it, or `handle`
  /// returns false. Ending is no error.
  base::Result<void> watch(const std::string& version, Pause& pause,
                           const std::function<bool(std::string_view line)>& handle) const;

  struct Attempt {
    Outcome outcome = Outcome::kDone;
    std::string error;  ///< empty: done
    Pause retry_after{0};
  };
  Attempt write(const Write& write) const;

 private:
  static Attempt failed(const base::Error& error);
  static Attempt attempt_of(const Write& write, const http::Response& response);
  base::Result<http::Response> send(const ApiRequest& request) const;
  base::Result<http::RequestFields> fields(const ApiRequest& request) const;
  tls::Server server() const;
  Attempt write(const NodeWrite& write) const;
  Attempt write(const ConditionWrite& write) const;
  Attempt write(const EventWrite& write) const;

  const base::Clock& clock_;
  Address address_;
  Account account_;
  std::string node_;
  bool taints_;
};

/// What a status of the API server says about a write.
Outcome outcome_of(const Write& write, int status);

}  // namespace ka::cluster
