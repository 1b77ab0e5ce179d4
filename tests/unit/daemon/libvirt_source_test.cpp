// SPDX-License-Identifier: Apache-2.0
// Which sandbox a domain is, over libvirt's own test driver, which lives in this process: a domain
// "test" of two vCPUs, whose process is a file of the test. A domain without one runs elsewhere.
#include "shim-ext/libvirt/libvirt_source.hpp"

#include <dlfcn.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <map>
#include <memory>
#include <optional>

#include "affinity/daemon/source_node.hpp"
#include "affinity/line/views.hpp"
#include "tests/catch.hpp"
#include "tests/run_loop.hpp"
#include "tests/text_log.hpp"
#include "tests/unit/line/scene.hpp"
#include "vmm/libvirt/pins.hpp"

using namespace ka;

namespace {

constexpr int kVmm = 200;
constexpr const char* kUuid = "6695eb01-f6a4-8304-79aa-97f2502e193f";

struct Scene : tests::LineScene {
  explicit Scene(bool by_annotation, std::vector<std::string> domains = {},
                 bool in_config = false) {
    source.emplace(
        io, clock, source_node, vmm::Roots{node.proc(), node.debugfs(), node.cgroup(), node.sys()},
        libvirt::LibvirtSource::Settings{
            "test:///default", {std::move(domains), by_annotation}, in_config},
        [this](const std::string& sandbox) {
          recorded.push_back(sandbox);
          were_pinned.push_back(line().node().ledger().find(sandbox)->domain_pinned);
        },
        log);
    source->start();
  }

  void boot_domain(int pid = kVmm) {
    boot_vm(pid, 2);
    node.arguments(pid, {"/usr/bin/qemu-system-x86_64", "-uuid", kUuid});
  }

  /// As NRI tells of a pod with the annotation.
  void request(const std::string& pod) {
    line().handle({policy::ledger::Source::kNri,
                   policy::ledger::PodSeen{.id = pod, .requested_domain = "test"}});
    source->notify(source::Notice::kLineRan);
  }

  template <typename Holds>
  void run_until(Holds holds) {
    tests::run_until(io, holds);
  }
  bool says(const std::string& words) { return log_lines.find(words) != std::string::npos; }
  std::optional<int> vmm_of(const std::string& pod) {
    const auto* record = line().node().ledger().find(pod);
    return record == nullptr ? std::nullopt
           : record->vmm     ? std::optional(record->vmm->pid)
                             : std::nullopt;
  }

  log::Log log = tests::text_log(log::Level::kWarning, log_lines);
  boost::asio::io_context io;
  std::vector<std::string> recorded;
  std::vector<bool> were_pinned;  ///< what was known of libvirt's record then
  daemon::SourceNode source_node{line(), board(), clock};
  std::optional<libvirt::LibvirtSource> source;
};

/// The domain beside the source: connections of one process share that driver's state.
struct TestDomain {
  libvirt::Library library = libvirt::Library::load().value();
  std::unique_ptr<virConnect, decltype(&::virConnectClose)> connection{
      library.connect_open("test:///default"), library.connect_close};
  libvirt::DomainRef domain{library.domain_lookup_by_name(connection.get(), "test"),
                            library.domain_free};

  void call(const char* function) const {
    void* const libvirt = ::dlopen("libvirt.so.0", RTLD_NOW);
    using Call = decltype(&::virDomainCreate);
    REQUIRE(reinterpret_cast<Call>(::dlsym(libvirt, function))(domain.get()) == 0);
  }
  std::map<int, policy::CpuSet> vcpu_pins() const {
    constexpr int kCpus = 8;  // that driver's virNodeGetCPUMap(), whatever its node's size
    return libvirt::Record(library, domain.get(), kCpus).read(libvirt::Scope::kLive)->vcpus;
  }
};

}  // namespace

TEST_CASE("libvirt: a pod that is allowed to names its domain") {
  Scene scene(true);
  scene.boot_domain();
  scene.request("pod1");
  scene.run_until([&] { return scene.vmm_of("pod1") == kVmm; });
  REQUIRE(scene.container("pod1", "c1", {4, 5}, true));
  scene.source->notify(source::Notice::kLineRan);
  scene.run_until([&] { return !scene.recorded.empty(); });
  CHECK(scene.recorded.front() == "pod1");
  CHECK(scene.cpus(kVmm + 10) + scene.cpus(kVmm + 11) != "0-70-7");
}

TEST_CASE("libvirt: a pod that is not allowed to gets no domain, which is logged once") {
  Scene scene(false, {"other"});
  scene.boot_domain();
  scene.request("pod1");
  scene.run_until([&] { return scene.says("allow_annotations does not list"); });
  const std::string said = scene.log_lines;
  scene.request("pod1");
  tests::run_ready(scene.io);
  CHECK_FALSE(scene.vmm_of("pod1"));
  CHECK(scene.log_lines == said);
}

TEST_CASE("libvirt: a domain is one sandbox, and no claim takes it over") {
  Scene scene(true, {"test"});
  scene.boot_domain();
  scene.request("a-pod");
  scene.run_until([&] { return scene.vmm_of("test") == kVmm; });
  scene.run_until([&] { return scene.says("the domain is sandbox test"); });
  tests::run_ready(scene.io);
  CHECK_FALSE(scene.vmm_of("a-pod"));
}

TEST_CASE("libvirt: a pod with a VM of its own keeps it, whatever its annotation") {
  Scene scene(true);
  scene.boot_domain();
  scene.boot_vm(300, 1);
  REQUIRE(scene.add("pod1", 300));
  scene.request("pod1");
  scene.run_until([&] { return scene.says("the pod has a VM of its own"); });
  tests::run_ready(scene.io);
  CHECK(scene.vmm_of("pod1") == 300);
}

TEST_CASE("libvirt: a VMM with a sandbox gets no second one") {
  Scene scene(true);
  scene.boot_domain();
  REQUIRE(scene.add("by-hand", kVmm));
  scene.request("pod1");
  scene.run_until([&] { return scene.says("its VMM is that of sandbox by-hand"); });
  CHECK_FALSE(scene.vmm_of("pod1"));
}

TEST_CASE("libvirt: a domain that is no process here is a fault, until there is one") {
  Scene scene(true, {"test"});
  scene.run_until([&] { return scene.says("no process on this machine is the domain"); });
  CHECK(scene.line().node().sandbox_ids().empty());
  const auto& status = scene.board().sources().at(policy::ledger::Source::kLibvirt);
  CHECK_FALSE(status.up);
  CHECK(status.text.starts_with("domain test: no process"));
  const std::string said = scene.log_lines;
  scene.source->refresh();
  CHECK(scene.log_lines == said);
  scene.boot_domain();
  scene.source->refresh();
  CHECK(scene.vmm_of("test") == kVmm);
  CHECK(status.up);
}

TEST_CASE("libvirt: pins stay noted until the order that gives them back is carried out") {
  const TestDomain domain;
  const auto unpinned = domain.vcpu_pins();
  Scene scene(true);
  scene.boot_domain();
  scene.request("pod1");
  scene.run_until([&] { return scene.vmm_of("pod1") == kVmm; });
  REQUIRE(scene.container("pod1", "c1", {4, 5}, true));
  // That the domain is about to be pinned is notified before libvirt gets the order. What is queued
  // then comes before the answer to the order.
  bool is_ordered = false;
  const auto release = [&] {
    REQUIRE(scene.requests().release("pod1"));
    for (int tries = 0; domain.vcpu_pins() == unpinned; ++tries) {
      REQUIRE(tries < 1'000'000);
    }
  };
  const auto subscription = scene.board().feed().subscribe([&](const board::Notification&) {
    if (std::exchange(is_ordered, true)) return;
    boost::asio::post(scene.io, release);
    scene.source->notify(source::Notice::kLineRan);
  });
  scene.source->notify(source::Notice::kLineRan);
  scene.run_until([&] { return scene.recorded.size() == 2; });
  CHECK(scene.were_pinned == std::vector{true, false});
  CHECK(domain.vcpu_pins() == unpinned);
}

TEST_CASE("libvirt: a domain that has ended is no fault any more, at once") {
  const TestDomain domain;
  Scene scene(false, {"test"}, true);  // that driver pins no vCPU of the next start
  scene.boot_domain();
  scene.run_until([&] { return scene.vmm_of("test") == kVmm; });
  REQUIRE(scene.container("test", "c1", {4, 5}, true));
  scene.source->notify(source::Notice::kLineRan);
  const auto& status = scene.board().sources().at(policy::ledger::Source::kLibvirt);
  const auto says_fault = [&] {
    return status.text.find("not in libvirt's record") != std::string::npos;
  };
  scene.run_until(says_fault);
  domain.call("virDomainDestroy");
  scene.run_until([&] { return !says_fault(); });
  CHECK(status.text == "test:///default");
}
