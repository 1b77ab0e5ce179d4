// SPDX-License-Identifier: Apache-2.0
// A unix socket of the daemon, and who answers there.
#pragma once

#include <boost/asio/io_context.hpp>
#include <string>

#include "base/clock.hpp"
#include "base/http/listen.hpp"
#include "base/http/server.hpp"
#include "base/log/log.hpp"

namespace ka::daemon {

class Endpoint {
 public:
  struct Context {
    boost::asio::io_context& io;
    const base::Clock& clock;
    const log::Log& log;
  };

  /// `name` is for the log. All but `handler` and `limits` must outlive it.
  Endpoint(Context context, std::string name, http::UnixListener& listener, http::Handler handler,
           http::Limits limits = {});

  /// Listens again where others have removed the socket since the last call, and says so.
  void check();

 private:
  base::Result<void> listen_again();

  Context context_;
  std::string name_;
  http::UnixListener& listener_;
  http::Server server_;
  bool is_served_ = true;  ///< the listener's socket is the server's
  std::string trouble_;    ///< why the socket cannot be made again; empty: it is there
};

}  // namespace ka::daemon
