// SPDX-License-Identifier: Apache-2.0
// Asks kata-affinity-helper from the loop: one request at a time, the newest wins. It has a
// connection only while it asks.
#pragma once

#include <sys/socket.h>

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <filesystem>
#include <functional>
#include <optional>
#include <utility>

#include "affinity/helper_client/document.hpp"
#include "base/backoff.hpp"
#include "base/clock.hpp"
#include "base/http/query.hpp"
#include "base/result.hpp"
#include "base/rpc/timer.hpp"
#include "base/unix_socket.hpp"

namespace ka::helper_client {

/// Where the helper is.
struct Places {
  std::filesystem::path socket;
  std::filesystem::path run;  ///< below it is its own record of what it changed
};

struct ClientOptions {
  std::filesystem::path socket;
  std::chrono::milliseconds deadline{20'000};  ///< systemd may take seconds for a unit
  std::chrono::milliseconds first_pause{1'000};
  std::chrono::milliseconds last_pause{30'000};
};

/// One verb of the helper's: the whole of what is Wanted, and the State that it comes to.
///
///     static http::Request request(const Wanted& wanted);
///     static base::Result<State> read(std::string_view document);
template <typename Verb>
class Client {
 public:
  using Wanted = typename Verb::Wanted;
  using State = typename Verb::State;

  /// kConflict: refused, and not asked again. Any other error: it does not answer, and is asked
  /// again after a pause. May call request(), and must not destroy the client.
  using Answered = std::function<void(const Wanted& sent, base::Result<State> answer)>;

  /// `io` and `clock` must outlive it.
  Client(boost::asio::io_context& io, const base::Clock& clock, ClientOptions options,
         Answered answered)
      : io_(io),
        clock_(clock),
        options_(std::move(options)),
        answered_(std::move(answered)),
        backoff_(options_.first_pause, options_.last_pause),
        next_(io, clock) {}
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  ~Client() = default;

  /// Asks for this when what is asked now is answered, or the pause after a failure is over, which
  /// is not cut short.
  void request(Wanted wanted) {
    wanted_ = std::move(wanted);
    if (!std::exchange(wants_, true) && !query_) query_in({});
  }

 private:
  void query_in(std::chrono::milliseconds pause) {
    next_.in(pause, [this] { query(); });
  }

  void query() {
    wants_ = false;
    sent_ = wanted_;
    auto connected = base::connect_unix(options_.socket);
    if (!connected) return finish(unexpected(connected.error()));
    query_.emplace(io_, clock_, std::move(*connected), Verb::request(sent_), options_.deadline,
                   [this](const base::Result<http::Response>& response) { record(response); });
  }

  void record(const base::Result<http::Response>& response) {
    auto answer = response.and_then(document_in).and_then(Verb::read);
    query_.reset();
    if (!answer && answer.error().code != base::ErrorCode::kConflict) {
      answer.error().message = options_.socket.string() + ": " + answer.error().message;
    }
    finish(std::move(answer));
  }

  void finish(base::Result<State> answer) {
    const bool is_answer = answer || answer.error().code == base::ErrorCode::kConflict;
    if (is_answer) {
      backoff_.reset();
      if (wants_) query_in({});
    } else {
      wants_ = true;
      query_in(backoff_.next());
    }
    answered_(sent_, std::move(answer));
  }

  boost::asio::io_context& io_;
  const base::Clock& clock_;
  ClientOptions options_;
  Answered answered_;
  base::Backoff backoff_;
  rpc::Timer next_;                   ///< when it asks
  std::optional<http::Query> query_;  ///< while an answer is awaited
  Wanted sent_;                       ///< by that query
  Wanted wanted_;                     ///< what is asked next
  bool wants_ = false;                ///< it asks when it may
};

}  // namespace ka::helper_client
