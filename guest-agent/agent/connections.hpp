// SPDX-License-Identifier: Apache-2.0
// The agent's conversations: sockets that a host connects to, and the serial line.
#pragma once

#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "guest-agent/agent/agent.hpp"
#include "guest-agent/agent/loop.hpp"
#include "guest-agent/agent/openings.hpp"
#include "guest-agent/agent/session.hpp"
#include "guest-agent/protocol/line.hpp"

namespace ka::agent {

/// A host on a socket.
class Connection {
 public:
  Connection(base::Fd fd, Agent& agent) : fd_(std::move(fd)), session_(agent) {}

  int fd() const { return fd_.get(); }
  /// Each returns whether the connection continues.
  bool readable();
  bool writable();
  bool notify();
  bool has_unwritten() const { return !out_.empty(); }
  bool greeted() const { return session_.greeted(); }
  /// The errno with which the last read failed, where a peer that went away is not why; 0: none.
  int unread() const { return unread_; }

 private:
  base::Fd fd_;
  Session session_;
  int unread_ = 0;
  std::string out_;
};

/// A host behind a virtio-serial port. It is there as soon as its mark is.
class SerialLine {
 public:
  SerialLine(base::Fd fd, Agent& agent) : fd_(std::move(fd)), agent_(agent) {}

  int fd() const { return fd_.get(); }
  /// Reads and writes as much as possible. False: the port was removed.
  bool ready();
  bool notify();

 private:
  void receive(std::string_view bytes);

  base::Fd fd_;
  Agent& agent_;
  guest::LineScanner scanner_;
  std::optional<Session> session_;
  std::string out_;
};

/// All of them, on the loop.
class Connections {
 public:
  /// One more takes the place of the one that was silent for longest, of those that have not said
  /// hello where there are any: an idle peer cannot keep the host out.
  static constexpr std::size_t kMost = 8;

  using Retry = std::function<void(Openings::Open, const base::Error& failed)>;

  /// All must outlive it. `on_request` runs after each request of a host; `retry` runs what it is
  /// given until that is done: a listener that can accept nobody is not watched meanwhile.
  Connections(Loop& loop, Agent& agent, std::function<void()> on_request, Retry retry);

  /// Accepts hosts there. Not done: epoll refused it.
  base::Result<void> listen(base::Result<base::Fd> listener);
  void use_serial(base::Fd port);
  bool has_serial() const { return serial_ != nullptr; }
  /// Sends the new report to peers that wait for one.
  void notify();

 private:
  base::Result<void> watch(int listener);
  void on_listener(int listener);
  base::Result<void> accept(int listener);
  void admit(base::Fd fd);
  void make_room();
  void on_event(int fd, std::uint32_t events);
  void on_serial();
  void print_unread(int number);
  void close_or_rearm(int fd, bool goes_on);

  Loop& loop_;
  Agent& agent_;
  std::function<void()> on_request_;
  Retry retry_;
  std::list<base::Fd> listeners_;
  std::map<int, Connection> connections_;
  std::list<int> by_silence_;  ///< all of them, the one that was silent for longest first
  std::unique_ptr<SerialLine> serial_;
  int printed_ = 0;  ///< the errno that was printed last
};

}  // namespace ka::agent
