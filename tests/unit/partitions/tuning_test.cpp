// SPDX-License-Identifier: Apache-2.0
// CRI-O's annotations on a node whose pods are best-effort: what becomes of the CPUs of their
// containers, and what is said where that is not what was requested.
#include <string>

#include "tests/catch.hpp"
#include "tests/unit/partitions/tuned_node.hpp"

using namespace ka;
using policy::CpuSet;
using policy::TuningKind;
using policy::plan::Grade;
using tests::tuned_options;

namespace {

constexpr const char* kBalancing = "cpu-load-balancing.crio.io";
constexpr const char* kInterrupts = "irq-load-balancing.crio.io";
constexpr const char* kIdle = "cpu-c-states.crio.io";
constexpr const char* kGovernor = "cpu-freq-governor.crio.io";

struct Node : tests::TunedNode {
  explicit Node(line::Options options = tuned_options()) : TunedNode(std::move(options)) {
    for (int cpu = 0; cpu < 8; ++cpu) {
      set(cpu, "power/pm_qos_resume_latency_us", "0");
      set(cpu, "cpufreq/scaling_available_governors", "performance powersave schedutil");
      set(cpu, "cpufreq/scaling_governor", "schedutil");
      set(cpu, "cpufreq/affected_cpus", std::to_string(cpu));
    }
    before = cpu_power.values;
  }

  void set(int cpu, std::string_view file, const std::string& value) const {
    cpu_power.values[tests::FakeCpuPower::name_of(cpu, file)] = value;
  }
  std::string latency(int cpu) const {
    return cpu_power.read(cpu, "power/pm_qos_resume_latency_us").value();
  }
  std::string governor(int cpu) const {
    return cpu_power.read(cpu, "cpufreq/scaling_governor").value();
  }
  std::string kind_of(const std::string& cgroup_name) const {
    return tree.read("/kubepods/poduid-r/" + cgroup_name, "cpuset.cpus.partition").value();
  }
  std::map<std::string, std::string> before;
};

}  // namespace

TEST_CASE("load balancing: a best-effort VM's dedicated vCPUs are in an isolated partition") {
  Node node;
  node.request({{kBalancing, "disable"}});
  CHECK(node.shown().empty());
  node.own({2, 3});
  CHECK(node.tree.isolated() == "2-3");
  CHECK(node.tree.where(111) == tests::kInIt);
  CHECK(node.tree.where(110) == tests::kCgroup);
  CHECK(node.shown() == "cpu-load-balancing.crio.io: disable on 2-3");
  CHECK(node.findings("not-tuned") == 0);
  CHECK_FALSE(node.line().node().view("s1")->grade);
  CHECK(node.last_of("/v1/quiet").empty());
  node.line().release_all();
  node.run_loop();
  CHECK(node.tree.isolated().empty());
  CHECK(node.shown() == "cpu-load-balancing.crio.io: disable on , not: it is released");
}

TEST_CASE("load balancing of one container leaves the vCPUs of the others outside") {
  Node node;
  node.request({{std::string(kBalancing) + "/side", "disable"}});
  node.own({2});
  policy::ContainerFacts side;
  side.id = "c2";
  side.name = "side";
  side.cpus = {3};
  REQUIRE(node.requests().submit(
      {policy::ledger::Source::kApi, policy::ledger::whole_report("s1", side, true)}));
  node.run_loop();
  CHECK(node.tree.isolated() == "3");
}

TEST_CASE("a kernel without partitions: the request is not in force, and verify is degraded") {
  Node node;
  node.tree.has_exclusive = false;
  node.request({{kBalancing, "true"}});
  node.own({2, 3});
  CHECK(node.shown().find("not: ") != std::string::npos);
  CHECK(node.findings("not-tuned") == 1);
  CHECK(node.verifier().verify().verdict() == line::Verdict::kDegraded);
}

TEST_CASE("a container without a VM: its own cgroup is isolated where its pod requests it") {
  const std::string id(64, 'c');
  line::Options options = tuned_options();
  options.quiet.namespaces = {"shop"};
  Node node(options);
  SECTION("a quiet pod's is of the kind root without, and isolated with the annotation") {
    node.add_plain(id, {});
    CHECK(node.kind_of(id) == "root\n");
    node.request({{kBalancing, "disable"}}, "r");
    CHECK(node.kind_of(id) == "isolated\n");
  }
  SECTION("a best-effort pod's becomes isolated, too") {
    node.line().configure(tuned_options());
    node.add_plain(id, {{kBalancing, "disable"}});
    CHECK(node.kind_of(id) == "isolated\n");
    REQUIRE(node.requests().release("r"));
    node.run_loop();
    CHECK(node.kind_of(id) == "member\n");
  }
}

TEST_CASE("under CRI-O a container without a VM is left to CRI-O") {
  const std::string cgroup = "crio-" + std::string(64, 'c') + ".scope";
  Node node;
  node.add_plain(cgroup, {{kBalancing, "disable"}, {kIdle, "disable"}, {kInterrupts, "disable"}});
  CHECK(node.tree.isolated().empty());
  CHECK(node.cpu_power.values == node.before);
  CHECK(node.socket->requests.empty());
  CHECK(node.shown().find("it has no VM, and is left to CRI-O") != std::string::npos);
}

TEST_CASE("interrupts: the helper keeps them off these CPUs, and nothing else") {
  Node node;
  node.request({{kInterrupts, "disable"}});
  std::string granted;
  node.socket->answer = [&](const http::Request& one) {
    if (one.target != "/v1/quiet") return http::Response{.body = "{}"};
    return http::Response{.body = R"({"cpus":"","interrupts":")" + granted +
                                  R"(","kinds":[],"problem":""})"};
  };
  granted = "2-3";
  node.own({2, 3});
  CHECK(node.last_of("/v1/quiet") == R"({"cpus":"","interrupts":"2-3"})");
  CHECK(node.shown() == "irq-load-balancing.crio.io: disable on 2-3");
  CHECK_FALSE(node.is_quiet());
  granted = "2";
  node.check_drift();
  CHECK(node.shown().find("does not take CPUs 3 from the host") != std::string::npos);
  REQUIRE(node.remove("s1"));
  node.run_loop();
  CHECK(node.last_of("/v1/quiet") == R"({"cpus":""})");
}

TEST_CASE("interrupts: housekeeping leaves the host the container's first CPU") {
  Node node;
  node.request({{kInterrupts, "housekeeping"}});
  std::string granted = "3";
  node.socket->answer = [&](const http::Request& one) {
    if (one.target != "/v1/quiet") return http::Response{.body = "{}"};
    return http::Response{.body = R"({"cpus":"","interrupts":")" + granted +
                                  R"(","kinds":[],"problem":""})"};
  };
  node.own({2, 3});
  CHECK(node.last_of("/v1/quiet") == R"({"cpus":"","interrupts":"3"})");
  CHECK(node.shown() == "irq-load-balancing.crio.io: housekeeping on 3");
  CHECK(node.findings("not-tuned") == 0);
  granted = "2";
  node.check_drift();
  CHECK(node.shown().find("does not take CPUs 3 from the host") != std::string::npos);
  CHECK(node.findings("not-tuned") == 1);
  node.own({3});
  CHECK(node.last_of("/v1/quiet") == R"({"cpus":""})");
  CHECK(node.shown() == "irq-load-balancing.crio.io: housekeeping on ");
  CHECK(node.findings("not-tuned") == 0);
}

TEST_CASE("idle states and governor of a container's CPUs, and what they were in the end") {
  Node node;
  node.request({{kIdle, "max_latency:20"}, {kGovernor, "powersave"}});
  node.own({2, 3});
  CHECK(node.latency(2) == "20");
  CHECK(node.governor(3) == "powersave");
  CHECK(node.governor(4) == "schedutil");
  CHECK(node.findings("not-tuned") == 0);
  node.set(2, "cpufreq/scaling_governor", "performance");
  node.check_drift();
  CHECK(node.governor(2) == "powersave");
  node.own({3});
  CHECK(node.latency(2) == "0");
  CHECK(node.latency(3) == "20");
  REQUIRE(node.remove("s1"));
  node.run_loop();
  node.before[tests::FakeCpuPower::name_of(2, "cpufreq/scaling_governor")] = "performance";
  CHECK(node.cpu_power.values == node.before);
}

TEST_CASE("idle states without a limit, and without any") {
  const auto& [value, latency] = GENERATE(table<std::string, std::string>(
      {{"disable", "n/a"}, {"enable", "0"}, {"max_latency:7", "7"}}));
  Node node;
  node.set(2, "power/pm_qos_resume_latency_us", "100");
  node.request({{kIdle, value}});
  node.own({2});
  CHECK(node.latency(2) == latency);
}

TEST_CASE("what a CPU cannot have is said") {
  Node node;
  node.request({{kGovernor, "ondemand"}});
  node.own({2});
  CHECK(node.shown() ==
        "cpu-freq-governor.crio.io: ondemand on 2, not: CPU 2: it has no governor "
        "ondemand");
  node.request({{kIdle, "disable"}});
  node.cpu_power.values.erase("2/power/pm_qos_resume_latency_us");
  node.check_drift();
  CHECK(node.shown().find("it has no power/pm_qos_resume_latency_us") != std::string::npos);
}

TEST_CASE("CPUs of the shared pool are not tuned, and others are") {
  Node node;
  node.service.emplace(*node.keeper, *node.power,
                       [](const CpuSet& cpus) { return cpus - CpuSet{2}; });
  node.request({{kIdle, "disable"}});
  node.own({2, 3});
  CHECK(node.latency(2) == "0");
  CHECK(node.latency(3) == "n/a");
  CHECK(node.shown().find("not: 2 is of kubelet's shared pool, or reserved") != std::string::npos);
}

TEST_CASE("a realtime pod's own request comes before full power") {
  Node node(tuned_options(Grade::kRealtime));
  node.request({{kIdle, "max_latency:5"}});
  node.own({2});
  CHECK(node.latency(2) == "5");
  CHECK(node.governor(2) == "performance");
  node.line().configure(tests::partition_options(true, Grade::kRealtime));
  node.run_loop();
  CHECK(node.latency(2) == "n/a");
}

TEST_CASE("only what node and handler allow is done, and only for values that there are") {
  line::Options options = tuned_options();
  const bool is_of_node = GENERATE(false, true);
  if (is_of_node) {
    options.quiet.tuning_by_annotation = false;
  } else {
    options.settings.allow_tuning = {TuningKind::kInterrupts};
  }
  Node node(options);
  node.request({{kIdle, "disable"}, {kBalancing, "disable"}});
  node.own({2, 3});
  CHECK(node.tree.isolated().empty());
  CHECK(node.cpu_power.values == node.before);
  CHECK(node.findings("tuning-refused") == 2);
  CHECK(node.findings("not-tuned") == 0);
  node.line().configure(tuned_options());
  node.request({{kIdle, "never"}, {kInterrupts, "housekeeper"}, {kGovernor, "../x"}});
  CHECK(node.findings("tuning-refused") == 3);
  CHECK(node.cpu_power.values == node.before);
}

TEST_CASE("without its exclusive CPUs a container is not tuned; observe writes nothing") {
  line::Options options = tuned_options();
  options.observe = true;
  Node node(options);
  node.request({{kIdle, "disable"}, {kBalancing, "disable"}});
  node.own({2, 3});
  CHECK(node.cpu_power.values == node.before);
  CHECK(node.tree.isolated().empty());
  CHECK(node.shown().find("mode is \"observe\"") != std::string::npos);
  REQUIRE(node.container("s1", "app", {0, 1, 2, 3}, false));
  CHECK(node.shown().empty());
}

TEST_CASE("a power record of an earlier daemon is given up where no pod requests anything") {
  Node node;
  node.request({{kIdle, "disable"}});
  node.own({2});
  node.start();
  node.line().configure(tests::partition_options(true, Grade::kBestEffort));
  node.follow();
  CHECK(node.latency(2) == "0");
}
