// SPDX-License-Identifier: Apache-2.0
#include "base/http/server.hpp"

#include <sys/socket.h>

#include <array>
#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/basic_stream_socket.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>
#include <cerrno>
#include <cstdio>
#include <deque>
#include <list>
#include <optional>
#include <system_error>
#include <utility>

#include "base/descriptors.hpp"
#include "base/http/feed.hpp"
#include "base/rpc/timer.hpp"

namespace ka::http {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using boost::system::error_code;
using Protocol = asio::generic::stream_protocol;
using Socket = asio::basic_stream_socket<Protocol, asio::io_context::executor_type>;

/// What a client that was refused may still send before it is cut off: enough for it to finish
/// sending and to read why.
constexpr std::size_t kDrainLimit = 64 << 20;

bool is_parse_error(const error_code& error) {
  return error.category() == http::make_error_code(http::error::bad_method).category();
}

/// The client went away, or was cut off: nothing is wrong on this side.
bool is_of_client(const error_code& error) {
  return error == asio::error::eof || error == asio::error::operation_aborted ||
         error == asio::error::connection_reset || error == asio::error::broken_pipe ||
         error == http::error::end_of_stream || error == http::error::partial_message;
}

Response refusal(const error_code& error, const Limits& limits) {
  if (error == http::error::body_limit) {
    return error_response(413, "the body is larger than " + std::to_string(limits.body) + " bytes");
  }
  if (error == http::error::header_limit || error == http::error::buffer_overflow) {
    return error_response(
        431, "the request's header is larger than " + std::to_string(limits.header) + " bytes");
  }
  return error_response(400, "not an HTTP/1.1 request: " + error.message());
}

/// Absent for a socket that is no unix socket: it has no process at its end.
std::optional<Peer> peer_of(int socket) {
  ucred credentials{};
  socklen_t size = sizeof credentials;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) return {};
  if (credentials.pid <= 0) return {};
  return Peer{credentials.uid, credentials.pid};
}

class Connection;

/// What the connections of a server share. `reading` are those that wait for a request, the one
/// that has waited for longest first.
struct Shared {
  asio::io_context& io;
  const base::Clock& clock;
  Handler handler;
  OnTrouble on_trouble;
  Limits limits;
  std::list<Connection*> reading;
  std::list<Connection*> busy;
  std::size_t streams = 0;
};

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(Socket socket, std::shared_ptr<Shared> shared)
      : socket_(std::move(socket)),
        shared_(std::move(shared)),
        limit_(shared_->io, shared_->clock),
        buffer_(shared_->limits.header) {
    place_ = shared_->busy.insert(shared_->busy.end(), this);
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection() {
    if (queue_) --shared_->streams;
    (is_reading_ ? shared_->reading : shared_->busy).erase(place_);
  }

  void read() {
    parser_.emplace();
    parser_->header_limit(static_cast<std::uint32_t>(shared_->limits.header));
    parser_->body_limit(shared_->limits.body);
    set_reading(true);
    limit_.in(shared_->limits.read, [this] { close(); });
    http::async_read_header(
        socket_, buffer_, *parser_,
        [self = shared_from_this()](error_code error, std::size_t) { self->on_header(error); });
  }

  void fail(const error_code& error) {
    if (!is_of_client(error)) shared_->on_trouble("cannot serve a client: " + error.message());
    close();
  }

  /// Everything that waits for this client ends with an error, and with the last such handler the
  /// connection itself.
  void close() {
    limit_.cancel();
    subscription_.reset();
    set_reading(false);
    error_code ignored;
    socket_.close(ignored);
  }

 private:
  void on_header(error_code error) {
    if (error) return on_read_error(error);
    if (beast::iequals(parser_->get()[http::field::expect], "100-continue")) return send_continue();
    read_body();
  }

  void send_continue() {
    static constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
    asio::async_write(socket_, asio::buffer(kContinue),
                      [self = shared_from_this()](error_code error, std::size_t) {
                        if (error) return self->fail(error);
                        self->read_body();
                      });
  }

  void read_body() {
    http::async_read(
        socket_, buffer_, *parser_,
        [self = shared_from_this()](error_code error, std::size_t) { self->on_request(error); });
  }

  void on_request(error_code error) {
    if (error) return on_read_error(error);
    limit_.cancel();
    set_reading(false);
    http::request<http::string_body>& message = parser_->get();
    keep_alive_ = message.keep_alive();
    const Request request{std::string(message.method_string()), std::string(message.target()),
                          std::move(message.body()), peer_of(socket_.native_handle())};
    Response response = shared_->handler(request);
    if (response.later) return respond_later(response.later);
    if (response.feed == nullptr) return respond(std::move(response));
    if (shared_->streams == shared_->limits.streams) {
      return respond(error_response(503, "too many event streams"));
    }
    start_stream(*response.feed, response.content_type);
  }

  void respond_later(const Response::Later& later) {
    later([self = shared_from_this()](Response response) { self->respond(std::move(response)); });
  }

  /// A client that went away or was too slow needs no answer; one that sent nonsense gets one.
  void on_read_error(error_code error) {
    if (!is_parse_error(error) || is_of_client(error)) return fail(error);
    set_reading(false);
    keep_alive_ = false;
    respond(refusal(error, shared_->limits));
  }

  void respond(Response response) {
    answer_.emplace(static_cast<http::status>(response.status), 11, std::move(response.body));
    answer_->set(http::field::content_type, response.content_type);
    if (!response.allow.empty()) answer_->set(http::field::allow, response.allow);
    answer_->keep_alive(keep_alive_);
    answer_->prepare_payload();
    limit_.in(shared_->limits.write, [this] { close(); });
    http::async_write(
        socket_, *answer_,
        [self = shared_from_this()](error_code error, std::size_t) { self->on_written(error); });
  }

  void on_written(error_code error) {
    answer_.reset();
    if (error) return fail(error);
    if (keep_alive_) return read();
    socket_.shutdown(asio::socket_base::shutdown_send, error);
    drain();
  }

  /// Closing with unread input would reset the connection and could take the answer with it.
  void drain() {
    socket_.async_read_some(asio::buffer(scrap_),
                            [self = shared_from_this()](error_code error, std::size_t size) {
                              self->drained_ += size;
                              if (error || self->drained_ > kDrainLimit) return self->close();
                              self->drain();
                            });
  }

  void start_stream(Feed& feed, const std::string& content_type) {
    ++shared_->streams;
    queue_.emplace();
    subscription_ = std::make_unique<Feed::Subscription>(
        feed, [this](const Feed::Line& line) { enqueue(line); });
    push(std::make_shared<const std::string>("HTTP/1.1 200 OK\r\nContent-Type: " + content_type +
                                             "\r\nTransfer-Encoding: chunked\r\n\r\n"));
    watch_for_end();
  }

  /// Whatever a listener sends is ignored; that it hangs up is not.
  void watch_for_end() {
    socket_.async_read_some(asio::buffer(scrap_),
                            [self = shared_from_this()](error_code error, std::size_t) {
                              if (error) return self->fail(error);
                              self->watch_for_end();
                            });
  }

  void enqueue(const Feed::Line& line) {
    if (queue_->size() >= shared_->limits.lines_behind) return close();
    char size[20];
    std::snprintf(size, sizeof(size), "%zx\r\n", line->size());
    push(std::make_shared<const std::string>(size + *line + "\r\n"));
  }

  void push(Feed::Line bytes) {
    queue_->push_back(std::move(bytes));
    if (queue_->size() == 1) write_next();
  }

  void write_next() {
    limit_.in(shared_->limits.write, [this] { close(); });
    asio::async_write(socket_, asio::buffer(*queue_->front()),
                      [self = shared_from_this()](error_code error, std::size_t) {
                        if (error) return self->fail(error);
                        self->limit_.cancel();
                        self->queue_->pop_front();
                        if (!self->queue_->empty()) self->write_next();
                      });
  }

  void set_reading(bool reading) {
    if (reading == is_reading_) return;
    std::list<Connection*>& from = is_reading_ ? shared_->reading : shared_->busy;
    std::list<Connection*>& to = reading ? shared_->reading : shared_->busy;
    to.splice(to.end(), from, place_);
    is_reading_ = reading;
  }

  Socket socket_;
  std::shared_ptr<Shared> shared_;
  rpc::Timer limit_;  ///< for what the client is to send or to receive now
  std::list<Connection*>::iterator place_;
  bool is_reading_ = false;
  bool keep_alive_ = false;
  beast::flat_buffer buffer_;
  std::optional<http::request_parser<http::string_body>> parser_;
  std::optional<http::response<http::string_body>> answer_;
  std::array<char, 4096> scrap_;
  std::size_t drained_ = 0;
  std::unique_ptr<Feed::Subscription> subscription_;
  std::optional<std::deque<Feed::Line>> queue_;  ///< of a listener: what it has not taken yet
};

Protocol protocol_of(int fd) {
  int family = AF_UNIX;
  socklen_t size = sizeof(family);
  ::getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &size);
  return {family, 0};
}

/// A descriptor of our own, which the acceptor closes.
int own(int listener) {
  base::Fd fd = base::duplicate(listener);
  if (!fd) throw std::system_error(errno, std::generic_category(), "cannot serve a socket");
  return fd.release();
}

}  // namespace

class Server::Impl : public std::enable_shared_from_this<Impl> {
 public:
  Impl(asio::io_context& io, const base::Clock& clock, int listener, Handler handler,
       OnTrouble on_trouble, const Limits& limits)
      : acceptor_(io, protocol_of(listener), own(listener)),
        pause_(io, clock),
        shared_(std::make_shared<Shared>(
            Shared{io, clock, std::move(handler), std::move(on_trouble), limits, {}, {}, 0})) {}

  void accept() {
    acceptor_.async_accept([self = shared_from_this()](error_code error, Socket socket) {
      self->on_accept(error, std::move(socket));
    });
  }

  base::Result<void> listen(int listener) {
    base::Fd fd = base::duplicate(listener);
    if (!fd) return base::fail_errno(errno, "cannot serve a socket");
    close_acceptor();
    acceptor_.assign(protocol_of(listener), fd.release());
    accept();
    return {};
  }

  void stop() {
    close_acceptor();
    while (!shared_->reading.empty()) shared_->reading.front()->close();
    for (Connection* connection : shared_->busy) connection->close();
  }

 private:
  using Acceptor = asio::basic_socket_acceptor<Protocol, asio::io_context::executor_type>;

  void close_acceptor() {
    error_code ignored;
    acceptor_.close(ignored);
    pause_.cancel();
  }

  void on_accept(error_code error, Socket socket) {
    if (!acceptor_.is_open() || error == asio::error::operation_aborted) return;
    if (error) {
      shared_->on_trouble("cannot accept a connection: " + error.message());
      return wait_and_accept();
    }
    if (make_room()) std::make_shared<Connection>(std::move(socket), shared_)->read();
    accept();
  }

  /// No descriptors left, most likely: trying again at once would only spin.
  void wait_and_accept() {
    pause_.in(std::chrono::milliseconds(100), [this] { accept(); });
  }

  /// False if every connection is being served and none can be closed.
  bool make_room() {
    if (shared_->reading.size() + shared_->busy.size() < shared_->limits.connections) return true;
    if (shared_->reading.empty()) return false;
    shared_->reading.front()->close();
    return true;
  }

  Acceptor acceptor_;
  rpc::Timer pause_;
  std::shared_ptr<Shared> shared_;
};

Server::Server(asio::io_context& io, const base::Clock& clock, int listener, Handler handler,
               OnTrouble on_trouble, Limits limits)
    : impl_(std::make_shared<Impl>(io, clock, listener, std::move(handler), std::move(on_trouble),
                                   limits)) {
  impl_->accept();
}

Server::~Server() { impl_->stop(); }

base::Result<void> Server::listen(int listener) { return impl_->listen(listener); }

}  // namespace ka::http
