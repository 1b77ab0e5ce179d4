// SPDX-License-Identifier: Apache-2.0
// The client against libvirt's own test driver, which lives in the process of whoever connects: a
// domain "test" of two vCPUs on a node of 16 CPUs. The real daemon: tests/integration/libvirt.
#include "vmm/libvirt/client.hpp"

#include <dlfcn.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <condition_variable>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>

#include "tests/catch.hpp"
#include "tests/temp_dir.hpp"
#include "vmm/address/libvirt_uri.hpp"
#include "vmm/libvirt/numatune.hpp"
#include "vmm/libvirt/pins.hpp"

using namespace ka;
using libvirt::Client;
using libvirt::DomainSeen;
using libvirt::Scope;
using policy::CpuSet;
using policy::NodeSet;

namespace {

struct Reports {
  std::string connected, refused, failure;
  std::map<std::string, DomainSeen> domains;
  std::vector<int> pinned;
  int given_back = 0;
};

/// What a client reports from its thread, and a way to wait for it.
class Ears {
 public:
  libvirt::ClientHandlers handlers() {
    libvirt::ClientHandlers handlers;
    handlers.connection = [this](bool up, const std::string& text) {
      enter([&] { (up ? reports_.connected : reports_.refused) = text; });
    };
    handlers.domain = [this](const DomainSeen& domain) {
      enter([&] { reports_.domains[domain.name] = domain; });
    };
    handlers.pinned = [this](const libvirt::Order& order, const base::Result<int>& calls) {
      enter([&] {
        if (order.give_back) ++reports_.given_back;
        reports_.pinned.push_back(calls ? *calls : -1);
        if (!calls) reports_.failure = calls.error().message;
      });
    };
    return handlers;
  }

  template <typename Holds>
  bool wait(Holds holds, std::chrono::milliseconds timing = std::chrono::seconds(10)) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, timing, [&] { return holds(reports_); });
  }

  Reports reports() {
    const std::lock_guard lock(mutex_);
    return reports_;
  }

 private:
  template <typename Change>
  void enter(Change change) {
    const std::lock_guard lock(mutex_);
    change();
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  Reports reports_;
};

/// The domain "test" beside the client: connections of one process share that driver's state.
struct TestDriver {
  libvirt::Library library = libvirt::Library::load().value();
  std::unique_ptr<virConnect, decltype(&::virConnectClose)> connection{
      library.connect_open("test:///default"), library.connect_close};
  libvirt::DomainRef domain{library.domain_lookup_by_name(connection.get(), "test"),
                            library.domain_free};
  libvirt::Numatune numatune{library, domain.get()};

  /// A function of libvirt's that the product has no use for.
  int call(const char* function) const {
    void* const libvirt = ::dlopen("libvirt.so.0", RTLD_NOW);
    return reinterpret_cast<decltype(&::virDomainCreate)>(::dlsym(libvirt, function))(domain.get());
  }
  NodeSet live() const { return numatune.read(Scope::kLive).value(); }
  NodeSet configured() const { return numatune.read(Scope::kConfig).value(); }
};

const base::Clock real_time;

Client start(const std::string& uri, Ears& ears) {
  auto client = Client::start(real_time, {.uri = uri, .interval = std::chrono::milliseconds(50)},
                              ears.handlers());
  REQUIRE(client);
  return std::move(*client);
}

}  // namespace

TEST_CASE("libvirt: only a daemon of this machine is contacted") {
  for (const char* good : {"qemu:///system", "qemu:///session", "test:///default",
                           "qemu+unix:///system?socket=/run/x", "ch:///system"}) {
    CHECK(vmm::check_libvirt_uri(good));
  }
  for (const char* bad :
       {"", "hail", "system", "://", "qemu://node2/system", "qemu+ssh:///system",
        "qemu+ssh://root@node2/system", "qemu+tcp:///system", "qemu+tls:///system",
        "qemu+libssh2://h/system", "xen+ext:///", "qemu:", "qemu:/system"}) {
    CAPTURE(bad);
    CHECK_FALSE(vmm::check_libvirt_uri(bad));
    CHECK_FALSE(Client::start(real_time, {.uri = bad}, {}));
  }
}

TEST_CASE("libvirt: a domain is reported, and its vCPUs are pinned once as ordered") {
  Ears ears;
  Client client = start("test:///default", ears);
  client.watch_only({"test", "nobody"});
  REQUIRE(ears.wait([&](Reports& seen) { return seen.domains.size() == 2; }));
  CHECK(ears.reports().connected == "test:///default");
  CHECK(ears.reports().domains["test"].runs);
  CHECK(ears.reports().domains["test"].vcpus == 2);
  CHECK(ears.reports().domains["test"].uuid == "6695eb01-f6a4-8304-79aa-97f2502e193f");
  CHECK_FALSE(ears.reports().domains["nobody"].runs);

  libvirt::Order order{.domain = "test", .pins = {}};
  order.pins.vcpus = {{0, CpuSet{3, 5}}, {1, CpuSet{4}}, {7, CpuSet{5}}};  // it has no vCPU 7
  client.order(order);
  REQUIRE(ears.wait([&](Reports& seen) { return seen.pinned.size() == 1; }));
  CHECK(ears.reports().failure == "");
  CHECK(ears.reports().pinned[0] == 2);
  order.pins.vcpus[1] = CpuSet{6};  // vCPU 0 has it already
  client.order(order);
  REQUIRE(ears.wait([&](Reports& seen) { return seen.pinned.size() == 2; }));
  CHECK(ears.reports().pinned[1] == 1);
  order.give_back = true;
  client.order(order);
  REQUIRE(ears.wait([&](Reports& seen) { return seen.pinned.size() == 3; }));
  CHECK(ears.reports().pinned[2] == 2);
}

TEST_CASE("libvirt: what is given back is reported without a call, too, and is then others'") {
  const TestDriver driver;
  Ears ears;
  Client client = start("test:///default", ears);
  client.watch_only({"test"});
  const libvirt::Order back{.domain = "test", .pins = {}, .memory = {}, .give_back = true};
  client.order(back);
  REQUIRE(ears.wait([&](Reports& seen) { return seen.given_back == 1; }));
  CHECK(ears.reports().pinned == std::vector{0});

  libvirt::Order by_hand{.domain = "test", .pins = {}};
  by_hand.pins.vcpus = {{0, CpuSet{3}}};
  const libvirt::Record record(driver.library, driver.domain.get(), 16);
  REQUIRE(record.write(by_hand.pins, Scope::kLive, [] { return false; }) == 1);
  REQUIRE(driver.call("virDomainSuspend") == 0);  // each event is a reason to look again
  REQUIRE(driver.call("virDomainResume") == 0);
  CHECK_FALSE(ears.wait([&](Reports& seen) { return seen.pinned.size() > 1; },
                        std::chrono::milliseconds(300)));
  CHECK(record.read(Scope::kLive)->vcpus.at(0) == CpuSet{3});
  client.order(back);
  REQUIRE(ears.wait([&](Reports& seen) { return seen.given_back == 2; }));
  CHECK(ears.reports().pinned == std::vector{0, 1});
}

TEST_CASE("libvirt: a restarted domain is left alone until it gets an order") {
  const TestDriver driver;
  Ears ears;
  Client client = start("test:///default", ears);
  client.watch_only({"test"});
  libvirt::Order order{.domain = "test", .pins = {}};
  order.pins.vcpus = {{0, CpuSet{3}}};
  client.order(order);
  unsigned before = 0;
  REQUIRE(ears.wait([&](Reports& seen) {
    before = seen.domains["test"].run;
    return seen.pinned.size() == 1;
  }));
  REQUIRE(driver.call("virDomainDestroy") == 0);
  REQUIRE(driver.call("virDomainCreate") == 0);
  REQUIRE(ears.wait([&](Reports& seen) { return seen.domains["test"].run != before; }));
  CHECK_FALSE(ears.wait([&](Reports& seen) { return seen.pinned.size() > 1; },
                        std::chrono::milliseconds(300)));
  client.order(order);
  REQUIRE(ears.wait([&](Reports& seen) { return seen.pinned.size() == 2; }));
  CHECK(ears.reports().pinned[1] == 1);
}

TEST_CASE("libvirt: a stopped client gets no more calls, another one continues") {
  const TestDriver driver;
  {
    Ears ears;
    Client client = start("test:///default", ears);
    client.watch_only({"test"});
    REQUIRE(ears.wait([&](Reports& seen) { return seen.domains.size() == 1; }));
  }
  // The next client's thread would stand where that of the first one stood, and hear for it.
  const std::jthread in_its_place([](const std::stop_token& stop) {
    while (!stop.stop_requested()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  });
  Ears ears;
  Client client = start("test:///default", ears);
  client.watch_only({"test"});
  unsigned before = 0;
  REQUIRE(ears.wait([&](Reports& seen) {
    before = seen.domains["test"].run;
    return before != 0;
  }));
  REQUIRE(driver.call("virDomainDestroy") == 0);
  REQUIRE(driver.call("virDomainCreate") == 0);
  CHECK(ears.wait([&](Reports& seen) { return seen.domains["test"].run != before; }));
}

TEST_CASE("libvirt: nodes grow before memory moves, and shrink after it has arrived") {
  const TestDriver driver;
  const auto write = [&](const NodeSet& nodes, bool arrived, Scope scope = Scope::kLive) {
    const auto calls = driver.numatune.write({nodes, arrived}, scope);
    INFO((calls ? "" : calls.error().message));
    REQUIRE(calls);
    return *calls;
  };
  CHECK(driver.live() == NodeSet{});
  CHECK(write({1}, false) == 0);  // it may be anywhere
  CHECK(write({0}, true) == 1);
  CHECK(driver.live() == NodeSet{0});
  CHECK(write({1}, false) == 1);
  CHECK(driver.live() == NodeSet{0, 1});
  CHECK(write({1}, false) == 0);
  CHECK(write({1}, true) == 1);
  CHECK(driver.live() == NodeSet{1});
  CHECK(driver.configured() == NodeSet{});
  CHECK(write({0}, false, Scope::kConfig) == 1);  // nothing is there yet that could move
  CHECK(driver.configured() == NodeSet{0});
  CHECK(driver.live() == NodeSet{1});
}

TEST_CASE("libvirt: nodes are set with the pins, and reset with them") {
  const TestDriver driver;
  Ears ears;
  Client client = start("test:///default", ears);
  client.watch_only({"test"});
  libvirt::Order order{.domain = "test", .pins = {}, .memory = libvirt::MemoryOrder{{0}, true}};
  client.order(order);
  REQUIRE(ears.wait([&](Reports& seen) { return seen.pinned.size() == 1; }));
  CHECK(ears.reports().failure == "");
  CHECK(driver.live() == NodeSet{0});
  order.in_config = true;
  order.memory->nodes = {1};
  client.order(order);
  REQUIRE(ears.wait([&](Reports& seen) { return seen.pinned.size() == 2; }));
  CHECK(driver.live() == NodeSet{1});
  CHECK(driver.configured() == NodeSet{1});
  order.give_back = true;
  order.memory->nodes = {0, 1};
  client.order(order);
  REQUIRE(ears.wait([&](Reports& seen) { return seen.pinned.size() == 3; }));
  CHECK(ears.reports().failure == "");
  CHECK(driver.live() == NodeSet{0, 1});
  CHECK(driver.configured() == NodeSet{0, 1});
}

TEST_CASE("libvirt: an absent daemon is reported once, and blocks nothing") {
  Ears ears;
  {
    Client client = start("qemu:///system?socket=/not/really/libvirt-sock", ears);
    client.watch_only({"vm1"});
    client.order({.domain = "vm1", .pins = {}});
    REQUIRE(ears.wait([&](Reports& seen) { return !seen.refused.empty(); }));
  }
  CHECK(ears.reports().refused.find("/not/really/libvirt-sock") != std::string::npos);
  CHECK(ears.reports().connected.empty());
  CHECK(ears.reports().domains.empty());
}

TEST_CASE("libvirt: a daemon that accepts and never answers is hung, and nobody waits for it") {
  const tests::TempDir dir;
  const std::filesystem::path path = dir.path() / "libvirt-sock";
  boost::asio::io_context io;
  std::optional<boost::asio::local::stream_protocol::acceptor> silent;
  silent.emplace(io, boost::asio::local::stream_protocol::endpoint(path.native()));
  Ears ears;
  std::optional<Client> client(start("qemu+unix:///system?socket=" + path.native(), ears));
  CHECK_FALSE(client->is_hung());
  while (!client->is_hung()) std::this_thread::sleep_for(std::chrono::milliseconds(50));
  CHECK(ears.reports().refused.empty());
  SECTION("it is left alone at the end") {
    const auto before = real_time.now();
    client.reset();
    CHECK(real_time.now() - before < std::chrono::seconds(3));
  }
  SECTION("when it goes it is a daemon that is not there") {
    silent.reset();
    CHECK(ears.wait([&](Reports& seen) { return !seen.refused.empty(); }));
    CHECK_FALSE(client->is_hung());
  }
}
