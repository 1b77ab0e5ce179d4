// SPDX-License-Identifier: Apache-2.0
#include "base/rpc/wait.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace ka::rpc {

Wait::Wait(boost::asio::io_context& io, const base::Clock& clock)
    : clock_(clock), timer_(io, clock), ended_(io) {}

boost::asio::awaitable<void> Wait::wait() {
  if (due_ <= clock_.now()) co_return;
  ended_.expires_at(boost::asio::steady_timer::time_point::max());
  timer_.at(due_, [this] { ended_.cancel(); });
  co_await ended_.async_wait(boost::asio::as_tuple(boost::asio::use_awaitable));
  timer_.cancel();
}

void Wait::cancel() {
  timer_.cancel();
  ended_.cancel();
}

}  // namespace ka::rpc
