// SPDX-License-Identifier: Apache-2.0
// What verify's check of others on exclusive CPUs costs beside 3,000 containers that may not run
// there and 200 services of the host that may, against reading the same cpusets and nothing else.
// Processor time of the shortest of many rounds counts, which a busy machine hardly changes.
//
//   others_bench [CONTAINERS]
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <set>
#include <string>
#include <vector>

#include "affinity/line/others.hpp"
#include "tests/fake_node.hpp"

namespace {

using ka::policy::CpuSet;

constexpr int kRounds = 15;
constexpr int kServices = 200;
constexpr int kThreads = 5;  // of a service
constexpr const char* kEverywhere = "0-127";
constexpr const char* kPool = "64-127";
constexpr double kMostMillis = 200;
constexpr double kMostRatio = 5;

/// Pods of two containers in the shared pool, and services that may run anywhere. These threads are
/// all this program's, so that the kernel has a mask for each.
std::vector<std::string> make_tree(const ka::tests::FakeNode& node, int containers) {
  std::vector<std::string> cpusets;
  const auto add = [&](const std::string& name, const char* cpus, const std::string& tids) {
    node.tenant(name, cpus, tids);
    cpusets.push_back((node.cgroup() / name / "cpuset.cpus.effective").string());
  };
  node.cgroup_v2();
  add("kubepods", kEverywhere, "");
  add("kubepods/burstable", kEverywhere, "");
  for (int pod = 0; pod < containers / 2; ++pod) {
    const std::string name = "kubepods/burstable/pod" + std::to_string(pod);
    add(name, kEverywhere, "");
    for (const char* container : {"/a", "/b"}) add(name + container, kPool, "1\n");
  }
  std::string tids;
  for (int i = 0; i < kThreads; ++i) tids += std::to_string(::getpid()) + '\n';
  add("system.slice", kEverywhere, "");
  for (int i = 0; i < kServices; ++i) {
    add("system.slice/s" + std::to_string(i) + ".service", kEverywhere, tids);
  }
  return cpusets;
}

/// A sandbox whose container owns `cpus`.
ka::policy::ledger::Ledger owner_of(const CpuSet& cpus) {
  ka::policy::ledger::Ledger ledger;
  ka::policy::ledger::PodSeen pod;
  pod.id = "owner";
  pod.vmm = ka::tests::process_id(1);
  ka::policy::ledger::ContainerSeen container;
  container.sandbox = "owner";
  container.id = "app";
  container.spec.cpus = cpus;
  container.exclusive = true;
  ledger.apply({ka::policy::ledger::Source::kApi, pod});
  ledger.apply({ka::policy::ledger::Source::kApi, container});
  return ledger;
}

void read_all(const std::vector<std::string>& files) {
  char text[4096];
  for (const std::string& file : files) {
    const int fd = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0 || ::read(fd, text, sizeof text) <= 0) std::exit(1);
    ::close(fd);
  }
}

double processor_millis() {
  timespec now{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return 1e3 * static_cast<double>(now.tv_sec) + 1e-6 * static_cast<double>(now.tv_nsec);
}

template <typename Work>
double millis(Work work) {
  const double start = processor_millis();
  work();
  return processor_millis() - start;
}

struct Shortest {
  double check = 1e9;  ///< milliseconds, as the other
  double bare = 1e9;
  std::size_t findings = 0;
};

Shortest measure(const ka::host::Cgroups& cgroups, const std::vector<std::string>& cpusets) {
  const CpuSet owned = CpuSet::range(0, 63);
  const auto ledger = owner_of(owned);
  ka::host::KernelAffinityCalls calls;
  const std::set<int> ours;
  Shortest found;
  const auto check = [&] {
    const auto tenants = ka::host::tenants_of(cgroups, owned);
    found.findings = ka::line::evaluate_others(tenants, {ledger, calls, ours, owned}).size();
  };
  for (int round = 0; round < kRounds; ++round) {
    found.bare = std::min(found.bare, millis([&] { read_all(cpusets); }));
    found.check = std::min(found.check, millis(check));
  }
  return found;
}

}  // namespace

int main(int argc, char** argv) {
  const int containers = argc > 1 ? std::atoi(argv[1]) : 3000;
  const ka::tests::FakeNode node;
  const auto cpusets = make_tree(node, containers);
  const auto [check, bare, findings] = measure(*ka::host::Cgroups::find(node.proc()), cpusets);
  std::printf(
      "%d containers, %d services: others on exclusive CPUs checked in %.1f ms; their cpusets, "
      "read "
      "alone, take %.1f ms: %.2f times\n",
      containers, kServices, check, bare, check / bare);
  return findings > 0 && check <= kMostMillis && check <= kMostRatio * bare ? 0 : 1;
}
