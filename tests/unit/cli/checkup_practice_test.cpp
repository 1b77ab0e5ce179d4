// SPDX-License-Identifier: Apache-2.0
// What defeats isolation in practice: each finding, and the node without it.
#include <algorithm>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>

#include "affinity/cli/client/daemon.hpp"
#include "affinity/cli/doctor/checkup.hpp"
#include "affinity/cli/doctor/sizing.hpp"
#include "tests/catch.hpp"
#include "tests/temp_dir.hpp"

using namespace ka;

namespace {

bool says(const tests::TempDir& root, std::string_view words) {
  return std::ranges::any_of(cli::examine(root.path()), [words](const cli::Symptom& symptom) {
    CHECK((symptom.level == cli::Symptom::Level::kGood || !symptom.advice.empty() ||
           symptom.check == "kata"));
    return symptom.text.find(words) != std::string::npos;
  });
}

/// A kubelet with the static policy, and a runtime-rs that sizes VMs before they start.
void write_static_rust(const tests::TempDir& root) {
  root.write("var/lib/kubelet/cpu_manager_state",
             R"({"policyName":"static","defaultCpuSet":"0-1","checksum":1})");
  root.write("etc/kata-containers/runtime-rs/configuration.toml", "[runtime]\n");
}

constexpr const char* kQuotaSizing = cli::kQuotaSizing;

}  // namespace

TEST_CASE("doctor: static sizing counts quotas, and kubelet 1.33 sets none on exclusive CPUs") {
  const tests::TempDir root;
  write_static_rust(root);
  CHECK(says(root, kQuotaSizing));
  CHECK(says(root, "kubelet 1.33 and later"));
  const auto kubelet = [&root](const std::string& version) {
    root.write("var/lib/dpkg/status",
               "Package: kubectl\nVersion: 1.20.0-1\n\nPackage: kubelet\nStatus: install ok "
               "installed\nVersion: " +
                   version + "\n");
  };
  kubelet("1.32.4-1.1");
  CHECK_FALSE(says(root, kQuotaSizing));
  kubelet("1.35.0-1.1");
  CHECK(says(root, "kubelet 1.35"));
  root.write("var/lib/kubelet/config.yaml",
             "featureGates:\n  DisableCPUQuotaWithExclusiveCPUs: false\n");
  CHECK_FALSE(says(root, kQuotaSizing));
}

TEST_CASE("doctor: kubelet's gate in flags, drop-ins and its configuration, as it is written") {
  const tests::TempDir root;
  const std::string name = "DisableCPUQuotaWithExclusiveCPUs";
  write_static_rust(root);
  const auto is_off = [&root] { return cli::quota_of_exclusive(root.path()).is_set; };
  const auto config = [&](const std::string& text) {
    root.write("var/lib/kubelet/config.yaml", text);
  };
  const auto kubelet = [&](const std::vector<std::string>& flags) {
    std::string line("kubelet", 8);
    for (const std::string& flag : flags) line += flag + '\0';
    root.write("proc/41/comm", "kubelet\n");
    root.write("proc/41/cmdline", line);
  };
  for (const char* off : {"{\"featureGates\":{\"A\":true,\"%\":false}}", "featureGates: {%: false}",
                          "featureGates:\n  \"%\":   false\n", "  #%: true\n  %: false\n"}) {
    std::string text(off);
    for (auto at = text.find('%'); at != std::string::npos; at = text.find('%')) {
      text.replace(at, 1, name);
    }
    CAPTURE(text);
    config(text);
    CHECK(is_off());
  }
  config("featureGates:\n  # " + name + ": false\n");
  CHECK_FALSE(is_off());
  kubelet({"--feature-gates=A=true," + name + "=false"});
  CHECK(is_off());
  kubelet({"--feature-gates", name + "=true", "--config", "/etc/kubelet.json"});
  root.write("etc/kubelet.json", "{\"" + name + "\":false}");
  CHECK_FALSE(is_off());
  kubelet({"--config", "/etc/kubelet.json"});
  CHECK(is_off());
  kubelet({"--config=/etc/kubelet.json", "--config-dir=/etc/kubelet.d"});
  root.write("etc/kubelet.d/10-on.conf", name + ": true");
  root.write("etc/kubelet.d/20-off.yaml", name + ": false");
  CHECK_FALSE(is_off());
}

TEST_CASE("doctor: a running daemon without the capabilities to see VMMs") {
  const tests::TempDir root;
  constexpr std::string_view kBlind = "kata-affinityd (pid 41) cannot see VMMs completely: without";
  root.write("proc/40/comm", "sh\n");
  root.write("proc/40/status", "Name:\tsh\nCapEff:\t0000000000000000\n");
  CHECK_FALSE(says(root, kBlind));
  root.write("proc/41/comm", "kata-affinityd\n");
  CHECK_FALSE(says(root, kBlind));
  root.write("proc/41/status", "Name:\tkata-affinityd\nCapEff:\t0000000000880004\n");
  CHECK_FALSE(says(root, kBlind));
  root.write("proc/41/status", "Name:\tkata-affinityd\nCapEff:\t0000000000800004\n");
  CHECK(says(root, kBlind));
}

TEST_CASE("doctor: quota sizing concerns static sizing only, of either runtime") {
  const tests::TempDir root;
  const std::string rust = "etc/kata-containers/runtime-rs/configuration.toml";
  const std::string go = "etc/kata-containers/configuration.toml";
  write_static_rust(root);
  CHECK(says(root, "such a VM gets 1 vCPU"));
  root.write(rust, "[runtime]\nstatic_sandbox_resource_mgmt = false\n");
  CHECK_FALSE(says(root, kQuotaSizing));
  std::filesystem::remove(root.path() / rust);
  root.write(go, "[runtime]\nstatic_sandbox_resource_mgmt = true\n");
  CHECK(says(root, "such a VM gets only default_vcpus"));
  root.write(go, "");
  CHECK_FALSE(says(root, kQuotaSizing));
  write_static_rust(root);
  root.write("var/lib/kubelet/cpu_manager_state", R"({"policyName":"none","defaultCpuSet":""})");
  CHECK_FALSE(says(root, kQuotaSizing));
}

TEST_CASE("doctor: static sizing is a remedy only where pods with exclusive CPUs keep a quota") {
  const tests::TempDir root;
  write_static_rust(root);
  const auto advises = [&root] {
    return std::ranges::any_of(cli::examine(root.path()), [](const cli::Symptom& symptom) {
      return symptom.advice.find("static_sandbox_resource_mgmt = true") != std::string::npos;
    });
  };
  for (const char* file : {"etc/kata-containers/configuration.toml",
                           "etc/kata-containers/runtime-rs/configuration.toml"}) {
    root.write(file, "[runtime]\nstatic_sandbox_resource_mgmt = false\n");
  }
  CHECK_FALSE(says(root, "static_sandbox_resource_mgmt is off"));
  CHECK(says(root, "a burstable container without a CPU limit"));
  CHECK_FALSE(advises());
  root.write("var/lib/kubelet/config.yaml",
             "featureGates:\n  DisableCPUQuotaWithExclusiveCPUs: false\n");
  CHECK(says(root, "static_sandbox_resource_mgmt is off"));
  CHECK(advises());
}

TEST_CASE("doctor: nohz_full, if it covers the shared pool") {
  const tests::TempDir root;
  write_static_rust(root);
  CHECK_FALSE(says(root, "nohz_full"));
  root.write("sys/devices/system/cpu/nohz_full", "2-7\n");
  CHECK_FALSE(says(root, "nohz_full"));
  root.write("sys/devices/system/cpu/nohz_full", "1-7\n");
  CHECK(says(root, "nohz_full covers CPU 1 of the shared pool"));
  root.write("sys/devices/system/cpu/nohz_full", " (null)\n");
  CHECK_FALSE(says(root, "nohz_full"));
}

TEST_CASE("doctor: other programs that write masks") {
  const tests::TempDir root;
  const auto has = [&root] { return !cli::examine_agents(root.path()).empty(); };
  root.write("proc/31/comm", "containerd\n");
  CHECK_FALSE(has());
  for (const char* comm : {"numad", "nri-resource-po"}) {
    root.write("proc/32/comm", std::string(comm) + '\n');
    CHECK(has());
  }
  root.write("proc/32/comm", "tuned\n");
  CHECK_FALSE(has());
  root.write("etc/tuned/active_profile", "throughput-performance\n");
  CHECK_FALSE(has());
  root.write("etc/tuned/active_profile", "cpu-partitioning\n");
  CHECK(says(root, "moves threads off its isolated cores"));
  root.write("etc/tuned/active_profile", "vm-cpu-partitioning\n");
  root.write("etc/tuned/vm-cpu-partitioning/tuned.conf",
             "[main]\ninclude=cpu-partitioning\n[scheduler]\nps_blacklist=.*pmd.*\n");
  CHECK(says(root, "moves threads off its isolated cores"));
  root.write("etc/tuned/vm-cpu-partitioning/tuned.conf",
             "[scheduler]\nps_blacklist=.*qemu.*;.*cloud-hyper.*;.*virtiofsd.*\n");
  CHECK_FALSE(has());
  root.write("etc/tuned/active_profile", "cpu-partitioning\n");
  std::filesystem::remove(root.path() / "proc/32/comm");
  CHECK_FALSE(has());
  std::filesystem::create_directories(root.path() / "opt/nri/plugins");
  CHECK_FALSE(has());
  root.write("opt/nri/plugins/10-balloons", "");
  CHECK(says(root, "other NRI plugins: 10-balloons"));
}

TEST_CASE("doctor: dra-driver-cpu and kubelet's static policy exclude each other") {
  const tests::TempDir root;
  const auto level = [&root] { return cli::examine_agents(root.path()).at(0).level; };
  CHECK(cli::examine_agents(root.path()).empty());
  root.write("proc/32/comm", "dracpu\n");
  CHECK(level() == cli::Symptom::Level::kGood);
  root.write("var/lib/kubelet/cpu_manager_state", R"({"policyName":"none"})");
  CHECK(level() == cli::Symptom::Level::kGood);
  CHECK(says(root, "as dra-driver-cpu needs it"));
  root.write("var/lib/kubelet/cpu_manager_state",
             R"({"policyName":"static","defaultCpuSet":"0-7"})");
  CHECK(level() == cli::Symptom::Level::kBad);
}

TEST_CASE("doctor: in managed mode no other plugin gives CPUs") {
  const tests::TempDir root;
  root.write("etc/kata-containers/configuration.toml", "[affinity]\nmode = \"managed\"\n");
  const std::string mounts = "22 1 8:1 / / rw - ext4 /dev/sda rw\n";
  root.write("proc/self/mountinfo", mounts);
  root.write("proc/32/comm", "dracpu\n");
  CHECK_FALSE(says(root, "the daemon does not start"));
  root.write("proc/32/task/32/stat",
             "32 (dracpu) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 77 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 "
             "0 0 0 0 0 0 0 0 0 0 0 0\n");
  root.write("proc/32/status", "Name:\tdracpu\nUid:\t0\t0\t0\t0\n");
  root.write("proc/32/mountinfo", mounts);
  CHECK(says(root, "dracpu (pid 32) gives containers their CPUs beside mode = \"managed\""));
  CHECK_FALSE(says(root, "its claims are followed"));
}

TEST_CASE("doctor: without systemd a slice without pods lacks nothing") {
  const tests::TempDir root;
  root.write("sys/fs/cgroup/cgroup.controllers", "cpuset cpu\n");
  root.write("etc/kata-containers/configuration.toml", "");
  root.write("sys/fs/cgroup/kubepods/burstable/cgroup.subtree_control", "\n");
  CHECK_FALSE(says(root, "does not delegate cpuset"));
  std::filesystem::create_directories(root.path() / "sys/fs/cgroup/kubepods/burstable/pod6f1c");
  CHECK(says(root, "kubepods/burstable does not delegate cpuset"));
  root.write("sys/fs/cgroup/kubepods/burstable/cgroup.subtree_control", "cpuset cpu\n");
  CHECK_FALSE(says(root, "does not delegate cpuset"));
}

TEST_CASE("doctor: debugfs that the kernel was booted without cannot be mounted") {
  const tests::TempDir root;
  root.write("proc/cmdline", "quiet debugfs=on\n");
  CHECK(says(root, "debugfs is not mounted"));
  root.write("proc/cmdline", "quiet debugfs=off\n");
  CHECK(says(root, "booted with debugfs=off"));
  CHECK_FALSE(says(root, "debugfs is not mounted"));
}

TEST_CASE("doctor: NRI of CRI-O") {
  const tests::TempDir root;
  CHECK_FALSE(says(root, "CRI-O"));
  root.write("etc/crio/crio.conf.d/99-kata-deploy", "");
  CHECK(says(root, "CRI-O before 1.30 has NRI disabled"));
  root.write("run/nri/nri.sock", "");
  CHECK_FALSE(says(root, "CRI-O"));
}

TEST_CASE("doctor: containerd 1.6 has no NRI, and the shim proxy makes up for it") {
  const tests::TempDir root;
  const auto install = [&root](const std::string& package, const std::string& version) {
    root.write("var/lib/dpkg/status", "Package: " + package +
                                          "\nStatus: install ok installed\nVersion: " + version +
                                          "\nDescription: runtime\n\nPackage: other\n");
  };
  install("containerd", "1.6.20~ds1-1+deb12u3");
  CHECK(says(root, "containerd 1.6 has no NRI"));
  install("containerd.io", "5:1.6.33-1");
  CHECK(says(root, "containerd 1.6 has no NRI"));
  install("containerd", "1.7.24~ds1-6");
  CHECK_FALSE(says(root, "has no NRI"));

  install("containerd", "1.6.20~ds1-1+deb12u3");
  root.write("etc/containerd/config.toml",
             "[plugins.\"io.containerd.grpc.v1.cri\".containerd.runtimes.kata-affinity]\n"
             "runtime_type = \"io.containerd.kata-affinity.v2\"\n");
  CHECK_FALSE(says(root, "has no NRI"));
  CHECK(says(root, "the shim proxy reports the containers of runtime handler kata-affinity"));
  root.write("run/nri/nri.sock", "");
  CHECK_FALSE(says(root, "shim proxy"));
}

TEST_CASE("doctor: a package that is on hold has a version, one that was removed has none") {
  const tests::TempDir root;
  root.write("var/lib/dpkg/status",
             "Package: containerd\nStatus: hold ok installed\nVersion: 1.6.20-1\n");
  CHECK(says(root, "containerd 1.6 has no NRI"));
  root.write("var/lib/dpkg/status",
             "Package: containerd\nStatus: deinstall ok config-files\nVersion: 1.6.20-1\n");
  CHECK_FALSE(says(root, "has no NRI"));
}

TEST_CASE("doctor: too few vCPUs, with the setting that may be the cause") {
  const tests::TempDir root;
  const auto list = boost::json::parse(
      R"({"sandboxes":[{"id":"s1","vcpus":[{"index":0},{"index":1}],
         "warning_codes":["too-few-vcpus"],"warnings":["c has 2 of 4"]}]})");
  const auto found = [&] { return cli::examine_sandboxes(list, root.path()).at(0).text; };
  CHECK(found() == "sandbox s1: c has 2 of 4");
  const std::string main = "etc/kata-containers/configuration.toml";
  root.write(main, "[hypervisor.qemu]\ndefault_maxvcpus = 2\n");
  CHECK(found().ends_with("default_maxvcpus is 2"));
  root.write(main, "[hypervisor.qemu]\ndefault_maxvcpus = 8\n");
  CHECK(found() == "sandbox s1: c has 2 of 4");
  std::filesystem::remove(root.path() / main);
  write_static_rust(root);
  CHECK(found().find(kQuotaSizing) != std::string::npos);
}

TEST_CASE("doctor: a source that cannot watch its files, with the limit to raise") {
  const tests::TempDir root;
  const auto list = boost::json::parse(
      R"({"sources":[{"source":"nri","up":true,"text":""},{"source":"kubelet","up":true,
         "text":"static","late":"no space","remedy":"sysctl -w fs.inotify.max_user_watches=9"}]})");
  const auto found = cli::examine_sandboxes(list, root.path());
  REQUIRE(found.size() == 1);
  CHECK(found[0].level == cli::Symptom::Level::kBad);
  CHECK(found[0].text.find("kubelet") != std::string::npos);
  CHECK(found[0].command == "sysctl -w fs.inotify.max_user_watches=9");
  CHECK(cli::group_of(found[0].check) == "sandboxes");
}

TEST_CASE("doctor: a caller who is not root is told first that lines may be wrong") {
  const auto found = cli::examine_caller(false);
  REQUIRE(found.size() == 1);
  CHECK(found[0].text.starts_with("not root: "));
  CHECK(found[0].command == "sudo kata-affinityctl doctor");
  CHECK(cli::examine_caller(true).empty());
}

TEST_CASE("doctor: without the daemon no sandbox is checked, and only root is told to start it") {
  const tests::TempDir root;
  const std::string socket = (root.path() / "api.sock").native();
  const auto nobody = cli::Daemon(socket).get("/v1/sandboxes");
  const auto found = cli::examine_daemon(nobody, root.path(), true);
  REQUIRE(found.size() == 1);
  CHECK(found[0].check == "daemon");
  CHECK(found[0].text.starts_with("no sandbox was checked: "));
  CHECK(found[0].text.find(socket) != std::string::npos);
  CHECK(found[0].command == "systemctl start kata-affinityd");
  CHECK(cli::examine_daemon(nobody, root.path(), false).at(0).command.empty());

  const auto answer = boost::json::parse(R"({"sandboxes":[]})").as_object();
  for (const auto& symptom : cli::examine_daemon(answer, root.path(), true)) {
    CHECK(symptom.check != "daemon");
  }
}

TEST_CASE("doctor: grade quiet without the helper's socket") {
  const tests::TempDir root;
  const auto finding = [&](const std::string& settings) {
    root.write("etc/kata-containers/configuration.toml", "[affinity]\n" + settings);
    const auto found = cli::examine(root.path());
    const auto helper = std::ranges::find(found, "helper", &cli::Symptom::check);
    return helper == found.end() ? std::string() : helper->text + " -> " + helper->command;
  };
  CHECK(finding("").empty());
  for (const char* quiet :
       {"grade = \"quiet\"\n", "[affinity.handler.kata]\ngrade = \"quiet\"\n"}) {
    CHECK(finding(quiet) ==
          "grade is \"quiet\" or \"realtime\", and kata-affinity-helper's socket "
          "/run/kata-affinity/helper.sock "
          "does not exist: sandboxes stay best-effort -> systemctl enable --now "
          "kata-affinity-helper.socket");
  }
  CHECK(finding("[affinity.classes.gold]\nmba = \"50%\"\n") ==
        "classes have l3, l2 or mba, and kata-affinity-helper's socket "
        "/run/kata-affinity/helper.sock does not exist: these have no effect -> systemctl enable "
        "--now kata-affinity-helper.socket");
  CHECK(finding("[affinity.classes.gold]\nnice = 5\n").empty());
  const std::string lists = "allow_crio_annotations = [\"cpu-quota.crio.io\"]\n";
  const std::string allows = "allow_annotations = [\"crio\"]\n";
  CHECK(finding(lists).empty());
  CHECK(finding(allows).empty());
  for (const std::string& both : {allows + lists, allows + "[affinity.handler.kata]\n" + lists}) {
    CHECK(finding(both) ==
          "allow_crio_annotations lists annotations, and kata-affinity-helper's socket "
          "/run/kata-affinity/helper.sock does not exist: these have no effect -> systemctl enable "
          "--now kata-affinity-helper.socket");
  }
  root.write("run/kata-affinity/helper.sock", "");
  CHECK(finding("grade = \"quiet\"\n").empty());
  CHECK_FALSE(finding("grade = \"quiet\"\nhelper_socket = \"/run/other.sock\"\n").empty());
}

TEST_CASE("doctor: what a grade lacks on cgroup v1, and on a kernel without remote partitions") {
  const tests::TempDir root;
  const auto finding = [&](const std::string& settings) {
    root.write("etc/kata-containers/configuration.toml", "[affinity]\n" + settings);
    const auto found = cli::examine(root.path());
    const auto grade = std::ranges::find(found, "grade", &cli::Symptom::check);
    CHECK((grade == found.end() || cli::group_of("grade") == "Kata"));
    return grade == found.end() ? std::string()
                                : std::string(cli::level_name(grade->level)) + ' ' + grade->text;
  };
  const std::string realtime = "realtime_namespaces = [\"trading\"]\n";
  root.write("sys/fs/cgroup/cpuset/cpuset.cpus", "0-7\n");
  CHECK(finding(realtime).starts_with("bad the node has cgroup v1"));
  CHECK(finding("").empty());
  root.write("sys/fs/cgroup/cgroup.controllers", "cpuset cpu\n");
  root.write("sys/fs/cgroup/system.slice/cpu.max", "max\n");
  std::filesystem::remove_all(root.path() / "sys/fs/cgroup/cpuset");
  CHECK(finding(realtime).empty());  // no cpuset shows what the kernel has
  root.write("sys/fs/cgroup/kubepods.slice/cpuset.cpus", "0-7\n");
  CHECK(finding(realtime).starts_with("note the kernel has no remote cpuset partitions: Allowed"));
  CHECK(finding("grade = \"quiet\"\n").starts_with("note the kernel has no remote"));
  CHECK(finding(realtime + "quiet_partitions = false\n").empty());
  CHECK(finding("").empty());
  root.write("sys/fs/cgroup/kubepods.slice/cpuset.cpus.exclusive", "\n");
  CHECK(finding(realtime).empty());
}
