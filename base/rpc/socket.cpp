// SPDX-License-Identifier: Apache-2.0
#include "base/rpc/socket.hpp"

#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>
#include <deque>

namespace ka::rpc {
namespace {

using boost::system::error_code;

constexpr std::size_t kReadSize = 64 << 10;

}  // namespace

/// Kept alive by the operations under way; `events_` is emptied when the owner goes.
class Socket::Impl : public std::enable_shared_from_this<Impl> {
 public:
  Impl(boost::asio::io_context& io, base::Fd fd, Events events)
      : socket_(io, boost::asio::local::stream_protocol(), fd.release()),
        events_(std::move(events)) {}

  void read() {
    socket_.async_read_some(boost::asio::buffer(buffer_),
                            [self = shared_from_this()](const error_code& error, std::size_t size) {
                              self->on_read(error, size);
                            });
  }

  void send(std::string bytes) {
    if (!socket_.is_open()) return;
    unwritten_ += bytes.size();
    queue_.push_back(std::move(bytes));
    if (unwritten_ > kMaxUnwritten) return fail("the peer does not read");
    if (queue_.size() == 1) write();
  }

  void abandon() {
    events_ = {};
    close();
  }

 private:
  void on_read(const error_code& error, std::size_t size) {
    if (error)
      return fail(error == boost::asio::error::eof ? "closed by the peer" : error.message());
    // What `bytes` calls may end this connection, and with it the function itself.
    const auto bytes = events_.bytes;
    if (bytes) bytes({buffer_.data(), size});
    if (socket_.is_open()) read();
  }

  void write() {
    boost::asio::async_write(socket_, boost::asio::buffer(queue_.front()),
                             [self = shared_from_this()](const error_code& error, std::size_t) {
                               self->on_written(error);
                             });
  }

  void on_written(const error_code& error) {
    if (error) return fail(error.message());
    unwritten_ -= queue_.front().size();
    queue_.pop_front();
    if (!queue_.empty() && socket_.is_open()) write();
  }

  void fail(const std::string& reason) {
    if (!socket_.is_open()) return;
    close();
    boost::asio::post(socket_.get_executor(), [self = shared_from_this(), reason] {
      const auto closed = std::exchange(self->events_, {}).closed;
      if (closed) closed(reason);
    });
  }

  void close() {
    error_code ignored;
    socket_.close(ignored);
  }

  boost::asio::local::stream_protocol::socket socket_;
  Events events_;
  std::array<char, kReadSize> buffer_{};
  std::deque<std::string> queue_;
  std::size_t unwritten_ = 0;
};

Socket::Socket(boost::asio::io_context& io, base::Fd connected, Events events)
    : impl_(std::make_shared<Impl>(io, std::move(connected), std::move(events))) {
  impl_->read();
}

Socket::~Socket() { impl_->abandon(); }

void Socket::send(std::string bytes) { impl_->send(std::move(bytes)); }

}  // namespace ka::rpc
