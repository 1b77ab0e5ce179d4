// SPDX-License-Identifier: Apache-2.0
#include "affinity/config/handlers.hpp"

#include <algorithm>

#include "affinity/config/config.hpp"
#include "affinity/config/files.hpp"
#include "tests/catch.hpp"
#include "tests/temp_dir.hpp"

using namespace ka;
using config::Handler;

namespace {

constexpr const char* kMain = "etc/containerd/config.toml";
constexpr const char* kV2 = "plugins.\"io.containerd.grpc.v1.cri\".containerd.runtimes.";
constexpr const char* kV3 = "plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.";

/// A runtime as kata-deploy writes it.
std::string runtime(const std::string& plugin, const std::string& name, const std::string& shim,
                    const std::string& config) {
  return '[' + plugin + name + "]\nruntime_type = \"io.containerd." + name +
         ".v2\"\nruntime_path = \"" + shim + "\"\n[" + plugin + name +
         ".options]\nConfigPath = \"" + config + "\"\n";
}

/// Where all could be read.
std::vector<Handler> read_handlers(const tests::TempDir& root) {
  base::Trouble unseen;
  auto handlers = config::read_handlers(root.path(), unseen);
  CHECK(unseen.none());
  return handlers;
}

base::Result<config::Containerd> read_containerd(const tests::TempDir& root) {
  base::Trouble unseen;
  return config::read_containerd(root.path(), unseen);
}

/// "kata-qemu SHIM CONFIG" of each handler.
std::vector<std::string> handlers(const tests::TempDir& root) {
  std::vector<std::string> lines;
  for (const Handler& one : read_handlers(root)) {
    lines.push_back(one.name + ' ' + one.shim + ' ' + one.config.native());
  }
  return lines;
}

using Lines = std::vector<std::string>;

}  // namespace

TEST_CASE("handlers: containerd 1.7, by hand: the shim follows from the runtime type") {
  const tests::TempDir root;
  CHECK(handlers(root).empty());
  root.write(kMain, "version = 2\n[" + std::string(kV2) + "runc]\n" +
                        "runtime_type = \"io.containerd.runc.v2\"\n[" + kV2 + "kata]\n" +
                        "runtime_type = \"io.containerd.kata.v2\"\n[" + kV2 + "clh]\n" +
                        "runtime_type = \"io.containerd.kata-clh.v2\"\n[" + kV2 + "fixed]\n" +
                        "runtime_type = \"/usr/local/bin/containerd-shim-kata-v2\"\n");
  CHECK(handlers(root) == Lines{"clh containerd-shim-kata-clh-v2 ",
                                "fixed /usr/local/bin/containerd-shim-kata-v2 ",
                                "kata containerd-shim-kata-v2 "});
}

TEST_CASE(
    "handlers: kata-deploy on containerd 2.x, by an import of its own file, and custom ones") {
  const tests::TempDir root;
  root.write(kMain,
             "version = 3\nimports = [\"/opt/kata/containerd/config.d/kata-deploy.toml\"]\n");
  root.write("opt/kata/containerd/config.d/kata-deploy.toml",
             runtime(kV3, "kata-qemu", "/opt/kata/bin/containerd-shim-kata-v2", "/q.toml") +
                 runtime(kV3, "gpu", "/opt/kata/runtime-rs/bin/containerd-shim-kata-v2", "/g"));
  CHECK(handlers(root) == Lines{"gpu /opt/kata/runtime-rs/bin/containerd-shim-kata-v2 /g",
                                "kata-qemu /opt/kata/bin/containerd-shim-kata-v2 /q.toml"});
  CHECK(read_handlers(root).front().declared_in ==
        root.path() / "opt/kata/containerd/config.d/kata-deploy.toml");
  CHECK_FALSE(read_containerd(root)->imports_conf_d);
}

TEST_CASE("handlers: conf.d patterns, relative or absolute, nested imports, and cycles") {
  const tests::TempDir root;
  for (const char* pattern : {"/etc/containerd/conf.d/*.toml", "conf.d/*.toml"}) {
    root.write(kMain, "version = 3\nimports = [\"" + std::string(pattern) + "\"]\n");
    root.write("etc/containerd/conf.d/a.toml", "imports = [\"../more/b.toml\", \"a.toml\"]\n");
    root.write("etc/containerd/more/b.toml", runtime(kV3, "kata-b", "", "/b.toml"));
    root.write("etc/containerd/conf.d/broken.toml", "[\n");
    CHECK(handlers(root) == Lines{"kata-b containerd-shim-kata-b-v2 /b.toml"});
    CHECK(read_containerd(root)->imports_conf_d);
  }
  // A later file says what an earlier one did not.
  root.write("etc/containerd/conf.d/z.toml",
             "[" + std::string(kV3) + "kata-b.options]\nConfigPath = \"/z.toml\"\n");
  CHECK(handlers(root) == Lines{"kata-b containerd-shim-kata-b-v2 /z.toml"});
}

TEST_CASE("handlers: CRI-O's drop-ins, whatever their names") {
  const tests::TempDir root;
  root.write("etc/crio/crio.conf.d/99-kata-deploy",
             "[crio.runtime.runtimes.kata-qemu]\nruntime_type = \"vm\"\n"
             "runtime_path = \"/opt/kata/bin/containerd-shim-kata-v2\"\n"
             "runtime_config_path = \"/opt/q.toml\"\n");
  root.write(
      "etc/crio/crio.conf",
      "[crio.runtime.runtimes.runc]\nruntime_type = \"oci\"\nruntime_path = \"/bin/runc\"\n");
  CHECK(handlers(root) == Lines{"kata-qemu /opt/kata/bin/containerd-shim-kata-v2 /opt/q.toml"});
}

TEST_CASE("handlers: the proxy is a handler, and recognized") {
  const tests::TempDir root;
  root.write(kMain, "[" + std::string(kV2) + "kata-affinity]\n" +
                        "runtime_type = \"io.containerd.kata-affinity.v2\"\n[" + kV2 + "kata]\n" +
                        "runtime_type = \"io.containerd.kata.v2\"\n");
  const auto found = read_handlers(root);
  REQUIRE(found.size() == 2);
  CHECK_FALSE(found[0].is_proxy());
  CHECK(found[1].is_proxy());
}

namespace {

/// Whether the daemon finds an [affinity] table in the drop-in folder of `file`.
bool is_found(const std::string& file, const std::string& handler_config = "") {
  const tests::TempDir root;
  root.write(file, "[runtime]\n");
  if (!handler_config.empty()) {
    root.write(kMain, "version = 3\n" + runtime(kV3, "kata-x", "", handler_config));
  }
  root.write(std::filesystem::path(file).parent_path() / "config.d/50-affinity.toml",
             "[affinity]\nmode = \"observe\"\n");
  const auto config = config::load_config(std::nullopt, root.path());
  REQUIRE(config);
  return config->mode == config::Mode::kObserve;
}

}  // namespace

TEST_CASE("config: the table is found in each layout of kata-deploy, and by handler") {
  const std::string defaults = "share/defaults/kata-containers/";
  CHECK(is_found("opt/kata/" + defaults + "runtimes/qemu/configuration-qemu.toml"));
  CHECK(is_found("opt/kata/" + defaults +
                 "runtime-rs/runtimes/qemu-runtime-rs/configuration-qemu-runtime-rs.toml"));
  CHECK(is_found("opt/kata/" + defaults + "custom-runtimes/gpu/configuration-qemu.toml"));
  CHECK(is_found("opt/kata-canary/" + defaults + "runtimes/clh/configuration-clh.toml"));
  CHECK(is_found("opt/kata-canary/" + defaults + "runtime-rs/configuration.toml"));
  CHECK(is_found("srv/kata/opt/kata/kata.toml", "/srv/kata/opt/kata/kata.toml"));
  CHECK_FALSE(is_found("srv/kata/opt/kata/kata.toml"));
}

TEST_CASE("config: Kata's search order comes first, then installations, then handlers") {
  const tests::TempDir root;
  root.write("opt/kata/share/defaults/kata-containers/runtimes/qemu/configuration-qemu.toml", "");
  root.write(kMain, runtime(kV2, "kata-x", "", "/srv/x.toml"));
  base::Trouble unseen;
  const auto files = config::candidates(root.path(), unseen);
  REQUIRE(files.size() == 8);
  CHECK(files.front() == root.path() / "etc/kata-containers/runtime-rs/configuration.toml");
  CHECK(files[6].filename() == "configuration-qemu.toml");
  CHECK(files.back() == root.path() / "srv/x.toml");
}

namespace {

/// The message of a file that is read; empty: it is good.
std::string problem(const std::string& text) {
  const tests::TempDir dir;
  dir.write("c.toml", text);
  const auto config = config::load_config(dir.path() / "c.toml");
  if (config) return {};
  return config.error().message.substr((dir.path() / "c.toml").native().size());
}

}  // namespace

TEST_CASE("config: a misspelt name is reported with its line") {
  CHECK(problem("[runtime]\n[affinnity]\nmode = \"observe\"\n") ==
        ":2:2: affinnity: Kata has no such table; did you mean [affinity]?");
  CHECK(problem("[Affinity]\n").ends_with("did you mean [affinity]?"));
  CHECK(problem("[kata-affinity]\n").ends_with("did you mean [affinity]?"));
  CHECK(problem("\nmode = \"observe\"\n") ==
        ":2:1: mode: Kata has no such key; did you mean mode in [affinity]?");
  CHECK(
      problem("housekeping = \"isolate\"\n").ends_with("did you mean housekeeping in [affinity]?"));
  CHECK(problem("[runtime]\n[runtime.affinity]\nmode = \"observe\"\n") ==
        ":2:10: affinity: Kata has no such key in [runtime]; did you mean [affinity]?");
  CHECK(problem("[handler.kata-qemu]\n").ends_with("did you mean [affinity.handler]?"));
  CHECK(problem("[affinity]\nhousekeping = \"isolate\"\n") ==
        ":2:1: affinity.housekeping: unknown key; did you mean housekeeping?");
  CHECK(problem("[affinity]\nspeed = 3\n") == ":2:1: affinity.speed: unknown key");
}

TEST_CASE("config: a key of ours in Kata's last table is reported, one of Kata's is not") {
  CHECK(problem("[runtime]\nenable_debug = true\nhousekeeping = \"isolate\"\n") ==
        ":3:1: housekeeping: Kata has no such key in [runtime]; did you mean housekeeping in "
        "[affinity]?");
  CHECK(problem("[runtime]\nlog_level = \"warn\"\nname = \"virt_container\"\n").empty());
}

TEST_CASE("config: Kata's own tables are ignored") {
  CHECK(problem("[hypervisor.qemu]\n[agent.kata]\n[runtime]\n[factory]\n[image]\n[netmon]\n"
                "[shim.kata]\n[proxy]\n")
            .empty());
}

TEST_CASE("config: a misspelt name is reported before a later valid file") {
  const tests::TempDir root;
  root.write("etc/kata-containers/configuration.toml", "[affinnity]\nmode = \"observe\"\n");
  root.write("opt/kata/share/defaults/kata-containers/configuration.toml", "[affinity]\n");
  CHECK_FALSE(config::load_config(std::nullopt, root.path()));
}

TEST_CASE("config: a byte order mark and CRLF change neither values nor lines") {
  CHECK(problem("\xEF\xBB\xBF[affinity]\r\nmode = \"observe\"\r\n").empty());
  CHECK(problem("\xEF\xBB\xBF[runtime]\r\n[affinnity]\r\n") ==
        ":2:2: affinnity: Kata has no such table; did you mean [affinity]?");
}
