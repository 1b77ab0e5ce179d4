// SPDX-License-Identifier: Apache-2.0
#include "vmm/libvirt/client.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "base/fd.hpp"
#include "vmm/address/libvirt_uri.hpp"

namespace ka::libvirt {
namespace {

using base::Result;

/// How long the end waits for the thread before it leaves it to itself.
constexpr std::chrono::milliseconds kDisconnectTime{500};

// A daemon that is silent for some four seconds while no call waits counts as dead.
constexpr int kKeepAliveSeconds = 1;
constexpr unsigned kKeepAliveCount = 3;

void stay_silent(void*, virErrorPtr) {}

}  // namespace

/// What the thread and its owner share.
struct Client::Shared {
  const base::Clock& clock;  ///< gone once `stopped`
  ClientOptions options;
  ClientHandlers handlers;
  Library library;
  base::Fd wake;

  std::mutex mutex;  ///< guards what follows, and is held while a handler runs
  std::condition_variable ended;
  bool stopped = false;
  bool has_ended = false;
  std::optional<base::Clock::Time>
      calling_since;  ///< when a call that may not have returned was made
  std::set<std::string> watched;
  std::map<std::string, Order> orders;  ///< since they were last taken

  Shared(const base::Clock& time, ClientOptions chosen, ClientHandlers called, Library loaded,
         base::Fd event)
      : clock(time),
        options(std::move(chosen)),
        handlers(std::move(called)),
        library(loaded),
        wake(std::move(event)) {}

  void ring() const {
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = ::write(wake.get(), &one, sizeof one);
  }

  void set_calling(bool is_calling) {
    const std::lock_guard lock(mutex);
    if (!stopped) calling_since = is_calling ? std::optional(clock.now()) : std::nullopt;
  }

  /// One waits that is newer than what the thread works at.
  bool has_order(const std::string& domain) {
    const std::lock_guard lock(mutex);
    return orders.contains(domain);
  }

  template <typename Handler, typename... Arguments>
  void notify(const Handler& handler, const Arguments&... arguments) {
    const std::lock_guard lock(mutex);
    if (!stopped && handler) handler(arguments...);
  }
};

/// Everything here happens on the thread.
class Client::Worker {
 public:
  explicit Worker(std::shared_ptr<Shared> shared)
      : shared_(std::move(shared)), library_(shared_->library) {}

  void run();

 private:
  using Connection = std::unique_ptr<virConnect, decltype(&::virConnectClose)>;

  /// The pending work for one domain.
  struct Work {
    std::optional<DomainSeen> reported;
    bool touched = false;  ///< there was an event
    std::optional<Order> order;
    bool due = false;  ///< the order has to be carried out
    std::optional<base::Error> failure;
  };

  bool drain_events();
  void connect();
  void disconnect(const std::string& why);
  void close();
  void serve();
  void refresh(const std::string& name, Work& work);
  Result<DomainSeen> see(const std::string& name);
  void carry_out(Work& work);
  Result<int> obey(const Order& order);
  Result<int> pin(const Order& order, virDomainPtr domain, bool has_config);
  Result<int> allow_nodes(const Order& order, virDomainPtr domain, bool has_config);
  DomainRef lookup(const std::string& name) {
    return {library_.domain_lookup_by_name(connection_.get(), name.c_str()), library_.domain_free};
  }
  void touch(virDomainPtr domain);
  void listen();
  void register_event(int event, void (*callback)());

  std::shared_ptr<Shared> shared_;
  const Library& library_;
  Connection connection_{nullptr, nullptr};
  std::vector<int> callbacks_;  ///< of the connection, by libvirt's numbers
  bool logged_ = false;
  int host_cpus_ = 0;
  std::map<std::string, Work> work_;
  base::Clock::Time round_;  ///< when this round of the loop began
  base::Clock::Time next_refresh_;
};

void Client::Worker::run() {
  library_.set_error_func(nullptr, stay_silent);
  library_.event_register_default_impl();
  const int handle = library_.event_add_handle(
      shared_->wake.get(), VIR_EVENT_HANDLE_READABLE,
      [](int, int fd, int, void*) {
        std::uint64_t count = 0;
        [[maybe_unused]] const ssize_t drained = ::read(fd, &count, sizeof count);
      },
      nullptr, nullptr);
  const int timer = library_.event_add_timeout(
      static_cast<int>(shared_->options.interval.count()), [](int, void*) {}, nullptr, nullptr);
  while (drain_events()) {
    if (!connection_) connect();
    if (connection_) serve();
    shared_->set_calling(false);
    library_.event_run_default_impl();
  }
  close();
  library_.event_remove_timeout(timer);
  library_.event_remove_handle(handle);
}

/// Begins a round, with the queued orders; false at shutdown.
bool Client::Worker::drain_events() {
  const std::lock_guard lock(shared_->mutex);
  if (shared_->stopped) return false;
  round_ = shared_->clock.now();
  shared_->calling_since = round_;
  std::erase_if(work_, [&](const auto& entry) { return !shared_->watched.contains(entry.first); });
  for (const std::string& name : shared_->watched) work_.try_emplace(name);
  for (auto& [name, order] : std::exchange(shared_->orders, {})) {
    const auto found = work_.find(name);
    if (found == work_.end()) continue;
    found->second.order = std::move(order);
    found->second.due = true;
  }
  return true;
}

void Client::Worker::connect() {
  if (round_ < next_refresh_) return;
  next_refresh_ = round_ + shared_->options.interval;
  connection_ = {library_.connect_open(shared_->options.uri.c_str()), library_.connect_close};
  shared_->set_calling(true);
  if (!connection_) {
    if (!std::exchange(logged_, true)) {
      shared_->notify(shared_->handlers.connection, false,
                      library_.error(shared_->options.uri).message);
    }
    return;
  }
  // Not every driver has it; a driver without it lives in this process.
  library_.connect_set_keep_alive(connection_.get(), kKeepAliveSeconds, kKeepAliveCount);
  host_cpus_ = library_.node_get_cpu_map(connection_.get(), nullptr, nullptr, 0);
  if (host_cpus_ <= 0) return disconnect(library_.error("virNodeGetCPUMap").message);
  listen();
  logged_ = false;
  next_refresh_ = {};
  for (auto& [name, work] : work_) {
    work.reported.reset();
    work.due = work.order.has_value();
  }
  shared_->notify(shared_->handlers.connection, true, shared_->options.uri);
}

/// Lifecycle: started, stopped, ... Tunable: pins were changed.
void Client::Worker::listen() {
  const virConnectDomainEventCallback lifecycle = [](virConnectPtr, virDomainPtr domain, int, int,
                                                     void* worker) {
    static_cast<Worker*>(worker)->touch(domain);
    return 0;
  };
  const virConnectDomainEventTunableCallback tuned = [](virConnectPtr, virDomainPtr domain,
                                                        virTypedParameterPtr, int, void* worker) {
    static_cast<Worker*>(worker)->touch(domain);
  };
  register_event(VIR_DOMAIN_EVENT_ID_LIFECYCLE, reinterpret_cast<void (*)()>(lifecycle));
  register_event(VIR_DOMAIN_EVENT_ID_TUNABLE, reinterpret_cast<void (*)()>(tuned));
}

/// libvirt takes callbacks of every kind as one type, and calls each by its own.
void Client::Worker::register_event(int event, void (*callback)()) {
  const int number = library_.connect_domain_event_register(
      connection_.get(), nullptr, event,
      reinterpret_cast<virConnectDomainEventGenericCallback>(callback), this, nullptr);
  if (number >= 0) callbacks_.push_back(number);
}

void Client::Worker::touch(virDomainPtr domain) {
  const auto found = work_.find(library_.domain_get_name(domain));
  if (found == work_.end()) return;
  found->second.touched = true;
  found->second.due = found->second.order.has_value();
}

/// Each callback keeps its connection, which would call into objects that no longer exist
/// (virObjectEventStateRegisterID() in libvirt's src/conf/object_event.c).
void Client::Worker::close() {
  for (const int callback : std::exchange(callbacks_, {})) {
    library_.connect_domain_event_deregister(connection_.get(), callback);
  }
  connection_.reset();
}

void Client::Worker::disconnect(const std::string& why) {
  close();
  logged_ = true;
  shared_->notify(shared_->handlers.connection, false, why);
}

void Client::Worker::serve() {
  if (library_.connect_is_alive(connection_.get()) != 1) {
    return disconnect(shared_->options.uri + ": the connection is lost");
  }
  const bool is_time = round_ >= next_refresh_;
  if (is_time) next_refresh_ = round_ + shared_->options.interval;
  for (auto& [name, work] : work_) {
    shared_->set_calling(true);
    if (is_time || work.touched || !work.reported) refresh(name, work);
    const bool retry = is_time || !work.failure;
    if (work.order && work.due && retry && work.reported && work.reported->runs) {
      carry_out(work);
    }
  }
}

void Client::Worker::refresh(const std::string& name, Work& work) {
  const bool touched = std::exchange(work.touched, false);
  auto seen = see(name);
  if (!seen) return;  // the next round finds the connection dead, or asks again
  if (!touched && work.reported == *seen) return;
  // Read the masks of a new run's threads before they are pinned.
  const bool outdated = work.reported && is_another_run(*work.reported, *seen);
  if (outdated && work.order && !work.order->give_back) work.order.reset();
  const bool started = seen->runs && (!work.reported || work.reported->uuid != seen->uuid ||
                                      !work.reported->runs || work.reported->vcpus != seen->vcpus);
  if (started || outdated) work.due = work.order.has_value();
  work.reported = std::move(*seen);
  shared_->notify(shared_->handlers.domain, *work.reported);
}

Result<DomainSeen> Client::Worker::see(const std::string& name) {
  DomainSeen seen{.name = name, .uuid = {}};
  const DomainRef domain = lookup(name);
  if (!domain) {
    base::Error error = library_.error(name);
    if (is_gone(error)) return seen;
    return unexpected(std::move(error));
  }
  char uuid[VIR_UUID_STRING_BUFLEN] = {};
  const int active = library_.domain_is_active(domain.get());
  if (active < 0 || library_.domain_get_uuid_string(domain.get(), uuid) < 0) {
    return unexpected(library_.error(name));
  }
  seen.uuid = uuid;
  seen.runs = active == 1;
  if (!seen.runs) return seen;
  seen.run = library_.domain_get_id(domain.get());
  seen.vcpus = library_.domain_get_vcpus_flags(domain.get(), VIR_DOMAIN_AFFECT_LIVE);
  if (seen.vcpus < 0) return unexpected(library_.error(name));
  return seen;
}

void Client::Worker::carry_out(Work& work) {
  const Order order = *work.order;
  const auto done = obey(order);
  if (is_gone(done)) return;  // due when it runs again
  const auto failure = done ? std::nullopt : std::optional(done.error());
  const bool is_news =
      done ? *done > 0 || order.give_back || work.failure : work.failure != failure;
  work.failure = failure;
  work.due = !done;
  if (done && order.give_back) work.order.reset();
  if (is_news) shared_->notify(shared_->handlers.pinned, order, done);
}

Result<int> Client::Worker::obey(const Order& order) {
  const DomainRef domain = lookup(order.domain);
  if (!domain) return unexpected(library_.error(order.domain));
  const bool has_config = library_.domain_is_persistent(domain.get()) == 1;
  auto pins = pin(order, domain.get(), has_config);
  if (!pins) return pins;
  auto nodes = allow_nodes(order, domain.get(), has_config);
  if (!nodes) return nodes;
  return *pins + *nodes;
}

Result<int> Client::Worker::pin(const Order& order, virDomainPtr domain, bool has_config) {
  const Record record(library_, domain, host_cpus_);
  Result<Pins> pins = order.pins;
  if (order.give_back) {
    const bool by_config = has_config && !order.in_config;
    pins = by_config ? record.read(Scope::kConfig) : record.unpinned();
    if (!pins) return unexpected(pins.error());
  }
  const auto is_outdated = [&] { return shared_->has_order(order.domain); };
  auto live = record.write(*pins, Scope::kLive, is_outdated);
  if (!live || !order.in_config || !has_config) return live;
  auto config = record.write(*pins, Scope::kConfig, is_outdated);
  if (!config) return config;
  return *live + *config;
}

Result<int> Client::Worker::allow_nodes(const Order& order, virDomainPtr domain, bool has_config) {
  if (!order.memory) return 0;
  const Numatune numatune(library_, domain);
  MemoryOrder wanted = *order.memory;
  if (order.give_back && has_config && !order.in_config) {
    const auto own = numatune.read(Scope::kConfig);
    if (!own) return unexpected(own.error());
    if (!own->empty()) wanted.nodes = *own;
  }
  auto live = numatune.write(wanted, Scope::kLive);
  if (!live || !order.in_config || !has_config) return live;
  auto config = numatune.write(wanted, Scope::kConfig);
  if (!config) return config;
  return *live + *config;
}

Client::Client(std::shared_ptr<Shared> shared) : shared_(std::move(shared)) {}
Client::Client(Client&&) noexcept = default;
Client& Client::operator=(Client&&) noexcept = default;

Result<Client> Client::start(const base::Clock& clock, ClientOptions options,
                             ClientHandlers handlers) {
  if (auto good = vmm::check_libvirt_uri(options.uri); !good) return unexpected(good.error());
  auto library = Library::load();
  if (!library) return unexpected(library.error());
  auto shared = std::make_shared<Shared>(clock, std::move(options), std::move(handlers), *library,
                                         base::Fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)));
  if (!shared->wake) return base::fail_errno(errno, "eventfd");
  std::thread([shared] {
    Worker(shared).run();
    const std::lock_guard lock(shared->mutex);
    shared->has_ended = true;
    shared->ended.notify_all();
  }).detach();
  return Client(std::move(shared));
}

Client::~Client() {
  if (!shared_) return;
  std::unique_lock lock(shared_->mutex);
  shared_->stopped = true;
  shared_->ring();
  shared_->ended.wait_for(lock, kDisconnectTime, [this] { return shared_->has_ended; });
}

void Client::watch_only(std::set<std::string> domains) {
  const std::lock_guard lock(shared_->mutex);
  shared_->watched = std::move(domains);
  shared_->ring();
}

void Client::order(Order order) {
  const std::lock_guard lock(shared_->mutex);
  std::string name = order.domain;
  shared_->orders.insert_or_assign(std::move(name), std::move(order));
  shared_->ring();
}

bool Client::is_hung() const {
  const std::lock_guard lock(shared_->mutex);
  return shared_->calling_since && shared_->clock.now() - *shared_->calling_since > kHungTime;
}

}  // namespace ka::libvirt
