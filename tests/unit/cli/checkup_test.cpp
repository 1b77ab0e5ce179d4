// SPDX-License-Identifier: Apache-2.0
#include "affinity/cli/doctor/checkup.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>

#include "tests/catch.hpp"
#include "tests/temp_dir.hpp"

using namespace ka;

namespace {

/// "bad kata", "good nri", ...
std::vector<std::string> levels(const tests::TempDir& root) {
  std::vector<std::string> lines;
  for (const cli::Symptom& symptom : cli::examine(root.path())) {
    lines.push_back(std::string(cli::level_name(symptom.level)) + ' ' + symptom.check);
    const bool wants_advice = symptom.level == cli::Symptom::Level::kBad;
    CHECK((!wants_advice || !symptom.advice.empty()));
  }
  return lines;
}

bool says(const tests::TempDir& root, std::string_view words) {
  for (const cli::Symptom& symptom : cli::examine(root.path())) {
    if (symptom.text.find(words) != std::string::npos) return true;
  }
  return false;
}

using Lines = std::vector<std::string>;

}  // namespace

TEST_CASE("doctor: a node without any setup") {
  const tests::TempDir root;
  CHECK(levels(root) == Lines{"bad nri", "note kata", "bad debugfs", "note kubelet", "bad cgroup"});
}

TEST_CASE("doctor: a node without problems") {
  const tests::TempDir root;
  root.write("run/nri/nri.sock", "");
  root.write("sys/fs/cgroup/cgroup.controllers", "cpuset cpu io memory\n");
  root.write("sys/devices/system/cpu/isolated", "\n");
  root.write("sys/devices/system/cpu/smt/control", "on\n");
  root.write("sys/kernel/debug/kvm/1-2/vcpu0/pid", "3");
  root.write("var/lib/kubelet/cpu_manager_state", R"({"policyName":"static","defaultCpuSet":"0"})");
  root.write("var/lib/kubelet/config.yaml", "  DisableCPUQuotaWithExclusiveCPUs: false\n");
  root.write("etc/kata-containers/runtime-rs/configuration.toml", "[runtime]\nname = \"x\"\n");
  CHECK(levels(root) ==
        Lines{"good nri", "note kata", "note profile", "good debugfs", "good kubelet"});
  CHECK(says(root, "sandbox_cgroup_only is on"));
}

TEST_CASE("doctor: a setting that stops the daemon, and a misspelt name") {
  const tests::TempDir root;
  const std::string main = "etc/kata-containers/configuration.toml";
  root.write(main, "[affinity]\nmode = \"observe\"\n");
  CHECK_FALSE(says(root, "toml:1:"));
  root.write("etc/kata-containers/config.d/60.toml", "mode = \"follow\"\n");
  CHECK(says(root, "60.toml:1:1: mode: Kata has no such key"));
  root.write("etc/kata-containers/config.d/60.toml", "[affinity]\ncgroup = \"maybe\"\n");
  CHECK(says(root, "60.toml:2:10: affinity.cgroup"));
}

TEST_CASE("doctor: a Kata without problems is one line, and is not taken for none") {
  const tests::TempDir root;
  const std::string none = "no Kata configuration in the default locations";
  CHECK(says(root, none));
  root.write("sys/fs/cgroup/cgroup.controllers", "cpuset cpu\n");
  root.write("etc/kata-containers/configuration.toml",
             "[runtime]\nstatic_sandbox_resource_mgmt = true\n[affinity]\ncgroup = \"manage\"\n");
  CHECK(levels(root)[1] == "good kata");
  CHECK_FALSE(says(root, none));
}

TEST_CASE("doctor: the profile, and the command that isolates") {
  const tests::TempDir root;
  const std::string main = "etc/kata-containers/configuration.toml";
  root.write("sys/fs/cgroup/cgroup.controllers", "cpuset cpu\n");
  const auto command = [&root] {
    for (const cli::Symptom& symptom : cli::examine(root.path())) {
      if (symptom.check == "profile") return symptom.command;
    }
    return std::string("no line");
  };
  CHECK(command() == "no line");  // of a node without Kata
  root.write(main, "[runtime]\n");
  CHECK(says(root, "no profile is set"));
  CHECK(command() == "kata-affinityctl setup --profile isolated --yes");
  root.write(main, "[affinity]\nmode = \"observe\"\ncgroup = \"manage\"\n");
  CHECK(says(root, "profile watch"));
  root.write(main, "[affinity]\nmode = \"follow\"\n");
  CHECK(says(root, "profile default"));
  root.write(main, "[affinity]\ncgroup = \"manage\"\nhousekeeping = \"sandbox\"\n");
  CHECK(says(root, "profile default"));
  for (const char* keys : {"cgroup = \"manage\"", "housekeeping = \"isolate\""}) {
    root.write(main, std::string("[affinity]\n") + keys + '\n');
    CHECK(says(root, "the profile isolates"));
    CHECK(command().empty());
  }
}

TEST_CASE("doctor: debugfs without KVM") {
  const tests::TempDir root;
  root.write("sys/kernel/debug/sched/debug", "");
  CHECK(says(root, "debugfs is mounted but has no kvm directory"));
  CHECK_FALSE(says(root, "debugfs is not mounted"));
}

TEST_CASE("doctor: NRI, from containerd's configuration") {
  const tests::TempDir root;
  const std::string table = "version = 2\n[plugins.\"io.containerd.nri.v1.nri\"]\n";
  root.write("etc/containerd/config.toml", table + "disable = true\n");
  CHECK(says(root, "NRI is disabled"));
  root.write("etc/containerd/config.toml", table + "disable = false\n");
  CHECK(says(root, "its socket is missing"));
  root.write("etc/containerd/config.toml", "version = 2\n");
  CHECK(says(root, "disabled by default"));
  root.write("etc/containerd/config.toml", "version = \n");
  CHECK(says(root, "config.toml:1:"));
}

TEST_CASE("doctor: Kata's own pinning is found, also in a drop-in, and off with one") {
  const tests::TempDir root;
  const std::string main = "etc/kata-containers/configuration.toml";
  root.write(main, "[runtime]\nenable_vcpus_pinning = true\nstatic_sandbox_resource_mgmt = true\n");
  CHECK(levels(root)[1] == "bad kata");
  CHECK(says(root, "sandbox_cgroup_only is off"));
  CHECK_FALSE(says(root, "static_sandbox_resource_mgmt is off"));
  root.write("etc/kata-containers/config.d/60-pinning.toml",
             "[runtime]\nenable_vcpus_pinning = false\nstatic_sandbox_resource_mgmt = false\n");
  CHECK_FALSE(says(root, "enable_vcpus_pinning"));
  CHECK(says(root, "static_sandbox_resource_mgmt is off"));
}

TEST_CASE("doctor: pinning that a later drop-in turns on is not for setup to turn off") {
  const tests::TempDir root;
  const auto found = [&root] {
    for (const cli::Symptom& one : cli::examine(root.path())) {
      if (one.text.find("enable_vcpus_pinning") != std::string::npos) return one;
    }
    return cli::Symptom{};
  };
  root.write("etc/kata-containers/configuration.toml", "");
  for (const char* name : {"10-mine.toml", "50-affinity.toml"}) {
    root.write(std::string("etc/kata-containers/config.d/") + name,
               "[runtime]\nenable_vcpus_pinning = true\n");
    CHECK(found().command == "kata-affinityctl setup --yes");
  }
  const std::string later = "etc/kata-containers/config.d/60-mine.toml";
  root.write(later, "[runtime]\nenable_vcpus_pinning = true\n");
  CHECK(found().command.empty());
  CHECK(found().advice.find((root.path() / later).string()) != std::string::npos);
  root.write(later, "[runtime]\nenable_vcpus_pinning = false\n");
  CHECK(found().text.empty());
}

TEST_CASE("doctor: the CPU manager's policy, also in version 4 of the file") {
  const tests::TempDir root;
  const std::string file = "var/lib/kubelet/cpu_manager_state";
  root.write(file, R"({"policyName":"none","defaultCpuSet":""})");
  CHECK(says(root, R"(policy is "none")"));
  root.write(file,
             R"({"data":"{\"policyName\":\"static\",\"defaultCpuSet\":\"0\"}","dataChecksum":1})");
  CHECK(levels(root)[3] == "good kubelet");
  root.write(file, "{");
  CHECK(levels(root)[3] == "bad kubelet");
}

TEST_CASE("doctor: the cpuset controller of either cgroup version") {
  const tests::TempDir root;
  root.write("sys/fs/cgroup/cgroup.controllers", "cpu io memory\n");
  CHECK(says(root, "no cpuset controller"));
  root.write("sys/fs/cgroup/cgroup.controllers", "cpuset cpu io memory\n");
  CHECK_FALSE(says(root, "no cpuset controller"));
  std::filesystem::remove(root.path() / "sys/fs/cgroup/cgroup.controllers");
  CHECK(says(root, "no cpuset controller"));
  root.write("sys/fs/cgroup/cpuset/cpuset.cpus", "0-3\n");
  CHECK_FALSE(says(root, "no cpuset controller"));
}

TEST_CASE("doctor: isolcpus, SMT") {
  const tests::TempDir root;
  root.write("sys/devices/system/cpu/isolated", "4-7\n");
  CHECK(says(root, "CPUs 4-7 are isolated (isolcpus)"));
  root.write("var/lib/kubelet/cpu_manager_state",
             R"({"policyName":"static","defaultCpuSet":"0-2,6-7",)"
             R"("entries":{"u":{"c":"3-5"}},"checksum":1})");
  root.write("sys/devices/system/cpu/online", "0-3\n");
  for (const char* control : {"on\n", "notsupported\n"}) {
    root.write("sys/devices/system/cpu/smt/control", control);
    CHECK_FALSE(says(root, "SMT"));
  }
  for (const char* control : {"off\n", "forceoff\n"}) {
    root.write("sys/devices/system/cpu/smt/control", control);
    CHECK(says(root, "SMT is off, and kubelet's state still has CPUs 4-7, which are offline"));
  }
  root.write("var/lib/kubelet/cpu_manager_state",
             R"({"policyName":"static","defaultCpuSet":"0-3","checksum":1})");
  CHECK_FALSE(says(root, "SMT"));
}

TEST_CASE("doctor: irqbalance, unless its configuration excludes CPUs") {
  const tests::TempDir root;
  root.write("proc/31/comm", "irqbalance\n");
  root.write("etc/default/irqbalance", "#IRQBALANCE_BANNED_CPULIST=\n");
  CHECK(says(root, "irqbalance is running"));
  root.write("etc/kata-containers/configuration.toml", "[affinity]\ngrade = \"quiet\"\n");
  CHECK(says(root, "may move interrupts onto exclusive CPUs, unless their pods are quiet"));
  std::filesystem::remove_all(root.path() / "etc/kata-containers");
  root.write("etc/default/irqbalance", "#\nIRQBALANCE_BANNED_CPULIST=4-7\n");
  CHECK_FALSE(says(root, "irqbalance is running"));
  root.write("var/lib/kubelet/cpu_manager_state",
             R"({"policyName":"static","defaultCpuSet":"0-2,6-7",)"
             R"("entries":{"u":{"c":"3-5"}},"checksum":1})");
  CHECK(says(root, "interrupts onto CPU 3, which containers own"));
  root.write("sys/devices/system/cpu/isolated", "3\n");
  CHECK_FALSE(says(root, "irqbalance is running"));
  root.write("etc/default/irqbalance", "IRQBALANCE_BANNED_CPUS=\"00000030\"\n");
  CHECK_FALSE(says(root, "irqbalance is running"));
  root.write("etc/default/irqbalance", "IRQBALANCE_BANNED_CPUS=10\n");
  CHECK(says(root, "interrupts onto CPU 5, which containers own"));
  std::filesystem::remove(root.path() / "etc/default/irqbalance");
  root.write("sys/devices/system/cpu/isolated", "3-5\n");
  CHECK_FALSE(says(root, "irqbalance is running"));
  root.write("etc/default/irqbalance", "\n");
  std::filesystem::remove(root.path() / "etc/default/irqbalance");
  root.write("proc/31/comm", "containerd\n");
  CHECK_FALSE(says(root, "irqbalance is running"));
}

TEST_CASE("doctor: Kata's settings give VMs too few vCPUs") {
  const tests::TempDir root;
  const std::string rust = "etc/kata-containers/runtime-rs/configuration.toml";
  root.write("sys/devices/system/cpu/online", "0-7\n");
  root.write(rust, "[hypervisor.qemu]\ndefault_maxvcpus = 4\noverhead_vcpus = 0.0\n");
  CHECK(says(root, "default_maxvcpus is 4: a pod that owns 4 CPUs or more"));
  CHECK(says(root, "overhead_vcpus is 0"));
  root.write(rust, "[hypervisor.qemu]\ndefault_maxvcpus = 4\noverhead_vcpus = 0\n");
  CHECK(says(root, "overhead_vcpus is 0"));
  for (const char* enough : {"0", "8", "64"}) {
    root.write(rust, std::string("[hypervisor.qemu]\ndefault_maxvcpus = ") + enough +
                         "\noverhead_vcpus = 0.2\n");
    CHECK_FALSE(says(root, "default_maxvcpus is"));
    CHECK_FALSE(says(root, "overhead_vcpus is 0"));
  }
}

TEST_CASE("doctor: no overhead with the Go runtime, nor with hotplug in runtime-rs") {
  const tests::TempDir root;
  root.write("etc/kata-containers/configuration.toml", "[hypervisor.qemu]\noverhead_vcpus = 0\n");
  CHECK_FALSE(says(root, "overhead_vcpus is 0"));
  root.write("etc/kata-containers/runtime-rs/configuration.toml",
             "[hypervisor.qemu]\noverhead_vcpus = 0\n[runtime]\n"
             "static_sandbox_resource_mgmt = false\n");
  CHECK_FALSE(says(root, "overhead_vcpus is 0"));
}

namespace {

/// "bad vcpus: sandbox s1 (shop/cart): ..." for each finding about what runs.
Lines findings(const std::string& sandboxes, const tests::TempDir& root) {
  Lines lines;
  const auto list = boost::json::parse("{\"sandboxes\":[" + sandboxes + "]}");
  for (const cli::Symptom& symptom : cli::examine_sandboxes(list, root.path())) {
    CHECK_FALSE(symptom.advice.empty());
    lines.push_back(std::string(cli::level_name(symptom.level)) + ' ' + symptom.check + ": " +
                    symptom.text);
  }
  return lines;
}

constexpr const char* kDedicated = R"({"id":"s1","pod_name":"shop/cart",
  "vcpus":[{"index":0,"role":"floating"},{"index":1,"role":"dedicated","container":"c"}],
  "threads":[{"tid":70,"role":"emulator"},{"tid":71,"role":"vcpu","vcpu":0},
             {"tid":72,"role":"vcpu","vcpu":1}]})";

/// A memory's place, as the daemon tells it.
std::string memory(const std::string& fields) {
  return R"({"id":"s1","memory":{"text":"9 MiB lie elsewhere",)" + fields + "}}";
}

}  // namespace

TEST_CASE("doctor: a sandbox whose VM has too few vCPUs") {
  const tests::TempDir root;
  CHECK(findings(R"({"id":"s1","warning_codes":["not-isolated","too-few-vcpus","no-floating-vcpu"],
                     "warnings":["not isolated","container c has 1 vCPU","no vCPU floats"]})",
                 root) == Lines{"bad vcpus: sandbox s1: container c has 1 vCPU",
                                "note vcpus: sandbox s1: no vCPU floats"});
  CHECK(findings(R"({"id":"s1","warning_codes":["vcpu-shared"],"warnings":["c shares"]})", root) ==
        Lines{"bad vcpus: sandbox s1: c shares"});
}

TEST_CASE("doctor: memory on the wrong node, unless it is migrating") {
  const tests::TempDir root;
  const Lines found{"note memory: sandbox s1: memory: 9 MiB lie elsewhere"};
  CHECK(findings(memory(R"("verdict":"move","migrate":false)"), root) == found);
  CHECK(findings(memory(R"("verdict":"move","migrate":true,"failed":4096)"), root) == found);
  for (const char* verdict : {"device", "no-room", "no-node"}) {
    CHECK(findings(memory(std::string(R"("verdict":")") + verdict + '"'), root) == found);
  }
  CHECK(findings(memory(R"("verdict":"move","migrate":true)"), root).empty());
  CHECK(findings(memory(R"("verdict":"move","migrate":false,"moving":true)"), root).empty());
  CHECK(findings(memory(R"("verdict":"in-place")"), root).empty());
  CHECK(findings(R"({"id":"s1","memory":null})", root).empty());
}

TEST_CASE("doctor: a CFS quota that throttles dedicated vCPUs") {
  const tests::TempDir root;
  root.write("sys/fs/cgroup/cgroup.controllers", "cpuset cpu\n");
  root.write("proc/72/cgroup", "0::/kubepods/pod1/s1\n");
  CHECK(findings(kDedicated, root).empty());
  root.write("sys/fs/cgroup/kubepods/pod1/cpu.max", "200000 100000\n");
  root.write("sys/fs/cgroup/kubepods/pod1/cpu.stat",
             "usage_usec 5\nnr_periods 40\nnr_throttled 0\n");
  const std::string text =
      "quota: sandbox s1 (shop/cart): its dedicated vCPUs have a CFS quota "
      "of 2.0 CPUs (" +
      (root.path() / "sys/fs/cgroup/kubepods/pod1").string() + ") and were throttled in ";
  CHECK(findings(kDedicated, root) == Lines{"note " + text + "0 of 40 periods"});
  root.write("sys/fs/cgroup/kubepods/pod1/cpu.stat",
             "usage_usec 5\nnr_periods 40\nnr_throttled 12\n");
  CHECK(findings(kDedicated, root) == Lines{"bad " + text + "12 of 40 periods"});
  CHECK(findings(R"({"id":"s1","vcpus":[{"index":1,"role":"floating"}],
                     "threads":[{"tid":72,"role":"vcpu","vcpu":1}]})",
                 root)
            .empty());
}

TEST_CASE("doctor: a response of another daemon version is not a failure") {
  const tests::TempDir root;
  for (const char* text : {"3", "{}", R"({"warnings":3,"warning_codes":["too-few-vcpus"],
                                         "memory":7,"vcpus":[4],"threads":{}})"}) {
    CHECK(findings(text, root).empty());
  }
}

TEST_CASE("doctor: an NRI socket without a listener") {
  const tests::TempDir root;
  root.write("run/nri/nri.sock", "");
  const std::string head = "Num       RefCount Protocol Flags    Type St Inode Path\n";
  const std::string line = "0000000000000000: 00000002 00000000 ";
  root.write("proc/net/unix", head + line + "00010000 0001 01 77 /var/run/nri/nri.sock\n");
  CHECK(levels(root)[0] == "good nri");
  root.write("proc/net/unix", head + line + "00000000 0001 03 78 /var/run/nri/nri.sock\n");
  CHECK(levels(root)[0] == "bad nri");
  CHECK(says(root,
             "nothing listens at /var/run/nri/nri.sock: the container runtime that created it"));
  root.write("etc/containerd/config.toml",
             "[plugins.\"io.containerd.nri.v1.nri\"]\ndisable = true\n");
  CHECK(says(root, "nothing listens at /var/run/nri/nri.sock: NRI is disabled"));
}

TEST_CASE("doctor: sandbox_cgroup_only does not matter with cgroup = manage") {
  const tests::TempDir root;
  const std::string main = "etc/kata-containers/configuration.toml";
  root.write("sys/fs/cgroup/cgroup.controllers", "cpuset cpu\n");
  for (const char* flag : {"true", "false"}) {
    const std::string runtime = std::string("[runtime]\nsandbox_cgroup_only = ") + flag + "\n";
    root.write(main, runtime);
    CHECK(says(root, "sandbox_cgroup_only is"));
    root.write(main, runtime + "[affinity]\ncgroup = \"manage\"\n");
    CHECK_FALSE(says(root, "sandbox_cgroup_only is"));
  }
  // Version 1 has nothing to manage, and only vCPUs inside.
  std::filesystem::remove(root.path() / "sys/fs/cgroup/cgroup.controllers");
  root.write("sys/fs/cgroup/cpuset/cpuset.cpus", "0-3\n");
  CHECK_FALSE(says(root, "sandbox_cgroup_only is"));
  root.write(main, "[runtime]\nsandbox_cgroup_only = true\n");
  CHECK(says(root, "sandbox_cgroup_only is on"));
}

TEST_CASE("doctor: a kubelet slice without cpuset, if Kata creates no cgroup in the pod's") {
  const tests::TempDir root;
  const std::string main = "etc/kata-containers/configuration.toml";
  const std::string slice = "sys/fs/cgroup/kubepods.slice/kubepods-burstable.slice/";
  root.write("sys/fs/cgroup/cgroup.controllers", "cpuset cpu\n");
  root.write(main, "[runtime]\nsandbox_cgroup_only = false\n");
  root.write(slice + "cgroup.subtree_control", "cpuset cpu memory pids\n");
  CHECK_FALSE(says(root, "kills that pod at each sync"));
  root.write(slice + "cgroup.subtree_control", "cpu memory pids\n");
  CHECK(says(root, "kubepods-burstable.slice does not delegate cpuset to its pods"));
  root.write(main, "[runtime]\nsandbox_cgroup_only = true\n");
  CHECK_FALSE(says(root, "kills that pod at each sync"));
}

TEST_CASE("doctor: Kata creates a vCPU for each CPU of the pool, and its Go runtime may fail") {
  const tests::TempDir root;
  const std::string main = "etc/kata-containers/configuration.toml";
  const std::string words = "a burstable container without a CPU limit gets the whole shared pool";
  root.write("sys/devices/system/cpu/online", "0-7\n");
  root.write(main, "[runtime]\n");
  CHECK_FALSE(says(root, words));
  const auto pool = [&](const std::string& cpus) {
    root.write("var/lib/kubelet/cpu_manager_state",
               R"({"policyName":"static","defaultCpuSet":")" + cpus + R"(","checksum":1})");
  };
  pool("0-7");
  CHECK(says(root, words + " (0-7)"));
  CHECK(says(root, "\"Cannot hotplug 8 CPUs\""));
  pool("0-3");
  CHECK(says(root, words + " (0-3)"));
  CHECK_FALSE(says(root, "Cannot hotplug"));
  root.write(main, "[hypervisor.qemu]\ndefault_maxvcpus = 4\n");
  CHECK(says(root, "more than default_maxvcpus (4)"));
  root.write(main, "[runtime]\nstatic_sandbox_resource_mgmt = true\n");
  CHECK_FALSE(says(root, words));
  std::filesystem::remove(root.path() / main);
  root.write("etc/kata-containers/runtime-rs/configuration.toml",
             "[hypervisor.qemu]\ndefault_maxvcpus = 4\n[runtime]\n"
             "static_sandbox_resource_mgmt = false\n");
  CHECK(says(root, words + " (0-3) as its cpuset, and Kata hotplugs 4 vCPUs for it"));
  CHECK_FALSE(says(root, "Cannot hotplug"));
}

TEST_CASE("doctor: a guest without an agent, if vCPUs are dedicated") {
  const tests::TempDir root;
  const auto with = [](const std::string& role, const std::string& guest) {
    return R"({"id":"s1","vcpus":[{"index":1,"role":")" + role +
           R"("}],"threads":[{"tid":72,"role":"vcpu","vcpu":1}],"guest":)" + guest + "}";
  };
  const std::string text =
      "note guest: sandbox s1: no agent in the guest confines containers to their vCPUs";
  const std::string end = ": they may run on every vCPU";
  CHECK(findings(with("dedicated", "null"), root) == Lines{text + end});
  CHECK(findings(with("dedicated", R"({"connected":false,"text":"no answer"})"), root) ==
        Lines{text + " (no answer)" + end});
  CHECK(findings(with("dedicated", R"({"connected":true,"text":"ours"})"), root).empty());
  CHECK(findings(with("floating", "null"), root).empty());

  const auto doubtful = [&](const std::string& doubt) {
    return findings(with("dedicated", R"({"connected":true},"containers":[{"id":"c"},{"id":"d",)"
                                      R"("guest_doubt":")" +
                                          doubt + "\"}]"),
                    root);
  };
  CHECK(doubtful("numbers-uncertain") ==
        Lines{"note guest: sandbox s1: container d may run on every vCPU: kata-agent needs guest "
              "CPU numbers, and these are not certain"});
  CHECK(doubtful("refused") == Lines{"note guest: sandbox s1: container d may run on every vCPU: "
                                     "the guest's policy or kernel refuses its CPUs"});
  CHECK(doubtful("unanswered").empty());
}

TEST_CASE("doctor's text has groups, a summary and the commands that fix problems") {
  using Level = cli::Symptom::Level;
  const std::vector<cli::Symptom> symptoms{
      {"nri", Level::kGood, "NRI is enabled", {}},
      {"kubelet", Level::kNote, "no static policy", "set it", "systemctl restart kubelet"},
      {"debugfs", Level::kBad, "not mounted", "mount it", "mount -t debugfs x y"},
      {"vcpus", Level::kBad, "too few", "raise it"}};
  const std::string text = cli::describe_checkup(symptoms);
  CHECK(text ==
        "node\n"
        "  FAIL  debugfs  not mounted\n"
        "        -> mount it\n\n"
        "kubelet\n"
        "  WARN  kubelet  no static policy\n"
        "        -> set it\n\n"
        "runtime\n"
        "  OK    nri      NRI is enabled\n\n"
        "Kata\n"
        "  OK    no problem found\n\n"
        "sandboxes\n"
        "  FAIL  vcpus    too few\n"
        "        -> raise it\n\n"
        "Summary: 2 FAIL, 1 WARN, 1 OK\n"
        "To fix, after reading the lines above:\n"
        "  mount -t debugfs x y\n"
        "  systemctl restart kubelet\n");
  const std::string colours = cli::coloured(text);
  CHECK(colours.find("  \033[31mFAIL\033[0m  debugfs") != std::string::npos);
  CHECK(colours.find("  \033[32mOK\033[0m    nri") != std::string::npos);
  CHECK(colours.find("        -> mount it\n") != std::string::npos);
}

TEST_CASE("doctor's JSON document keeps its fields, and has group, command and summary") {
  using Level = cli::Symptom::Level;
  const boost::json::value document(
      cli::to_json({{"irq", Level::kBad, "it runs", "stop it", "systemctl stop irqbalance"}}));
  CHECK(document.at_pointer("/ok") == false);
  CHECK(document.at_pointer("/checks/0/level") == "bad");
  CHECK(document.at_pointer("/checks/0/group") == "node");
  CHECK(document.at_pointer("/checks/0/advice") == "stop it");
  CHECK(document.at_pointer("/checks/0/command") == "systemctl stop irqbalance");
  CHECK(document.at_pointer("/summary/bad") == 1);
  CHECK(cli::group_of("guest") == "sandboxes");
  CHECK(cli::group_of("irqs") == "node");
}
