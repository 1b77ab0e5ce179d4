// SPDX-License-Identifier: Apache-2.0
// Remedies of doctor that are settings or files: what it prints is applied by the letter, and the
// finding is gone. Those that are commands and restarts are tried in the node lab.
#include <algorithm>
#include <optional>
#include <regex>
#include <sstream>

#include "affinity/cli/doctor/checkup.hpp"
#include "affinity/cli/setup/setup.hpp"
#include "tests/catch.hpp"
#include "tests/temp_dir.hpp"
#include "tests/text.hpp"

using namespace ka;
using tests::contains;

namespace {

constexpr const char* kGo = "etc/kata-containers/configuration.toml";
constexpr const char* kRust = "etc/kata-containers/runtime-rs/configuration.toml";

std::optional<cli::Symptom> finding(const tests::TempDir& root, const std::string& words) {
  const auto symptoms = cli::examine(root.path());
  const auto found = std::ranges::find_if(symptoms, [&words](const cli::Symptom& symptom) {
    return symptom.level != cli::Symptom::Level::kGood && contains(symptom.text, words);
  });
  return found == symptoms.end() ? std::nullopt : std::optional(*found);
}

/// "set KEY = VALUE in [TABLE]" of an advice, as a drop-in beside Kata's file.
std::string drop_in_of(const std::string& advice) {
  std::smatch words;
  REQUIRE(std::regex_search(advice, words, std::regex(R"(set (\w+) = (\S+) in \[([^\]]+)\])")));
  const std::string table = words[3] == "hypervisor.*" ? "hypervisor.qemu" : words[3].str();
  return '[' + table + "]\n" + words[1].str() + " = " + words[2].str() + '\n';
}

/// A kubelet whose shared pool is larger than the VMs of `file`, on cgroups of version 2.
void write_node(const tests::TempDir& root, const std::string& file, const std::string& text) {
  root.write("sys/fs/cgroup/cgroup.controllers", "cpuset cpu\n");
  root.write("sys/devices/system/cpu/online", "0-7\n");
  root.write("var/lib/kubelet/cpu_manager_state",
             R"({"policyName":"static","defaultCpuSet":"0-5","checksum":1})");
  root.write(file, text);
}

enum class Quota { kLost, kKept };

struct Setting {
  const char* words;
  const char* file;
  const char* text;
  Quota quota = Quota::kLost;
};

constexpr Setting kSettings[] = {
    {"enable_vcpus_pinning is on", kGo, "[runtime]\nenable_vcpus_pinning = true\n"},
    {"does not delegate cpuset", kGo, ""},
    {"default_maxvcpus is 4", kRust, "[hypervisor.qemu]\ndefault_maxvcpus = 4\n"},
    {"a burstable container without a CPU limit", kGo, "", Quota::kKept},
    {"more than default_maxvcpus (4)", kGo, "[hypervisor.qemu]\ndefault_maxvcpus = 4\n",
     Quota::kKept},
    {"static_sandbox_resource_mgmt is off", kGo, "", Quota::kKept},
    {"sizes VMs by CPU quota", kRust, ""},
    {"sizes VMs by CPU quota", kGo, "[runtime]\nstatic_sandbox_resource_mgmt = true\n"},
    {"overhead_vcpus is 0", kRust, "[hypervisor.qemu]\noverhead_vcpus = 0\n"},
};

}  // namespace

TEST_CASE("doctor's remedies: settings of Kata") {
  for (const Setting& setting : kSettings) {
    CAPTURE(setting.words);
    const tests::TempDir root;
    write_node(root, setting.file, setting.text);
    root.write("sys/fs/cgroup/kubepods.slice/cgroup.subtree_control", "cpu\n");
    if (setting.quota == Quota::kKept) {
      root.write("var/lib/kubelet/config.yaml",
                 "featureGates:\n  DisableCPUQuotaWithExclusiveCPUs: false\n");
    }
    const auto found = finding(root, setting.words);
    REQUIRE(found);
    const auto directory = std::filesystem::path(setting.file).parent_path();
    root.write(directory / "config.d/60-mine.toml", drop_in_of(found->advice));
    CHECK_FALSE(finding(root, setting.words));
  }
}

TEST_CASE("doctor's remedies: with cgroup v1, sandbox_cgroup_only off") {
  const tests::TempDir root;
  write_node(root, kRust, "");
  std::filesystem::remove(root.path() / "sys/fs/cgroup/cgroup.controllers");
  root.write("sys/fs/cgroup/cpuset/cpuset.cpus", "0-7\n");
  const auto found = finding(root, "sandbox_cgroup_only is on");
  REQUIRE(found);
  CHECK(found->command.empty());
  root.write("etc/kata-containers/runtime-rs/config.d/60-mine.toml", drop_in_of(found->advice));
  CHECK_FALSE(finding(root, "sandbox_cgroup_only"));
}

TEST_CASE("doctor's remedies: the profile isolated, for either runtime") {
  for (const char* file : {kGo, kRust}) {
    const tests::TempDir root;
    write_node(root, file, "");
    const auto found = finding(root, "sandbox_cgroup_only is o");
    REQUIRE(found);
    CHECK(found->command == "kata-affinityctl setup --profile isolated --yes");
    CHECK(finding(root, "no profile is set"));
    std::ostringstream out;
    cli::Output output(out, out, false);
    cli::run({.root = root.path().string(), .profile = "isolated", .yes = true}, output);
    CHECK_FALSE(finding(root, "sandbox_cgroup_only is o"));
    CHECK_FALSE(finding(root, "profile"));
  }
}

TEST_CASE("doctor's remedies: a Kata in another place is linked to where Kata looks first") {
  const tests::TempDir root;
  root.write("srv/kata.toml", "[runtime]\n");
  const auto found = finding(root, "no Kata configuration in the default locations");
  REQUIRE(found);
  CHECK(contains(found->advice, std::string("link it to /") + kGo));
  const auto note = [&root] {
    std::ostringstream out;
    cli::Output output(out, out, false);
    cli::run({.root = root.path().string(),
              .profile = "watch",
              .kata_configs = {(root.path() / "srv/kata.toml").string()}},
             output);
    return out.str();
  };
  CHECK(contains(note(), "kata-affinityd does not look for "));
  root.link(kGo, "../../srv/kata.toml");
  CHECK_FALSE(finding(root, "no Kata configuration"));
  CHECK_FALSE(contains(note(), "does not look"));
}

TEST_CASE("doctor's remedies: a drop-in that cannot be read is named once") {
  const tests::TempDir root;
  root.write(kGo, "");
  root.link("etc/kata-containers/config.d/60-mine.toml", "/nowhere");
  const auto found = finding(root, "60-mine.toml");
  REQUIRE(found);
  CHECK_FALSE(contains(found->text, "configuration.toml: "));
  CHECK(found->advice == "make that file readable, or remove it");
  std::filesystem::remove(root.path() / "etc/kata-containers/config.d/60-mine.toml");
  CHECK_FALSE(finding(root, "60-mine.toml"));
}
