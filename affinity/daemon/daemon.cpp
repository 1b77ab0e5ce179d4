// SPDX-License-Identifier: Apache-2.0
#include "affinity/daemon/daemon.hpp"

#include <sys/stat.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <csignal>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "affinity/api/router.hpp"
#include "affinity/board/board.hpp"
#include "affinity/config/config.hpp"
#include "affinity/containers/container_files.hpp"
#include "affinity/daemon/container_hooks.hpp"
#include "affinity/daemon/endpoint.hpp"
#include "affinity/daemon/helper_clients.hpp"
#include "affinity/daemon/prerequisites.hpp"
#include "affinity/daemon/service.hpp"
#include "affinity/daemon/source_node.hpp"
#include "affinity/daemon/sources.hpp"
#include "affinity/daemon/ticker.hpp"
#include "affinity/guests/guests.hpp"
#include "affinity/host/affinity_calls.hpp"
#include "affinity/host/cpuset_writer.hpp"
#include "affinity/host/node_memory.hpp"
#include "affinity/host/topology.hpp"
#include "affinity/line/line.hpp"
#include "affinity/line/node.hpp"
#include "affinity/line/requests.hpp"
#include "affinity/line/verifier.hpp"
#include "affinity/managed/manager.hpp"
#include "affinity/managed/release.hpp"
#include "affinity/managed/takeover.hpp"
#include "affinity/memory/memory_keeper.hpp"
#include "affinity/memory/memory_worker.hpp"
#include "affinity/registry/registry.hpp"
#include "affinity/state/store.hpp"
#include "affinity/watches/watches.hpp"
#include "base/clock.hpp"
#include "base/descriptors.hpp"
#include "base/http/server.hpp"
#include "base/log/log.hpp"
#include "base/process.hpp"
#include "base/rpc/timer.hpp"

namespace ka::daemon {
namespace {

using base::Result;

constexpr const char* kSys = "/sys";

line::Options to_line_options(const config::Config& config) {
  return {.enable = config.enable,
          .observe = config.mode == config::Mode::kObserve,
          .quiet = config.quiet,
          .settings = config.defaults,
          .by_handler = {config.by_handler.begin(), config.by_handler.end()},
          .classes = config.classes};
}

class Daemon {
 public:
  Daemon(boost::asio::io_context& io, const base::Clock& clock, boost::asio::signal_set& signals,
         const Options& options, Prerequisites prerequisites)
      : io_(io),
        options_(options),
        prerequisites_(std::move(prerequisites)),
        log_(prerequisites_.config.log_level, clock),
        clock_(clock),
        cpusets_(clock),
        store_(prerequisites_.state_dir, prerequisites_.boot_id, log_,
               std::move(prerequisites_.state_lock)),
        board_(clock_),
        registry_(store_, board_, log_, clock_),
        node_(prerequisites_.topology, to_line_options(prerequisites_.config), options.roots,
              {calls_, cpusets_}, registry_, board_, clock_),
        line_(node_),
        helper_(io, clock_, line_, prerequisites_.config.helper_socket, options.roots.run),
        requests_(node_, line_),
        verifier_(node_),
        router_(line_, requests_, verifier_, events_),
        watches_(
            io, line_, board_, options.roots,
            [this] {
              if (sources_) sources_->notify(source::Notice::kCgroupWritten);
            },
            log_, clock_),
        memory_worker_(clock, base::ProcFs(options.roots.proc), kSys,
                       [this](const std::string& id, board::MemoryView view, auto elapsed) {
                         boost::asio::post(io_,
                                           [this, id, view = std::move(view), elapsed]() mutable {
                                             memory_.record(id, std::move(view), elapsed);
                                           });
                       }),
        memory_(io, line_, board_, memory_worker_, clock_),
        drift_(io, clock_, prerequisites_.config.drift_check, [this] { check_drift(); }),
        start_limit_(io, clock_),
        pins_(io, clock_),
        signals_(signals),
        service_(io, clock_) {}

  void start() {
    notifications_ = board_.feed().subscribe(
        [this](const board::Notification& notification) { report(notification); });
    files_.emplace(options_.roots.run / "kata-affinity/containers", line_, board_, log_);
    guests_.emplace(io_, line_, board_, options_.roots, log_, clock_);
    hooks_.emplace(*guests_, *files_);
    warn_of_settings(prerequisites_.config);
    make_manager();
    make_release();
    make_takeover();
    make_sources();
    if (manager_) start_manager();
    pin_changes_ = board_.feed().subscribe(board::NotificationKind::kOverrideChanged,
                                           [this](const auto&) { schedule_pin_end(); });
    router_.set_measure([this](const std::string& sandbox, const guest::LatencyRequest& request,
                               auto done) { guests_->measure(sandbox, request, std::move(done)); });
    router_.set_query([this](auto answered) { sources_->query_for_verify(std::move(answered)); });
    helper_.start();
    line_.adopt();
    schedule_pin_end();
    prerequisites_.parts.done("state and first run");
    sources_->start();
    runs_ = board_.feed().subscribe(board::NotificationKind::kLineRun, [this](const auto&) {
      sources_->notify(source::Notice::kLineRan);
    });
    prerequisites_.parts.done("sources");
    line_.finish({});
    start_limit_.in(registry::kStartLimit, [this] { line_.stop_waiting(); });
    serve();
    wait_for_signal();
    service_.ready();
    log_.info("ready", {{"socket", options_.socket.string()},
                        {"online", policy::format_list(node_.topology.online())},
                        {"sandboxes", std::to_string(node_.sandbox_ids().size())},
                        {"start", prerequisites_.parts.text()}});
  }

 private:
  SourceSettings source_settings() const {
    const config::Config& config = prerequisites_.config;
    const std::filesystem::path& run = options_.roots.run;
    const std::filesystem::path none;
    return {
        .nri_socket = config.nri_socket,
        .kubelet_state = manager_ ? none : config.kubelet_state,
        .state_dir = prerequisites_.state_dir,
        .boot_id = prerequisites_.boot_id,
        .pod_resources = manager_ ? none : config.pod_resources,
        .cdi = manager_ ? none : config.cdi_dir,
        .kata = {run / "vc/sbs", run / "kata", run / "containerd/io.containerd.runtime.v2.task"},
        .libvirt = {.uri = config.libvirt_uri,
                    .rules = {config.libvirt_domains, config.allows(config::kDomainAnnotation)},
                    .in_config = config.libvirt_config}};
  }

  void make_manager() {
    if (!prerequisites_.books) return;
    manager_.emplace(
        *std::move(prerequisites_.books),
        managed::AllocationFile(prerequisites_.state_dir, prerequisites_.boot_id),
        managed::Cpusets(std::move(prerequisites_.cgroups), cpusets_),
        managed::Manager::Dependencies{
            source_node_, board_, clock_,
            [this](auto next) { boost::asio::post(io_, std::move(next)); }, node_.roots.sys});
    router_.set_manager(&*manager_);
  }

  void start_manager() {
    const auto started = manager_->start();
    if (started) return;
    log_.error("cannot read the allocations of before; containers keep the CPUs that they run on",
               {{"reason", started.error().message}});
  }

  /// In observe mode nothing is written.
  void make_release() {
    if (prerequisites_.config.mode != config::Mode::kFollow) return;
    auto release = managed::Release::open(
        managed::AllocationFile(prerequisites_.state_dir, prerequisites_.boot_id),
        prerequisites_.config.kubelet_state,
        {node_.topology.online(), host::memory_nodes(node_.roots.sys)});
    if (release) {
      release_ = std::move(*release);
    } else {
      log_.warning("containers keep the CPUs that mode = \"managed\" gave them",
                   {{"reason", release.error().message}});
    }
  }

  void make_takeover() {
    if (manager_ || release_) return;
    takeover_.emplace(prerequisites_.config.managed);
    router_.set_takeover(&*takeover_);
  }

  nri::Allocator* allocator() {
    if (manager_) return &*manager_;
    if (release_) return release_.get();
    return &*takeover_;
  }

  void make_sources() {
    const SourceContext context{
        io_,
        source_node_,
        *hooks_,
        allocator(),
        [this](const std::string& sandbox) { memory_.refresh_now(sandbox); },
        options_.roots,
        log_,
        clock_};
    sources_.emplace(source_registrations(), source_settings(), context,
                     [this](policy::ledger::Source source) { line_.expect(source); });
  }

  void serve() {
    api_.emplace(Endpoint::Context{io_, clock_, log_}, "API", prerequisites_.api,
                 [this](const http::Request& request) { return router_.handle(request); });
    serve_reads();
    if (!prerequisites_.metrics) return;
    metrics_.emplace(
        io_, clock_, prerequisites_.metrics.get(),
        [this](const http::Request& request) { return router_.handle_metrics(request); },
        [this](const std::string& trouble) {
          log_.warning("metrics: " + trouble, {{"kind", "server-trouble"}});
        });
  }

  /// A server of its own: its clients cannot take connections from those of the API.
  void serve_reads() {
    if (!prerequisites_.reads) return;
    router_.set_annotations_uid(prerequisites_.config.annotations_uid);
    reads_.emplace(
        Endpoint::Context{io_, clock_, log_}, "reads", *prerequisites_.reads,
        [this](const http::Request& request) { return router_.handle_reads(request); },
        http::Limits{.connections = 32, .streams = 4});
  }

  void report(const board::Notification& notification) {
    const std::initializer_list<log::Field> fields = {
        {"kind", std::string(board::kind_name(notification.kind))},
        {"sandbox", notification.sandbox},
        {"container", notification.container},
        {"reason", notification.reason}};
    if (board::severity_of(notification.kind) == board::Severity::kWarning) {
      log_.warning(notification.text, fields);
    } else {
      log_.info(notification.text, fields);
    }
    router_.publish(notification);
  }

  void check_drift() {
    reserve_.refill();
    update_topology();
    line_.check_drift();
    helper_.refresh();
    schedule_pin_end();
    watches_.refresh();
    memory_.refresh();
    if (sources_) sources_->refresh();
    if (api_) api_->check();
    if (reads_) reads_->check();
  }

  /// Pins of an earlier daemon come back without an event, some of them late.
  void schedule_pin_end() {
    const auto next = requests_.next_pin_end();
    if (!next) return pins_.cancel();
    pins_.at(*next, [this] { requests_.end_pins(); });
  }

  /// CPUs may be plugged or taken offline at any time.
  void update_topology() {
    const auto changed = host::changed_topology(options_.topology, node_.topology.online());
    if (!changed) return;
    line_.change_topology(*changed);
    if (manager_) manager_->change_machine(*changed);
  }

  void wait_for_signal() {
    signals_.async_wait([this](const boost::system::error_code& error, int signal) {
      if (error) return;
      if (signal != SIGHUP) return stop();
      reload();
      wait_for_signal();
    });
  }

  void reload() {
    service_.reloading();
    if (auto config = config::load_config(options_.config, "/", node_.topology.all())) {
      apply(std::move(*config));
    } else {
      log_.error("invalid configuration; keeping the previous one",
                 {{"reason", config.error().message}});
    }
    service_.ready();
  }

  void warn_of_settings(const config::Config& config) const {
    for (const auto name : config::keys_without_effect(config)) {
      log_.warning("setting has no effect in this mode", {{"setting", std::string(name)}});
    }
  }

  void apply(config::Config config) {
    warn_of_settings(config);
    for (const auto name : config::keys_for_next_start(prerequisites_.config, config)) {
      log_.warning("setting takes effect after a restart", {{"setting", std::string(name)}});
    }
    const bool managed = config.mode == config::Mode::kManaged;
    if (managed != manager_.has_value()) config.mode = prerequisites_.config.mode;
    log_.set_level(config.log_level);
    drift_.set_interval(config.drift_check);
    line_.configure(to_line_options(config));
    prerequisites_.config = std::move(config);
  }

  void stop() {
    service_.stopping();
    log_.info("stopping; all threads keep their masks");
    io_.stop();
  }

  base::DescriptorReserve reserve_;
  boost::asio::io_context& io_;
  const Options& options_;
  Prerequisites prerequisites_;
  log::Log log_;
  const base::Clock& clock_;
  host::KernelAffinityCalls calls_;
  host::KernelCpusetWriter cpusets_;
  state::Store store_;
  board::Board board_;
  registry::Registry registry_;
  line::Node node_;
  line::Line line_;
  HelperClients helper_;
  line::Requests requests_;
  line::Verifier verifier_;
  SourceNode source_node_{line_, board_, clock_};
  http::Feed events_;
  api::Router router_;
  watches::Watches watches_;
  memory::MemoryWorker memory_worker_;
  memory::MemoryKeeper memory_;
  Ticker drift_;
  rpc::Timer start_limit_;
  rpc::Timer pins_;
  boost::asio::signal_set& signals_;
  Service service_;
  std::optional<containers::ContainerFiles> files_;
  std::optional<guests::Guests> guests_;
  std::optional<ContainerHooks> hooks_;
  std::optional<managed::Manager> manager_;
  std::unique_ptr<managed::Release> release_;  ///< null: nothing is to be given back
  std::optional<managed::Takeover> takeover_;  ///< where nobody else is told of containers
  std::optional<Sources> sources_;
  std::optional<Endpoint> api_;
  std::optional<Endpoint> reads_;
  std::optional<http::Server> metrics_;
  board::Subscription notifications_, pin_changes_, runs_;
};

}  // namespace

Result<void> run(const Options& options) {
  if (options.check_config) return check_config(options);
  ::umask(S_IRWXG | S_IRWXO);
  base::raise_descriptor_limit();
  const base::Clock clock;
  boost::asio::io_context io(1);
  // From here on a signal waits for the loop: a reload during the start would end the process.
  boost::asio::signal_set signals(io, SIGTERM, SIGINT, SIGHUP);
  auto prerequisites = prepare(options, clock);
  if (!prerequisites) return unexpected(prerequisites.error());
  Daemon daemon(io, clock, signals, options, std::move(*prerequisites));
  daemon.start();
  io.run();
  return {};
}

}  // namespace ka::daemon
