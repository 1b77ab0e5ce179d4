#include "affinity/cli/checkup.hpp"

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

TEST_CASE("doctor: a node where nothing is set up") {
  const tests::TempDir root;
  CHECK(levels(root) == Lines{"bad nri", "note kata", "bad debugfs", "note kubelet", "bad cgroup"});
}

TEST_CASE("doctor: a node where all is well") {
  const tests::TempDir root;
  root.write("run/nri/nri.sock", "");
  root.write("sys/fs/cgroup/cgroup.controllers", "cpuset cpu io memory\n");
  root.write("sys/devices/system/cpu/isolated", "\n");
  root.write("sys/devices/system/cpu/smt/control", "on\n");
  root.write("sys/kernel/security/lockdown", "[none] integrity confidentiality\n");
  root.write("sys/kernel/debug/kvm/1-2/vcpu0/pid", "3");
  root.write("var/lib/kubelet/cpu_manager_state", R"({"policyName":"static"})");
  root.write("etc/kata-containers/runtime-rs/configuration.toml", "[runtime]\nname = \"x\"\n");
  CHECK(levels(root) == Lines{"good nri", "note kata", "good debugfs", "good kubelet"});
  CHECK(says(root, "sandbox_cgroup_only is on"));
}

TEST_CASE("doctor: NRI by containerd's configuration") {
  const tests::TempDir root;
  const std::string table = "version = 2\n[plugins.\"io.containerd.nri.v1.nri\"]\n";
  root.write("etc/containerd/config.toml", table + "disable = true\n");
  CHECK(says(root, "NRI is turned off"));
  root.write("etc/containerd/config.toml", table + "disable = false\n");
  CHECK(says(root, "its socket is not there"));
  root.write("etc/containerd/config.toml", "version = 2\n");
  CHECK(says(root, "unless it is told"));
  root.write("etc/containerd/config.toml", "version = \n");
  CHECK(says(root, "config.toml:1:"));
}

TEST_CASE("doctor: Kata's own pinning is found, also in a drop-in, and gone with one") {
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

TEST_CASE("doctor: the CPU manager's policy, also from the file's fourth version") {
  const tests::TempDir root;
  const std::string file = "var/lib/kubelet/cpu_manager_state";
  root.write(file, R"({"policyName":"none","defaultCpuSet":""})");
  CHECK(says(root, R"(policy is "none")"));
  root.write(file, R"({"data":"{\"policyName\":\"static\"}","dataChecksum":1})");
  CHECK(levels(root)[3] == "good kubelet");
  root.write(file, "{");
  CHECK(levels(root)[3] == "bad kubelet");
}

TEST_CASE("doctor: cpusets of either version of cgroups") {
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

TEST_CASE("doctor: isolcpus, SMT, lockdown") {
  const tests::TempDir root;
  root.write("sys/devices/system/cpu/isolated", "4-7\n");
  CHECK(says(root, "CPUs 4-7 are under isolcpus"));
  root.write("sys/devices/system/cpu/smt/control", "notsupported\n");
  CHECK_FALSE(says(root, "SMT"));
  root.write("sys/devices/system/cpu/smt/control", "forceoff\n");
  CHECK(says(root, "SMT is turned off"));
  root.write("sys/kernel/security/lockdown", "none integrity [confidentiality]\n");
  CHECK(says(root, "lockdown"));
}

TEST_CASE("doctor: irqbalance, unless it was told which CPUs to spare") {
  const tests::TempDir root;
  root.write("proc/31/comm", "irqbalance\n");
  root.write("etc/default/irqbalance", "#IRQBALANCE_BANNED_CPULIST=\n");
  CHECK(says(root, "irqbalance runs"));
  root.write("etc/default/irqbalance", "#\nIRQBALANCE_BANNED_CPULIST=4-7\n");
  CHECK_FALSE(says(root, "irqbalance runs"));
  std::filesystem::remove(root.path() / "etc/default/irqbalance");
  root.write("proc/31/comm", "containerd\n");
  CHECK_FALSE(says(root, "irqbalance runs"));
}
