// SPDX-License-Identifier: Apache-2.0
#include "affinity/cli/setup/setup.hpp"

#include <sstream>

#include "affinity/config/config.hpp"
#include "base/files.hpp"
#include "tests/catch.hpp"
#include "tests/temp_dir.hpp"
#include "tests/text.hpp"

using namespace ka;
using tests::contains;

namespace {

constexpr const char* kGo = "etc/kata-containers/configuration.toml";
constexpr const char* kGoDropIn = "etc/kata-containers/config.d/50-affinity.toml";
constexpr const char* kSettings = "etc/kata-containers/config.d/60-affinity-settings.toml";
constexpr const char* kContainerd = "etc/containerd/config.toml";

struct Said {
  cli::Exit exit;
  std::string text;
};

Said setup(const cli::SetupOptions& options) {
  std::ostringstream out, err;
  cli::Output output(out, err, false);
  const cli::Exit exit = cli::run(options, output);
  return {exit, out.str() + err.str()};
}

cli::SetupOptions at(const tests::TempDir& root, const std::string& profile = "watch") {
  return {.root = root.path().string(), .profile = profile};
}

/// Cgroups of version 2, four CPUs, the static policy with CPUs 0-1 as shared pool, and NRI.
void write_node(const tests::TempDir& root) {
  root.write("sys/fs/cgroup/cgroup.controllers", "cpuset cpu io memory\n");
  root.write("sys/devices/system/cpu/online", "0-3\n");
  root.write("sys/devices/system/node/has_cpu", "0\n");
  root.write("var/lib/kubelet/cpu_manager_state",
             R"({"policyName":"static","defaultCpuSet":"0-1","checksum":1})");
  root.write("run/nri/nri.sock", "");
}

cli::SetupOptions doing(cli::SetupOptions options) {
  options.yes = true;
  return options;
}

cli::SetupOptions undoing(cli::SetupOptions options) {
  options.undo = true;
  return doing(options);
}

bool is_there(const tests::TempDir& root, const std::string& name) {
  return std::filesystem::exists(root.path() / name);
}

std::string text(const tests::TempDir& root, const std::string& name) {
  return base::read_file(root.path() / name).value_or("");
}

}  // namespace

TEST_CASE("setup: shows changes, writes with --yes, removes with --undo") {
  const tests::TempDir root;
  const std::string kata = "[runtime]\nenable_vcpus_pinning = true\n";
  root.write(kGo, kata);
  const auto shown = setup(at(root));
  CHECK(shown.exit == cli::Exit::kDone);
  CHECK(contains(shown.text, "create"));
  CHECK(contains(shown.text, "mode = \"observe\""));
  CHECK_FALSE(is_there(root, kGoDropIn));

  CHECK(setup(doing(at(root))).exit == cli::Exit::kDone);
  CHECK(contains(text(root, kGoDropIn), "enable_vcpus_pinning = false"));
  const auto config = config::load_config(std::nullopt, root.path());
  REQUIRE(config);
  CHECK(config->mode == config::Mode::kObserve);

  CHECK(contains(setup(doing(at(root))).text, "Nothing to change"));
  CHECK(setup(undoing(at(root))).exit == cli::Exit::kDone);
  CHECK_FALSE(is_there(root, "etc/kata-containers/config.d"));
  CHECK(text(root, kGo) == kata);
}

TEST_CASE("setup: from watch to isolated, Kata's pinning stays off, and real_shim is kept") {
  const tests::TempDir root;
  write_node(root);
  root.write(kGo, "[runtime]\nenable_vcpus_pinning = true\n");
  root.write(kContainerd, "version = 2\n");
  auto watch = doing(at(root));
  watch.proxy = true;
  setup(watch);
  CHECK(contains(setup(doing(at(root, "isolated"))).text, "replace"));
  const std::string written = text(root, kGoDropIn);
  CHECK(contains(written, "mode = \"follow\""));
  CHECK(contains(written, "real_shim = \"containerd-shim-kata-v2\""));
  CHECK(contains(written, "enable_vcpus_pinning = false"));
}

namespace {

/// What an isolated profile writes for a node that differs from write_node() by one file.
std::string isolated_with(const std::string& file, const std::string& content) {
  const tests::TempDir root;
  write_node(root);
  root.write(kGo, "");
  if (!file.empty()) root.write(file, content);
  CHECK(setup(doing(at(root, "isolated"))).exit == cli::Exit::kDone);
  const auto config = config::load_config(std::nullopt, root.path());
  REQUIRE(config);
  CHECK(config->mode == config::Mode::kFollow);
  return text(root, kGoDropIn);
}

constexpr const char* kPoolKeys = "housekeeping = \"shared-pool\"\ncgroup = \"manage\"\n";
constexpr const char* kIsolateKeys = "housekeeping = \"isolate\"\n";

}  // namespace

TEST_CASE("setup: the isolated profile uses the shared pool if possible, else a core of the pod") {
  CHECK(contains(isolated_with("", ""), kPoolKeys));
  CHECK_FALSE(contains(isolated_with("", ""), "memory"));
  CHECK(
      contains(isolated_with("sys/devices/system/node/has_cpu", "0-1\n"), "memory = \"migrate\""));
  CHECK(contains(isolated_with("sys/fs/cgroup/kubepods.slice/cpuset.cpus", ""), kIsolateKeys));
  CHECK(contains(isolated_with("var/lib/kubelet/cpu_manager_state",
                               R"({"policyName":"static","defaultCpuSet":"",
                                   "entries":{"u":{"c":"1-3"}},"checksum":1})"),
                 kIsolateKeys));
  const tests::TempDir root;
  write_node(root);
  root.write(kGo, "");
  root.write("sys/fs/cgroup/kubepods.slice/cpuset.cpus", "");
  root.write("run/systemd/private", "");
  setup(doing(at(root, "isolated")));
  CHECK(contains(text(root, kGoDropIn), kPoolKeys));
}

TEST_CASE("setup: cgroup v1 sets a core aside; without cpusets nothing isolates") {
  const tests::TempDir root;
  write_node(root);
  root.write(kGo, "");
  std::filesystem::remove(root.path() / "sys/fs/cgroup/cgroup.controllers");
  const auto refused = setup(at(root, "isolated"));
  CHECK(refused.exit == cli::Exit::kNo);
  CHECK(contains(refused.text, "no cpuset controller"));
  CHECK(setup(at(root, "watch")).exit == cli::Exit::kDone);

  root.write("sys/fs/cgroup/cpuset/cpuset.cpus", "0-3\n");
  const auto said = setup(doing(at(root, "isolated")));
  CHECK(contains(said.text, "cgroup v1"));
  CHECK(contains(said.text, "Costs one core of each pod"));
  CHECK(contains(text(root, kGoDropIn), kIsolateKeys));
  CHECK_FALSE(contains(text(root, kGoDropIn), "cgroup ="));
}

TEST_CASE("setup: isolated is proposed, and a set profile is kept without --profile") {
  const tests::TempDir root;
  write_node(root);
  root.write(kGo, "");
  const auto said = setup(at(root, ""));
  CHECK(contains(said.text, "* isolated"));
  CHECK(contains(said.text, "shared pool (CPUs 0-1)"));
  CHECK(contains(said.text, kPoolKeys) == false);  // lines are indented
  CHECK(contains(said.text, "| cgroup = \"manage\""));
  CHECK(contains(said.text, "\n  watch "));
  CHECK(contains(said.text, "\n  default "));
  setup(doing(at(root, "watch")));
  CHECK(contains(setup(doing(at(root, ""))).text, "Nothing to change"));
  setup(doing(at(root, "default")));
  CHECK(text(root, kGoDropIn).ends_with("[affinity]\nmode = \"follow\"\n"));
  CHECK(contains(setup(doing(at(root, ""))).text, "* default"));
}

TEST_CASE("setup: an isolated profile names what the node lacks") {
  const tests::TempDir root;
  write_node(root);
  root.write(kGo, "");
  CHECK_FALSE(contains(setup(at(root, "isolated")).text, "note "));
  root.write("var/lib/kubelet/cpu_manager_state", R"({"policyName":"none","defaultCpuSet":""})");
  CHECK(contains(setup(at(root, "isolated")).text, "cpuManagerPolicy: static"));
  CHECK_FALSE(contains(setup(at(root, "watch")).text, "cpuManagerPolicy: static"));
  std::filesystem::remove(root.path() / "run/nri/nri.sock");
  CHECK(contains(setup(at(root, "isolated")).text, "no NRI socket"));
}

TEST_CASE("setup: isolated checks sandbox_cgroup_only against the slices of kubelet") {
  const tests::TempDir root;
  const char* words = "note     ";
  const std::string slice = "sys/fs/cgroup/kubepods.slice/";
  write_node(root);
  root.write("run/systemd/private", "");
  const auto said = [&root](const char* profile) { return setup(at(root, profile)).text; };
  for (const char* flag : {"true", "false"}) {  // either isolates
    root.write(kGo, std::string("[runtime]\nsandbox_cgroup_only = ") + flag + '\n');
    root.write(slice + "cgroup.subtree_control", "cpuset cpu memory\n");
    CHECK_FALSE(contains(said("isolated"), words));
    CHECK(contains(said("isolated"), "| cgroup = \"manage\""));
  }
  root.write(slice + "cgroup.subtree_control", "cpu memory\n");
  const std::string note = (root.path() / kGo).native() +
                           ": sandbox_cgroup_only is off, and kubepods.slice does not delegate "
                           "cpuset to its pods";
  CHECK(contains(said("isolated"), words + note));
  CHECK(contains(said("isolated"), "set sandbox_cgroup_only = true in [runtime]"));
  CHECK_FALSE(contains(said("watch"), note));
  root.write("etc/kata-containers/config.d/60-mine.toml",
             "[runtime]\nsandbox_cgroup_only = true\n");
  CHECK_FALSE(contains(said("isolated"), words));
}

TEST_CASE("setup: every location of Kata's configuration, once, and through symbolic links") {
  const tests::TempDir root;
  root.write("opt/kata/share/defaults/kata-containers/configuration-qemu.toml", "[runtime]\n");
  root.link("opt/kata/share/defaults/kata-containers/configuration.toml",
            "configuration-qemu.toml");
  root.link(kGo, "../../opt/kata/share/defaults/kata-containers/configuration-qemu.toml");
  root.write("usr/share/defaults/kata-containers/runtime-rs/configuration.toml", "[runtime]\n");
  root.write("opt/kata/share/defaults/kata-containers/runtimes/clh/configuration-clh.toml", "");
  root.write("srv/kata.toml", "[runtime]\n");
  root.write(kContainerd,
             "version = 3\n[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.kata-fast]\n"
             "runtime_type = 'io.containerd.kata-fast.v2'\n"
             "[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.kata-fast.options]\n"
             "ConfigPath = '/srv/kata.toml'\n");
  setup(doing(at(root)));
  const std::string opt = "opt/kata/share/defaults/kata-containers/";
  CHECK(is_there(root, opt + "config.d/50-affinity.toml"));
  CHECK(is_there(root, opt + "runtimes/clh/config.d/50-affinity.toml"));
  CHECK(is_there(root, "usr/share/defaults/kata-containers/runtime-rs/config.d/50-affinity.toml"));
  CHECK(is_there(root, "srv/config.d/50-affinity.toml"));
  CHECK_FALSE(is_there(root, "etc/kata-containers/config.d"));
  setup(undoing(at(root)));
  CHECK_FALSE(is_there(root, "srv/config.d"));
  CHECK_FALSE(is_there(root, opt + "runtimes/clh/config.d"));
}

namespace {

constexpr const char* kDefaults = "opt/kata/share/defaults/kata-containers/";

/// kata-deploy's layout: a Go and a Rust shim, a custom runtime, and a file of containerd's that
/// config.toml imports.
void write_deployed(const tests::TempDir& root) {
  const std::string go = std::string(kDefaults) + "runtimes/qemu/configuration-qemu.toml";
  const std::string rust =
      std::string(kDefaults) + "runtime-rs/runtimes/clh-runtime-rs/configuration-clh.toml";
  const std::string custom = std::string(kDefaults) + "custom-runtimes/gpu/configuration-qemu.toml";
  for (const std::string& file : {go, rust, custom}) root.write(file, "[runtime]\n");
  const auto runtime = [](const std::string& name, const std::string& shim,
                          const std::string& file) {
    const std::string table = "plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes." + name;
    return '[' + table + "]\nruntime_type = 'io.containerd." + name + ".v2'\nruntime_path = '" +
           shim + "'\n[" + table + ".options]\nConfigPath = '/" + file + "'\n";
  };
  const std::string rust_shim = "/opt/kata/runtime-rs/bin/containerd-shim-kata-v2";
  root.write("opt/kata/containerd/config.d/kata-deploy.toml",
             runtime("kata-qemu", "/opt/kata/bin/containerd-shim-kata-v2", go) +
                 runtime("kata-clh-runtime-rs", rust_shim, rust) +
                 runtime("gpu", "/opt/kata/bin/containerd-shim-kata-v2", custom));
  root.write(kContainerd,
             "version = 3\nimports = ['/opt/kata/containerd/config.d/kata-deploy.toml']\n");
}

std::string drop_in(const std::string& folder) {
  return std::string(kDefaults) + folder + "/config.d/50-affinity.toml";
}

cli::SetupOptions with_handler(cli::SetupOptions options, const std::string& name) {
  options.handlers = {name};
  return options;
}

}  // namespace

TEST_CASE("setup: lists kata-deploy's installations by handler, and the changes for each") {
  const tests::TempDir root;
  write_deployed(root);
  const auto said = setup(doing(at(root)));
  CHECK(said.exit == cli::Exit::kDone);
  CHECK(contains(said.text, "runtimes/qemu/configuration-qemu.toml\n"));
  CHECK(contains(said.text, "Go runtime, handler kata-qemu"));
  CHECK(contains(said.text, "runtime-rs, handler kata-clh-runtime-rs"));
  CHECK(contains(said.text, "Go runtime, handler gpu"));
  for (const char* folder :
       {"runtimes/qemu", "runtime-rs/runtimes/clh-runtime-rs", "custom-runtimes/gpu"}) {
    CHECK(contains(said.text, "create   " + (root.path() / drop_in(folder)).native()));
    CHECK(is_there(root, drop_in(folder)));
  }
}

TEST_CASE("setup --handler: only for that handler, and drop-ins elsewhere are removed") {
  const tests::TempDir root;
  write_deployed(root);
  setup(doing(at(root)));
  CHECK(contains(setup(doing(with_handler(at(root), "gpu"))).text, "remove "));
  CHECK(is_there(root, drop_in("custom-runtimes/gpu")));
  CHECK_FALSE(is_there(root, drop_in("runtimes/qemu")));
  const auto wrong = setup(with_handler(at(root), "kata-fc"));
  CHECK(wrong.exit == cli::Exit::kWrong);
  CHECK(contains(wrong.text, "there are: gpu, kata-clh-runtime-rs, kata-qemu"));
  std::filesystem::remove_all(root.path() / kDefaults / "runtimes/qemu");
  CHECK(contains(setup(with_handler(at(root), "kata-qemu")).text,
                 "configuration-qemu.toml does not exist"));
}

TEST_CASE("setup --proxy: the chosen handler's shim, by its path") {
  const tests::TempDir root;
  write_deployed(root);
  auto options = doing(at(root));
  options.proxy = true;
  const auto unclear = setup(options);
  CHECK(unclear.exit == cli::Exit::kWrong);
  CHECK(contains(unclear.text, "--proxy needs one --handler"));
  CHECK(setup(with_handler(options, "kata-clh-runtime-rs")).exit == cli::Exit::kDone);
  CHECK(contains(text(root, drop_in("runtime-rs/runtimes/clh-runtime-rs")),
                 "real_shim = \"/opt/kata/runtime-rs/bin/containerd-shim-kata-v2\""));
  CHECK(contains(text(root, "etc/containerd/conf.d/50-kata-affinity.toml"),
                 "runtimes.kata-clh-runtime-rs-affinity]"));
}

TEST_CASE("setup --settings: further keys hold over the profile's, until an empty file or --undo") {
  const tests::TempDir root;
  root.write(kGo, "");
  root.write("settings.toml", "[affinity]\nlog_level = \"debug\"\nmode = \"follow\"");
  auto options = doing(at(root));
  options.settings = (root.path() / "settings.toml").string();
  CHECK(setup(options).exit == cli::Exit::kDone);
  const auto config = config::load_config(std::nullopt, root.path());
  REQUIRE(config);
  CHECK(config->log_level == log::Level::kDebug);
  CHECK(config->mode == config::Mode::kFollow);
  CHECK(contains(setup(doing(at(root))).text, "keep"));
  CHECK(is_there(root, kSettings));

  SECTION("empty") {
    root.write("settings.toml", "\n");
    setup(options);
    CHECK_FALSE(is_there(root, kSettings));
    CHECK(is_there(root, kGoDropIn));
  }
  SECTION("undone") {
    setup(undoing(at(root)));
    CHECK_FALSE(is_there(root, "etc/kata-containers/config.d"));
  }
}

TEST_CASE("setup --settings: what is wrong in the file is reported before anything is written") {
  const tests::TempDir root;
  root.write(kGo, "");
  auto options = doing(at(root));
  options.settings = (root.path() / "settings.toml").string();
  root.write("settings.toml", "[affinity]\nmoed = \"follow\"\n");
  CHECK(contains(setup(options).text, "settings.toml:2:1: "));
  root.write("settings.toml", "[runtime]\n");
  CHECK(contains(setup(options).text, "has no [affinity] table"));
  root.write("settings.toml", "[affinity]\n");
  root.write(kSettings, "[affinity]\n");
  CHECK(contains(setup(options).text, "was not written by setup"));
  CHECK_FALSE(is_there(root, kGoDropIn));
}

TEST_CASE("setup: a later file that sets the same key is named") {
  const tests::TempDir root;
  root.write("etc/kata-containers/config.d/60-mine.toml", "[affinity]\nmode = \"follow\"\n");
  root.write(kGo, "[affinity]\nmode = \"follow\"\n");
  CHECK(contains(setup(at(root)).text, "60-mine.toml is read later and sets mode"));
  std::filesystem::remove(root.path() / "etc/kata-containers/config.d/60-mine.toml");
  root.write("etc/kata-containers/config.d/40-mine.toml", "[affinity]\nmode = \"follow\"\n");
  CHECK_FALSE(contains(setup(at(root)).text, "is read later"));
}

TEST_CASE("setup: a later file that turns Kata's pinning on is named") {
  const tests::TempDir root;
  root.write(kGo, "[runtime]\nenable_vcpus_pinning = true\n");
  CHECK_FALSE(contains(setup(at(root)).text, "is read later"));
  const std::string later = "etc/kata-containers/config.d/60-mine.toml";
  root.write(later, "[runtime]\nenable_vcpus_pinning = true\n");
  CHECK(
      contains(setup(at(root)).text, "60-mine.toml is read later and turns Kata's own pinning on"));
  root.write(later, "[runtime]\nenable_vcpus_pinning = false\n");
  CHECK_FALSE(contains(setup(at(root)).text, "is read later"));
}

TEST_CASE("setup: a misspelt name is reported before anything is written") {
  const tests::TempDir root;
  root.write(kGo, "[runtime]\n");
  root.write("etc/kata-containers/config.d/60-mine.toml", "[affinnity]\ncgroup = \"manage\"\n");
  const auto said = setup(doing(at(root)));
  CHECK(said.exit == cli::Exit::kWrong);
  CHECK(contains(said.text, "60-mine.toml:1:2: affinnity"));
  CHECK_FALSE(is_there(root, kGoDropIn));
}

TEST_CASE("setup: a containerd configuration that cannot be understood leaves handlers unknown") {
  const tests::TempDir root;
  root.write(kGo, "");
  CHECK_FALSE(contains(setup(at(root)).text, "handlers are unknown"));
  root.write(kContainerd, "version = \n");
  CHECK(contains(setup(at(root)).text, "containerd's handlers are unknown: "));
  CHECK(contains(setup(at(root)).text, "config.toml:1:"));
}

TEST_CASE("setup: files not written by setup are neither replaced nor removed") {
  const tests::TempDir root;
  root.write(kGo, "[runtime]\n");
  root.write(kGoDropIn, "[affinity]\nmode = \"follow\"\n");
  CHECK(setup(doing(at(root))).exit == cli::Exit::kWrong);
  CHECK(contains(setup(undoing(at(root))).text, "was not written by setup"));
  CHECK(text(root, kGoDropIn) == "[affinity]\nmode = \"follow\"\n");
}

TEST_CASE("setup: no Kata configuration, and one that cannot be read") {
  const tests::TempDir root;
  CHECK(setup(at(root)).exit == cli::Exit::kNo);
  root.write(kGo, "[runtime\n");
  const auto said = setup(at(root));
  CHECK(said.exit == cli::Exit::kWrong);
  CHECK(contains(said.text, "configuration.toml:1:"));
  CHECK(setup(undoing(at(root))).exit == cli::Exit::kDone);
}

TEST_CASE(
    "setup --proxy: containerd 2 imports the snippet, containerd 1 would lose settings by it") {
  const tests::TempDir root;
  root.write(kGo, "[runtime]\n");
  auto options = doing(at(root));
  options.proxy = true;
  CHECK(setup(options).exit == cli::Exit::kWrong);  // no containerd

  root.write(kContainerd,
             "version = 2\n[plugins.\"io.containerd.grpc.v1.cri\".containerd.runtimes.kata-qemu]\n"
             "runtime_type = \"io.containerd.kata-qemu.v2\"\n");
  const std::string before = text(root, kContainerd);
  CHECK(contains(setup(options).text, "by hand"));
  CHECK_FALSE(is_there(root, "etc/containerd/conf.d"));
  CHECK(contains(text(root, "etc/containerd/kata-affinity.toml"),
                 "[plugins.\"io.containerd.grpc.v1.cri\".containerd.runtimes.kata-qemu-affinity]"));
  CHECK(contains(text(root, kGoDropIn), "real_shim = \"containerd-shim-kata-qemu-v2\""));
  CHECK(text(root, kContainerd) == before);
  CHECK_FALSE(contains(setup(undoing(at(root))).text, "remove the runtime handler"));
  CHECK_FALSE(is_there(root, "etc/containerd/kata-affinity.toml"));
  root.write(kContainerd,
             before +
                 "[plugins.\"io.containerd.grpc.v1.cri\".containerd.runtimes.k-affinity]\n"
                 "runtime_type = \"io.containerd.kata-affinity.v2\"\n");
  CHECK(contains(setup(undoing(at(root))).text, "remove the runtime handler k-affinity"));

  root.write(kContainerd, "version = 3\nimports = [\"/etc/containerd/conf.d/*.toml\"]\n");
  CHECK_FALSE(contains(setup(options).text, "see that"));
  const std::string snippet = "etc/containerd/conf.d/50-kata-affinity.toml";
  CHECK(contains(text(root, snippet), "version = 3\n[plugins.\"io.containerd.cri.v1.runtime\""));
  setup(undoing(at(root)));
  CHECK_FALSE(is_there(root, snippet));

  root.write(
      "etc/containerd/conf.d/kata.toml",
      "version = 3\n[plugins.\"io.containerd.cri.v1.runtime\".containerd.runtimes.kata-clh]\n"
      "runtime_type = \"io.containerd.kata-clh.v2\"\n");
  setup(options);
  CHECK(contains(text(root, snippet), "containerd.runtimes.kata-clh-affinity]"));
  CHECK(contains(setup(options).text, "Nothing to change"));
}
