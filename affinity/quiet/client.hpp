// SPDX-License-Identifier: Apache-2.0
// Asks kata-affinity-helper from the loop: one request at a time, the newest wins. It has a
// connection only while it asks.
#pragma once

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <filesystem>
#include <functional>
#include <optional>

#include "base/backoff.hpp"
#include "base/clock.hpp"
#include "base/http/query.hpp"
#include "base/result.hpp"
#include "base/rpc/timer.hpp"
#include "policy/facts/id_set.hpp"
#include "policy/facts/quiet.hpp"

namespace ka::quiet {

struct ClientOptions {
  std::filesystem::path socket;
  std::chrono::milliseconds deadline{20'000};  ///< systemd may take seconds for a unit
  std::chrono::milliseconds first_pause{1'000};
  std::chrono::milliseconds last_pause{30'000};
};

class Client {
 public:
  /// kConflict: refused, and not asked again. Any other error: it does not answer, and is asked
  /// again after a pause. May call request(), and must not destroy the client.
  using Answered =
      std::function<void(const policy::CpuSet& sent, base::Result<policy::QuietState> answer)>;

  /// `io` and `clock` must outlive it.
  Client(boost::asio::io_context& io, const base::Clock& clock, ClientOptions options,
         Answered answered);
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  ~Client() = default;

  /// Asks to keep the host off these CPUs when what is asked now is answered, or the pause after a
  /// failure is over.
  void request(policy::CpuSet cpus);

 private:
  void query_in(std::chrono::milliseconds pause);
  void query();
  void record(const base::Result<http::Response>& response);
  void finish(base::Result<policy::QuietState> answer);

  boost::asio::io_context& io_;
  const base::Clock& clock_;
  ClientOptions options_;
  Answered answered_;
  base::Backoff backoff_;
  rpc::Timer next_;                   ///< when it asks
  std::optional<http::Query> query_;  ///< while an answer is awaited
  policy::CpuSet sent_;               ///< by that query
  policy::CpuSet wanted_;             ///< what is asked next
  bool wants_ = false;                ///< it asks when it may
};

}  // namespace ka::quiet
