// SPDX-License-Identifier: Apache-2.0
#include "affinity/cli/noise/report.hpp"

#include <boost/json/array.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>

#include "affinity/cli/noise/counters.hpp"
#include "affinity/cli/noise/remedy.hpp"
#include "affinity/cli/noise/stolen.hpp"
#include "tests/catch.hpp"
#include "tests/fake_node.hpp"
#include "tests/temp_dir.hpp"

using namespace ka;
using namespace ka::cli::noise;
namespace json = boost::json;

namespace {

/// CPU 4 has a dedicated vCPU, CPU 5 is a runc container's, CPU 6 is shared.
Targets targets() {
  return read_targets(json::parse(R"({"cpus":[
      {"cpu":4,"owners":[{"pod":"s1","pod_name":"shop/cart","container":"c1","name":"app","vm":true}],
       "vcpus":[{"sandbox":"s1","vcpu":2,"container":"c1"}]},
      {"cpu":5,"owners":[{"pod":"s2","pod_name":"shop/db","container":"c2","name":"db","vm":false}],
       "vcpus":[]},
      {"cpu":6,"owners":[],"vcpus":[]}]})"),
                      json::parse(R"({"sandboxes":[{"id":"s1","pod_name":"shop/cart","threads":[
      {"role":"vcpu","vcpu":0,"tid":40},{"role":"vcpu","vcpu":2,"tid":42},
      {"role":"vhost","tid":44}]}]})"));
}

void change(Interruptions& seen, int cpu, int at, int from, int to, const std::string& name) {
  seen.add({cpu, Nanoseconds(at), from, Switch{from, to, "before", name}});
}

json::value report_of(const Interruptions& seen, const Tasks& tasks) {
  const InterruptFiles interrupts("/nowhere", "/nowhere");
  return to_json(targets(), seen, {tasks, interrupts}, {{4, std::chrono::milliseconds(20)}},
                 std::chrono::seconds(1));
}

std::string text_of(const Remedy& remedy) {
  return std::string(movable_name(remedy.movable)) + ": " + remedy.by;
}

}  // namespace

TEST_CASE("what the daemon has counted is a table") {
  CHECK(cli::noise::describe_counters(boost::json::parse(R"({"interruptions":{"problem":"","cpus":[
      {"cpu":4,"vcpu":1,"sandbox":"s1","pod_name":"shop/cart","seconds":120.0,"slices":12,
       "nanoseconds":3400000,"interrupts":5,"passed_through":8},
      {"cpu":5,"vcpu":2,"sandbox":"s1","pod_name":"","seconds":0,"slices":0,"nanoseconds":0,
       "interrupts":0}]}})")) ==
        "CPU   VCPU                               SECONDS     TIMES     PER S    OTHERS MS  DEVICE "
        "IRQS     OWN IRQS\n"
        "4     vCPU 1 of shop/cart                  120.0        12       0.1         3.40         "
        "   "
        "5            8\n"
        "5     vCPU 2 of s1                           0.0         0       0.0         0.00         "
        "   "
        "0            0\n");
  CHECK(cli::noise::describe_counters(
            boost::json::parse(R"({"interruptions":{"problem":"no counters","cpus":[]}})")) ==
        "not counted: no counters\n");
  CHECK(cli::noise::describe_counters(boost::json::parse(
            R"({"interruptions":{"problem":"","cpus":[]}})")) == "no vCPU is dedicated to a CPU\n");
}

TEST_CASE("the CPUs of a pod, all that are owned, and any that are named") {
  const Targets all = targets();
  CHECK(all.size() == 2);
  CHECK(all.at(4).owners.front().title == "shop/cart, container app");
  CHECK(all.at(4).tenants == std::vector<std::string>{"vCPU 2 of shop/cart"});
  CHECK(owned_by(all, "s2").size() == 1);
  CHECK(owned_by(all, "s3").empty());
  CHECK(cli::resolve(pods_of(all), "db") == "s2");
  const Targets named = among(all, policy::CpuSet{5, 6});
  CHECK((named.size() == 2 && named.at(6).owners.empty()));
  CHECK(named.at(5).containers.contains("c2"));
}

TEST_CASE("a dedicated vCPU and a container's own processes are what their CPU is for") {
  const Targets all = targets();
  const TaskFacts own{.cgroup = "/kubepods/pod7/cri-containerd-c2.scope"};
  const TaskFacts other{.cgroup = "/kubepods/pod7/cri-containerd-c3.scope"};
  CHECK(is_tenant(all.at(4), 42, nullptr));
  CHECK_FALSE(is_tenant(all.at(4), 40, nullptr));
  CHECK_FALSE(is_tenant(all.at(4), 99, &own));
  CHECK(is_tenant(all.at(5), 99, &own));
  CHECK_FALSE(is_tenant(all.at(5), 99, &other));
  CHECK_FALSE(is_tenant(all.at(5), 99, nullptr));
}

TEST_CASE("the report names what interrupted a CPU, the longest first") {
  const tests::FakeNode node;
  node.process(17, 2, "kworker/4:1", "");
  Tasks tasks{base::ProcFs(node.proc())};
  Interruptions seen({4, 5}, Nanoseconds(0));
  change(seen, 4, 1000, 42, 17, "kworker/4:1");
  change(seen, 4, 3000, 17, 99, "cron");
  change(seen, 4, 9000, 99, 42, "CPU 2/KVM");
  tasks.read({4, Nanoseconds(1000), 42, Switch{42, 17, "", ""}});
  seen.finish(Nanoseconds(10000));
  const json::value report = report_of(seen, tasks);
  const json::object& cpu = report.at("cpus").at(0).as_object();
  CHECK((cpu.at("count") == 2 && cpu.at("total_us") == 8.0 && cpu.at("stolen_ms") == 20));
  CHECK(cpu.at("causes").at(0).at("name") == "cron");
  CHECK(cpu.at("causes").at(0).at("movable") == "unknown");
  CHECK(cpu.at("causes").at(1).at("name") == "kworker/4:1");
  CHECK(report.at("cpus").at(1).at("seen") == false);
  CHECK(describe(report) ==
        "CPU 4: shop/cart, container app (vCPU 2 of shop/cart)\n"
        "  interrupted 2 times, 8.0 us of 1.0 s; 20 ms stolen by the hypervisor below\n"
        "  kind      what                           times    total us    longest  movable  by, or "
        "why "
        "not\n"
        "  task      cron [99]                          1         6.0        6.0  unknown  it had "
        "ended before it could be read\n"
        "  task      kworker/4:1 [17]                   1         2.0        2.0  yes      its "
        "affinity mask (taskset -p)\n"
        "CPU 5: shop/db, container db\n"
        "  no event: what runs there ran all the time\n");
}

TEST_CASE("lost events make the figures a lower bound") {
  Interruptions seen({4}, Nanoseconds(0));
  change(seen, 4, 1000, 42, 99, "cron");
  seen.add({4, {}, 0, Lost{12}});
  const json::value report = report_of(seen, Tasks{base::ProcFs("/nowhere")});
  CHECK(report.at("cpus").at(0).at("complete") == false);
  CHECK(describe(report).find("at least: interrupted 1 times") != std::string::npos);
  CHECK(describe(report).find("; 12 events lost") != std::string::npos);
}

TEST_CASE("what can be moved, and by what") {
  const auto by = [](const std::string& name, const TaskFacts& facts) {
    return text_of(remedy_for_task(name, &facts));
  };
  const TaskFacts bound{.is_kernel = true, .is_bound = true, .cgroup = "/"};
  const TaskFacts kernel{.is_kernel = true, .cgroup = "/"};
  CHECK(by("kworker/4:1", bound) == "no: the kernel binds it to this CPU");
  CHECK(by("kworker/u8:3", bound) == "yes: /sys/devices/virtual/workqueue/cpumask");
  CHECK(by("kcompactd0", kernel) == "yes: its affinity mask (taskset -p)");
  const auto in = [&](const std::string& cgroup) {
    const TaskFacts facts{.cgroup = cgroup};
    return by("x", facts);
  };
  CHECK(in("/system.slice/cron.service") == "yes: AllowedCPUs= of cron.service");
  CHECK(in("/user.slice/user-0.slice/session-1.scope/x") == "yes: AllowedCPUs= of session-1.scope");
  CHECK(in("/user.slice") == "yes: AllowedCPUs= of user.slice");
  CHECK(in("/mine") == "yes: the cpuset of cgroup /mine");
  CHECK(in("/kubepods.slice/kubepods-pod1_2.slice/cri-containerd-c9.scope") ==
        "yes: the cpuset of its container, which kubelet writes");
  CHECK(by("irq/24-eth0", bound) ==
        "yes: it follows its interrupt: /proc/irq/24/smp_affinity_list");
  const TaskFacts of_pod{.cgroup = "/kubepods.slice/kubepods-pod1_2.slice/cri-containerd-c9.scope"};
  for (const char* name : {"CPU 2/KVM", "qemu-system-x86", "vhost-4711", "fc_vcpu 0",
                           "cloud-hyperviso", "containerd-shim"}) {
    CHECK(by(name, of_pod).starts_with("yes: it is of a VM: kata-affinity places"));
  }
  CHECK(by("vhost-4711", kernel).starts_with("yes: it is of a VM"));
  CHECK(text_of(remedy_for_task("x", nullptr)).starts_with("unknown: it had ended"));
  CHECK(text_of(remedy_for(CauseKind::kVector)) == "no: it belongs to this CPU");
}

TEST_CASE("an interrupt can be moved where the kernel says so") {
  const tests::TempDir dir;
  const InterruptFiles files(dir.path() / "proc", dir.path() / "debug");
  const auto by = [&](const char* name = "eth0") {
    const auto facts = files.read(36);
    return text_of(remedy_for_interrupt(36, name, facts ? &*facts : nullptr));
  };
  CHECK(by() == "unknown: it is gone");
  dir.write("proc/irq/36/smp_affinity_list", "0-7\n");
  dir.write("proc/irq/36/effective_affinity_list", "4\n");
  dir.write("proc/sys/kernel/osrelease", "6.12.3\n");
  CHECK(by() ==
        "unknown: /proc/irq/36/smp_affinity_list, unless its driver manages it; it goes to CPU 4");
  dir.write("debug/irq/irqs/36", "dstate:   0x1\n            IRQD_AFFINITY_MANAGED\n");
  CHECK(by() == "no: the kernel keeps it there: its driver manages it; it goes to CPU 4");
  dir.write("debug/irq/irqs/36", "dstate:   0x1\n");
  CHECK(by() == "yes: /proc/irq/36/smp_affinity_list; it goes to CPU 4");
  std::filesystem::remove(dir.path() / "debug/irq/irqs/36");
  dir.write("proc/sys/kernel/osrelease", "6.13.0-rc1\n");
  CHECK(by() == "yes: /proc/irq/36/smp_affinity_list; it goes to CPU 4");
  CHECK(by("vfio-msix[0](0000:01:00.0)").starts_with("no: its device is passed through"));
  std::filesystem::permissions(dir.path() / "proc/irq/36/smp_affinity_list",
                               std::filesystem::perms::owner_read);
  CHECK(by().starts_with("no: the kernel keeps it there"));
}

TEST_CASE("time stolen by a hypervisor is what /proc/stat says between two readings") {
  const tests::TempDir proc;
  const auto read = [&](const std::string& steal) {
    proc.write("stat", "cpu  1 2 3 4 5 6 7 8 0 0\ncpu4 1 0 1 9 0 0 0 " + steal +
                           " 0 0\nintr 12\ncpu5 1 2\n");
    return read_stolen(proc.path());
  };
  const Stolen before = read("7"), now = read("10");
  CHECK(before.size() == 1);
  CHECK(since(before, now) == Stolen{{4, std::chrono::milliseconds(30)}});
  CHECK(since(now, before).empty());
  CHECK(read_stolen("/nowhere").empty());
}

TEST_CASE("the text names the cgroup of a task that has one of its own") {
  const std::string text = describe(json::parse(R"({"seconds":1,"cpus":[{"cpu":4,"seen":true,
      "complete":true,"causes":[
        {"kind":"task","id":7,"name":"backup","cgroup":"/system.slice/backup.service","count":1,
         "total_us":1.0,"longest_us":1.0,"movable":"yes","by":"AllowedCPUs= of backup.service"},
        {"kind":"task","id":8,"name":"kswapd0","cgroup":"/","count":1,"total_us":1.0,
         "longest_us":1.0,"movable":"yes","by":"its affinity mask"}]}]})"));
  CHECK(text.find("AllowedCPUs= of backup.service (in /system.slice/backup.service)\n") !=
        std::string::npos);
  CHECK(text.find("its affinity mask\n") != std::string::npos);
}
