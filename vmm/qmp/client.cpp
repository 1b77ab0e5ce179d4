// SPDX-License-Identifier: Apache-2.0
#include "vmm/qmp/client.hpp"

#include <algorithm>
#include <array>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/json/object.hpp>
#include <map>
#include <optional>
#include <utility>

#include "base/backoff.hpp"
#include "base/rpc/timer.hpp"
#include "base/rpc/wait.hpp"
#include "vmm/address/qmp_socket.hpp"
#include "vmm/qmp/answers.hpp"
#include "vmm/qmp/intake.hpp"
#include "vmm/qmp/session.hpp"

namespace ka::qmp {
namespace {

namespace asio = boost::asio;
namespace json = boost::json;

using boost::system::error_code;

// Errors as values: co_await gives (error_code, result).
constexpr auto kAwait = asio::as_tuple(asio::use_awaitable);

// Events after which vCPUs or iothreads may be others (qapi/qdev.json, acpi.json, run-state.json).
constexpr std::array<std::string_view, 4> kVcpuEvents = {"DEVICE_DELETED", "ACPI_DEVICE_OST",
                                                         "DEVICE_UNPLUG_GUEST_ERROR", "RESET"};

/// ENOENT of connect(2) is kGone, all else kUnavailable. Asio has errors that are no errno: "end of
/// file" is number 2 of a category of its own.
base::Error connection_error(const error_code& error) {
  const bool is_errno = error.category() == boost::system::system_category();
  const bool gone = is_errno && base::classify_errno(error.value()) == base::ErrorCode::kGone;
  return {gone ? base::ErrorCode::kGone : base::ErrorCode::kUnavailable,
          "QMP connection: " + error.message(), is_errno ? error.value() : 0};
}

base::Error closed_error() { return {base::ErrorCode::kUnavailable, "QMP connection closed", 0}; }

}  // namespace

/// Two coroutines share it, and with it the state of one connection: `serve` connects and reads,
/// `keep_facts` asks. Only keep_facts writes once the session is ready.
class Client::Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(asio::io_context& io, const base::Clock& clock, vmm::MonitorOptions options,
             vmm::MonitorHandlers handlers)
      : io_(io),
        clock_(clock),
        options_(std::move(options)),
        handlers_(std::move(handlers)),
        socket_(io),
        pause_(io, clock),
        greeting_deadline_(io, clock),
        intake_(clock.now()),
        intake_pause_(io, clock),
        wanted_(io),
        round_(io, clock) {}

  void start();
  void stop();
  void refresh();
  bool connected() const { return session_ && session_->ready() && socket_.is_open(); }

 private:
  /// A command under way. Its wait ends with the deadline, with the response, or with the
  /// connection.
  struct Pending {
    Pending(asio::io_context& io, const base::Clock& clock) : response(io, clock) {}

    rpc::Wait response;
    std::string bytes;
    std::optional<base::Result<json::value>> result;
  };

  static asio::awaitable<void> serve(std::shared_ptr<Connection> self);
  static asio::awaitable<void> keep_facts(std::shared_ptr<Connection> self);

  asio::awaitable<base::Error> talk();
  base::Result<void> check_server() const;
  asio::awaitable<base::Error> receive();
  asio::awaitable<base::Result<json::value>> execute(std::string_view name, json::object arguments);
  asio::awaitable<base::Result<std::map<std::string, int>>> query_apic_ids(std::vector<Cpu> cpus);
  asio::awaitable<base::Result<vmm::MonitorFacts>> query_facts();

  void begin_greeting_deadline();
  void handle(News&& news);
  void give_up(std::string reason);
  void close();
  void report(const base::Error& error) const;

  asio::io_context& io_;
  const base::Clock& clock_;
  vmm::MonitorOptions options_;
  vmm::MonitorHandlers handlers_;
  bool stopped_ = false;

  asio::local::stream_protocol::socket socket_;
  rpc::Wait pause_;
  rpc::Timer greeting_deadline_;
  Intake intake_;           ///< of the server, over all connections
  rpc::Wait intake_pause_;  ///< credit of a server that sends too much
  std::string late_;        ///< the request that timed out
  std::optional<Session> session_;
  std::map<std::string, std::shared_ptr<Pending>> pending_;
  /// APIC ids by qom path, with the thread that they were asked for: they never change while it
  /// lives.
  std::map<std::string, std::pair<int, int>> apic_ids_;

  asio::steady_timer wanted_;  ///< never runs out: cancelled, it resumes keep_facts
  bool refresh_wanted_ = false;
  rpc::Wait round_;  ///< when the next round may begin
};

void Client::Connection::start() {
  asio::co_spawn(io_, serve(shared_from_this()), asio::detached);
  asio::co_spawn(io_, keep_facts(shared_from_this()), asio::detached);
}

void Client::Connection::stop() {
  stopped_ = true;
  handlers_ = {};
  close();
  pause_.cancel();
  wanted_.cancel();
  round_.cancel();
}

void Client::Connection::refresh() {
  refresh_wanted_ = true;
  wanted_.cancel();
}

/// Ends the connection; pending requests fail.
void Client::Connection::close() {
  error_code ignored;
  socket_.close(ignored);
  greeting_deadline_.cancel();
  intake_pause_.cancel();
  session_.reset();
  apic_ids_.clear();
  for (auto& [id, pending] : pending_) pending->response.cancel();
  pending_.clear();
}

/// Breaks the connection, so that `talk` ends with `reason`.
void Client::Connection::give_up(std::string reason) {
  late_ = std::move(reason);
  error_code ignored;
  socket_.close(ignored);
}

void Client::Connection::report(const base::Error& error) const {
  // A copy: the handler may destroy the client, and with it itself.
  const auto failed = handlers_.failed;
  if (failed) failed(error);
}

asio::awaitable<void> Client::Connection::serve(std::shared_ptr<Connection> self) {
  base::Backoff backoff(self->options_.first_pause, self->options_.last_pause);
  while (!self->stopped_) {
    self->session_.emplace();
    const base::Error error = co_await self->talk();
    if (self->stopped_) break;
    if (self->session_->ready()) backoff.reset();
    self->close();
    self->report(error);
    if (self->stopped_) break;
    self->pause_.set(backoff.next());
    co_await self->pause_.wait();
  }
}

/// A QEMU that serves another client accepts the connection and sends nothing.
void Client::Connection::begin_greeting_deadline() {
  late_.clear();
  greeting_deadline_.in(options_.deadline, [this] {
    if (connected()) return;
    give_up("no greeting (QEMU serves one client per socket, and may have one already)");
  });
}

/// Connects and listens until that fails; why it did.
asio::awaitable<base::Error> Client::Connection::talk() {
  const std::string name = options_.socket.string();
  begin_greeting_deadline();
  const auto [failed] =
      co_await socket_.async_connect(asio::local::stream_protocol::endpoint(name), kAwait);
  base::Error error;
  if (failed) {
    error = connection_error(failed);
  } else if (const auto allowed = check_server(); !allowed) {
    error = allowed.error();
  } else {
    error = co_await receive();
  }
  if (!late_.empty()) error = {base::ErrorCode::kUnavailable, late_, 0};
  co_return base::error_in(name, error);
}

/// What is at the path now may be another server than when the client was started.
base::Result<void> Client::Connection::check_server() const {
  error_code failed;
  const auto server = socket_.remote_endpoint(failed);
  if (failed) return unexpected(connection_error(failed));
  return vmm::check_qmp_server(server.path());
}

/// A server that sends faster than it is read waits in its own write: its events are none of ours.
asio::awaitable<base::Error> Client::Connection::receive() {
  std::array<char, 16384> chunk{};
  while (session_) {
    const auto [error, size] = co_await socket_.async_read_some(asio::buffer(chunk), kAwait);
    if (error) co_return connection_error(error);
    if (!session_) break;
    auto received = session_->feed(std::string_view(chunk.data(), size));
    if (!received) co_return std::move(received.error());
    for (News& news : received->news) {
      if (session_) handle(std::move(news));
    }
    if (!received->to_send.empty()) {
      const auto [failed, sent] =
          co_await asio::async_write(socket_, asio::buffer(received->to_send), kAwait);
      if (failed) co_return connection_error(failed);
    }
    const auto pause = intake_.spend(size, clock_.now());
    if (pause == Intake::Clock::duration::zero() || !session_) continue;
    intake_pause_.set(pause);
    co_await intake_pause_.wait();
  }
  co_return closed_error();
}

void Client::Connection::handle(News&& news) {
  if (auto* answer = std::get_if<Answer>(&news)) {
    const auto entry = pending_.find(answer->id);
    if (entry == pending_.end()) return;
    entry->second->result = std::move(answer->result);
    entry->second->response.cancel();
    pending_.erase(entry);
  } else if (const auto* event = std::get_if<Event>(&news)) {
    if (std::ranges::find(kVcpuEvents, event->name) != kVcpuEvents.end()) refresh();
  } else {
    greeting_deadline_.cancel();
    refresh();
  }
}

/// A server that misses the deadline loses the connection: any later response would be stale.
asio::awaitable<base::Result<json::value>> Client::Connection::execute(std::string_view name,
                                                                       json::object arguments) {
  if (!connected()) co_return unexpected(closed_error());
  Session::Command command = session_->command(name, arguments);
  const auto pending = std::make_shared<Pending>(io_, clock_);
  pending->bytes = std::move(command.bytes);
  pending->response.set(options_.deadline);
  pending_.emplace(command.id, pending);
  asio::async_write(socket_, asio::buffer(pending->bytes),
                    [pending](const error_code&, std::size_t) {});
  co_await pending->response.wait();
  if (pending->result) co_return std::move(*pending->result);
  if (pending_.erase(command.id) == 0) co_return unexpected(closed_error());
  give_up("no response to " + std::string(name) + " in time");
  co_return unexpected(closed_error());
}

/// Machines whose vCPUs have no such property (not x86) refuse: those have no APIC ids.
asio::awaitable<base::Result<std::map<std::string, int>>> Client::Connection::query_apic_ids(
    std::vector<Cpu> cpus) {
  std::map<std::string, int> found;
  for (const Cpu& cpu : cpus) {
    const auto known = apic_ids_.find(cpu.qom_path);
    if (known == apic_ids_.end() || known->second.first != cpu.tid) {
      const json::object arguments{{"path", cpu.qom_path}, {"property", "apic-id"}};
      const auto answer = co_await execute("qom-get", arguments);
      if (!connected()) co_return unexpected(answer.error());
      const auto id = answer ? read_apic_id(*answer) : unexpected(answer.error());
      if (!id) continue;
      apic_ids_[cpu.qom_path] = {cpu.tid, *id};
    }
    found[cpu.qom_path] = apic_ids_[cpu.qom_path].second;
  }
  co_return found;
}

asio::awaitable<base::Result<vmm::MonitorFacts>> Client::Connection::query_facts() {
  const json::object none;
  const auto cpus_answer = co_await execute("query-cpus-fast", none);
  if (!cpus_answer) co_return unexpected(cpus_answer.error());
  const auto cpus = read_cpus(*cpus_answer);
  if (!cpus) co_return unexpected(cpus.error());
  const auto iothreads_answer = co_await execute("query-iothreads", none);
  if (!iothreads_answer) co_return unexpected(iothreads_answer.error());
  auto iothreads = read_iothreads(*iothreads_answer);
  if (!iothreads) co_return unexpected(iothreads.error());
  // Machines that cannot plug vCPUs (microvm, none) refuse: they have no more slots than vCPUs.
  const auto slots_answer = co_await execute("query-hotpluggable-cpus", none);
  if (!slots_answer && !connected()) co_return unexpected(slots_answer.error());
  const auto slots = slots_answer ? read_slots(*slots_answer) : std::vector<Slot>{};
  if (!slots) co_return unexpected(slots.error());
  const auto apic_ids = co_await query_apic_ids(*cpus);
  if (!apic_ids) co_return unexpected(apic_ids.error());
  co_return compose(*cpus, *slots, *apic_ids, std::move(*iothreads));
}

asio::awaitable<void> Client::Connection::keep_facts(std::shared_ptr<Connection> self) {
  while (!self->stopped_) {
    if (!self->refresh_wanted_ || !self->connected()) {
      self->wanted_.expires_at(asio::steady_timer::time_point::max());
      co_await self->wanted_.async_wait(kAwait);
      continue;
    }
    co_await self->round_.wait();
    if (!self->connected()) continue;
    self->round_.set(kBetweenRounds);
    self->refresh_wanted_ = false;
    auto facts = co_await self->query_facts();
    if (!facts) {
      // A broken connection is reported by `serve`, which knows why.
      if (self->connected()) self->report(facts.error());
      continue;
    }
    const auto on_facts = self->handlers_.facts;
    if (on_facts) on_facts(std::move(*facts));
  }
}

std::optional<std::filesystem::path> find_socket(const vmm::Probe& probe) {
  return probe.named_socket.empty() ? std::nullopt : std::optional(probe.named_socket);
}

base::Result<std::unique_ptr<vmm::Monitor>> Client::start(asio::io_context& io,
                                                          const base::Clock& clock,
                                                          vmm::MonitorOptions options,
                                                          vmm::MonitorHandlers handlers) {
  if (auto allowed = vmm::check_qmp_socket(options.socket); !allowed) {
    return unexpected(std::move(allowed.error()));
  }
  auto connection =
      std::make_shared<Connection>(io, clock, std::move(options), std::move(handlers));
  connection->start();
  return std::unique_ptr<vmm::Monitor>(new Client(std::move(connection)));
}

Client::Client(std::shared_ptr<Connection> connection) : connection_(std::move(connection)) {}

Client::~Client() { connection_->stop(); }

void Client::refresh() { connection_->refresh(); }

}  // namespace ka::qmp
