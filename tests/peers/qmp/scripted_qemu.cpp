// SPDX-License-Identifier: Apache-2.0
#include "tests/peers/qmp/scripted_qemu.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

namespace ka::tests {
namespace {

constexpr int kTimeout = 10000;  // milliseconds

bool readable(int fd) {
  pollfd entry{.fd = fd, .events = POLLIN, .revents = 0};
  return ::poll(&entry, 1, kTimeout) == 1;
}

void close_fd(int& fd) {
  if (fd >= 0) ::close(fd);
  fd = -1;
}

}  // namespace

ScriptedQemu::ScriptedQemu(std::filesystem::path socket, std::vector<Step> script)
    : path_(std::move(socket)), script_(std::move(script)) {
  listener_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path_.native().copy(address.sun_path, sizeof address.sun_path - 1);
  if (::bind(listener_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(listener_, 4) != 0) {
    failure_ = "cannot listen";
    return;
  }
  thread_ = std::thread([this] { run(); });
}

ScriptedQemu::~ScriptedQemu() {
  failure();
  close_fd(client_);
  close_fd(listener_);
}

std::string ScriptedQemu::failure() {
  if (thread_.joinable()) thread_.join();
  return failure_;
}

void ScriptedQemu::run() {
  for (const Step& step : script_) {
    if (client_ < 0 && !accept()) return;
    if (!play(step)) return;
    ++steps_;
  }
}

bool ScriptedQemu::accept() {
  if (readable(listener_)) client_ = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
  if (client_ < 0) failure_ = "no client came";
  buffer_.clear();
  return client_ >= 0;
}

bool ScriptedQemu::play(const Step& step) {
  if (step.kind == Step::Kind::kSay) {
    send(step.reply);
    return true;
  }
  if (step.kind == Step::Kind::kHangUp) {
    close_fd(client_);
    return true;
  }
  const std::string line = read_line();
  if (step.kind == Step::Kind::kWait) {
    if (!line.empty()) failure_ = "expected the end, got " + line;
    close_fd(client_);
    return failure_.empty();
  }
  boost::json::error_code error;
  const boost::json::value request = boost::json::parse(line, error);
  if (error || !request.is_object() || request.at("execute") != boost::json::value(step.name)) {
    failure_ = "expected " + step.name + ", got \"" + line + '"';
    return false;
  }
  std::string reply = step.reply;
  if (const std::size_t at = reply.find("$ID"); at != std::string::npos) {
    reply.replace(at, 3, boost::json::serialize(request.as_object().at("id")));
  }
  send(reply);
  return true;
}

/// Empty when the client hung up or says nothing.
std::string ScriptedQemu::read_line() {
  for (;;) {
    const std::size_t end = buffer_.find("\r\n");
    if (end != std::string::npos) {
      const std::string line = buffer_.substr(0, end);
      buffer_.erase(0, end + 2);
      return line;
    }
    std::array<char, 4096> chunk{};
    if (!readable(client_)) return {};
    const ssize_t got = ::read(client_, chunk.data(), chunk.size());
    if (got <= 0) return {};
    buffer_.append(chunk.data(), static_cast<std::size_t>(got));
  }
}

void ScriptedQemu::send(const std::string& text) const {
  // The client may have hung up: then the next step notices.
  static_cast<void>(::send(client_, text.data(), text.size(), MSG_NOSIGNAL));
}

}  // namespace ka::tests
