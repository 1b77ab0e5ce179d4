// SPDX-License-Identifier: Apache-2.0
#include "affinity/config/config.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <map>
#include <string>

#include "affinity/config/keys.hpp"
#include "base/text.hpp"
#include "tests/catch.hpp"
#include "tests/temp_dir.hpp"
#include "tests/unit/config/text.hpp"

using namespace ka;
using policy::CpuSet;
using Kind = policy::plan::Housekeeping::Kind;
using tests::load;
using tests::wrong;
namespace fs = std::filesystem;

namespace {

constexpr const char* kMain = "etc/kata-containers/configuration.toml";

std::string set(std::string_view key, const std::string& value) {
  return "[affinity]\n" + std::string(key) + " = " + value + '\n';
}

std::string as_toml(const config::Key& key, std::string_view value) {
  switch (key.type) {
    case config::Type::kFlag:
    case config::Type::kSeconds:
    case config::Type::kCount:
    case config::Type::kPriority:
    case config::Type::kUser:
      return std::string(value);
    case config::Type::kNames:
    case config::Type::kIds:
    case config::Type::kWords:
    case config::Type::kNamespaces:
      return "[]";
    default:
      return '"' + std::string(value) + '"';
  }
}

}  // namespace

TEST_CASE("without a file the defaults apply") {
  const tests::TempDir root;
  const auto config = config::load_config(std::nullopt, root.path());
  REQUIRE(config);
  CHECK(config->enable);
  CHECK(config->mode == config::Mode::kFollow);
  CHECK(config->defaults == policy::plan::Settings{});
  CHECK(config->by_handler.empty());
  CHECK(config->metrics_listen.empty());
  CHECK(config->log_level == log::Level::kInfo);
  CHECK(config->state_dir == "/run/kata-affinity/state");
  CHECK(config->drift_check == std::chrono::seconds(10));
  CHECK(config->real_shim == "containerd-shim-kata-v2");
  CHECK(config->files.empty());
}

TEST_CASE("every key has an effect") {
  const auto config = load(R"(
[affinity]
enable = false
mode = "observe"
vcpu_pinning = "balanced"
housekeeping = "shared-pool"
emulator = "0-1"
iothread = "sandbox"
vhost = "isolate"
virtiofsd = "2,4"
shim = "shared-pool"
cgroup = "manage"
cfs_quota = "keep"
memory = "follow"
guest = "none"
guest_irqs = "none"
environment = true
metrics_listen = "[::1]:9101"
log_level = "debug"
state_dir = "/run/elsewhere"
kubelet_state = "/var/lib/kubelet/cpu_manager_state"
nri_socket = "/var/run/nri/nri.sock"
allow_annotations = ["environment"]
drift_check = 3
real_shim = "/opt/kata/bin/containerd-shim-kata-v2"

[affinity.handler.kata-qemu]
vcpu_pinning = "mask"
environment = false
vhost = "6"
)");
  REQUIRE(config);
  CHECK_FALSE(config->enable);
  CHECK(config->mode == config::Mode::kObserve);
  CHECK(config->defaults.vcpu_pinning == policy::plan::VcpuPinning::kBalanced);
  CHECK(config->defaults.housekeeping.kind == Kind::kSharedPool);
  const auto& roles = config->defaults.housekeeping_by_role;
  CHECK(roles.size() == 5);
  CHECK(roles.at(policy::Role::kEmulator).cpus == CpuSet{0, 1});
  CHECK(roles.at(policy::Role::kIothread).kind == Kind::kSandbox);
  CHECK(roles.at(policy::Role::kVhost).kind == Kind::kIsolate);
  CHECK(roles.at(policy::Role::kVirtiofsd).cpus == CpuSet{2, 4});
  CHECK(roles.at(policy::Role::kShim).kind == Kind::kSharedPool);
  CHECK(config->defaults.manage_cgroup);
  CHECK(config->defaults.guest.environment);
  CHECK(config->defaults.guest.environment_by_annotation);
  CHECK_FALSE(config->allows(config::kDomainAnnotation));
  CHECK(config->metrics_listen == "[::1]:9101");
  CHECK(config->log_level == log::Level::kDebug);
  CHECK(config->state_dir == "/run/elsewhere");
  CHECK(config->drift_check == std::chrono::seconds(3));
  CHECK(config->real_shim == "/opt/kata/bin/containerd-shim-kata-v2");
  REQUIRE(config->by_handler.size() == 1);
  auto expected = config->defaults;
  expected.vcpu_pinning = policy::plan::VcpuPinning::kMask;
  expected.housekeeping_by_role[policy::Role::kVhost] = {Kind::kCpus, {6}};
  expected.guest.environment = false;
  CHECK(config->by_handler.at("kata-qemu") == expected);
}

TEST_CASE("each key accepts its default and rejects other types, with the position") {
  for (const config::Key& key : config::kKeys) {
    INFO(key.name);
    if (!(key.type == config::Type::kHousekeeping && key.fallback.empty())) {
      CHECK(wrong(set(key.name, as_toml(key, key.fallback))) == "");
    }
    const std::string place = "2:" + std::to_string(key.name.size() + 4) + ": affinity." +
                              std::string(key.name) + ": must be ";
    CHECK(wrong(set(key.name, "1.5")).starts_with(place));
    CHECK(wrong(set(key.name, "1979-05-27")).starts_with(place));
  }
}

TEST_CASE("cpusets are checked against the machine if it is known") {
  const tests::TempDir dir;
  dir.write("c.toml", "[affinity]\nvhost = \"6-9\"\n[affinity.handler.kata]\nshim = \"8\"\n");
  CHECK(config::load_config(dir.path() / "c.toml"));
  CHECK(config::load_config(dir.path() / "c.toml", "/", policy::CpuSet::range(0, 9)));
  const auto few = config::load_config(dir.path() / "c.toml", "/", policy::CpuSet::range(0, 7));
  REQUIRE_FALSE(few);
  CHECK(few.error().message.ends_with(
      "c.toml:4:8: affinity.handler.kata.shim: the machine has no CPU 8"));
}

TEST_CASE("an invalid value is reported with the valid ones") {
  CHECK(wrong(set("mode", "\"manged\"")) ==
        R"(2:8: affinity.mode: "manged" is not one of "follow", "observe", "managed")");
  CHECK(wrong(set("enable", "\"yes\"")) ==
        "2:10: affinity.enable: must be true or false, not a string");
  CHECK(wrong(set("housekeeping", "\"0-\"")) ==
        R"(2:16: affinity.housekeeping: "0-": expected a number (position 2))");
  CHECK(wrong(set("vhost", "\"pool\"")) ==
        R"(2:9: affinity.vhost: "pool" is not one of "sandbox", "shared-pool", "isolate" or a )"
        "cpuset");
  CHECK(wrong(set("state_dir", "\"run\"")) ==
        R"(2:13: affinity.state_dir: "run" is not an absolute path)");
  CHECK(wrong(set("real_shim", "\"bin/shim\"")) ==
        R"(2:13: affinity.real_shim: "bin/shim" is neither a name nor an absolute path)");
  CHECK(wrong(set("real_shim", "\"shim\"")) == "");
  for (const char* address : {"9101", ":9101", "127.0.0.1", "127.0.0.1:0", "127.0.0.1:70000",
                              "localhost:9101", "[::1]", "127.0.0.1:91x"}) {
    CHECK(
        wrong(set("metrics_listen", '"' + std::string(address) + '"')).find("is not an address") !=
        std::string::npos);
  }
  CHECK(wrong(set("metrics_listen", "\"127.0.0.1:9101\"")) == "");
  for (const char* seconds : {"0", "-1", "86401", "\"10\""}) {
    CHECK(wrong(set("drift_check", seconds)) ==
          "2:15: affinity.drift_check: must be a whole number of seconds from 1 to 86400");
  }
  CHECK(wrong(set("allow_annotations", "[\"state_dir\"]")).find("\"state_dir\" is not one of") !=
        std::string::npos);
  CHECK(wrong(set("allow_annotations", "[\"libvirt_domain\", \"environment\"]")) == "");
  CHECK(wrong(set("allow_annotations", "[1]")).find("must be an array of strings") !=
        std::string::npos);
}

TEST_CASE("an unsupported value is rejected") {
  CHECK(wrong(set("vcpu_pinning", "\"all\""))
            .ends_with(R"("all" is not one of "dedicated", "balanced", "mask", "none")"));
  CHECK(
      wrong(set("allow_annotations", "[\"vhost\"]"))
          .ends_with(
              R"("libvirt_domain", "grade", "crio", "scheduling-class", "blockioclass", "rdtclass")"));
}

TEST_CASE("unknown keys below [affinity] are errors, other tables are Kata's") {
  CHECK(wrong("[hypervisor.qemu]\npath = \"x\"\nfoo = 1.5\n[affinity]\nvhost = \"1\"\n") == "");
  CHECK(wrong("[affinity]\n\n  vhosts = \"1\"\n") ==
        "3:3: affinity.vhosts: unknown key; did you mean vhost?");
  CHECK(wrong("[affinity.vhost]\na = 1\n") == "2:1: affinity.vhost.a: unknown key");
  CHECK(wrong("[affinity.handler]\nvhost = \"1\"\n") == "2:1: affinity.handler.vhost: unknown key");
  CHECK(wrong("[affinity.handler.k]\nfoo = \"1\"\n") == "2:1: affinity.handler.k.foo: unknown key");
  CHECK(
      wrong("[affinity.handler.k]\nmode = \"observe\"\n")
          .starts_with("2:1: affinity.handler.k.mode: is node-wide and cannot be set per handler"));
  CHECK(
      wrong("[affinity.handler.k]\nvhost = \"7-\"\n").starts_with("2:9: affinity.handler.k.vhost"));
  CHECK(wrong("affinity = 3\n") == "1:12: affinity: must be a table");
}

TEST_CASE("invalid TOML is an error with its position") {
  CHECK(wrong("[affinity]\nmode = \n").starts_with("2:"));
  CHECK(wrong("[affinity\n").starts_with("1:"));
  CHECK(wrong("[affinity]\nvhost=\"1\"\nvhost=\"2\"\n").starts_with("3:"));
}

TEST_CASE("drop-ins are merged in name order, key by key") {
  const tests::TempDir root;
  root.write(kMain, "[affinity]\nvhost = \"1\"\nshim = \"1\"\nemulator = \"1\"\n");
  root.write("etc/kata-containers/config.d/90-last", "[affinity]\nvhost = \"3\"\n");
  root.write("etc/kata-containers/config.d/50-affinity.toml",
             "[affinity]\nvhost = \"2\"\nshim = \"2\"\n[affinity.handler.a]\nshim = \"4\"\n");
  root.write("etc/kata-containers/config.d/10-kata.toml", "[runtime]\nenable_debug = true\n");
  root.write("etc/kata-containers/config.d/directory/ignored.toml", "not toml");
  const auto config = config::load_config(std::nullopt, root.path());
  REQUIRE(config);
  const auto& roles = config->defaults.housekeeping_by_role;
  CHECK(roles.at(policy::Role::kEmulator).cpus == CpuSet{1});
  CHECK(roles.at(policy::Role::kShim).cpus == CpuSet{2});
  CHECK(roles.at(policy::Role::kVhost).cpus == CpuSet{3});
  CHECK(config->by_handler.at("a").housekeeping_by_role.at(policy::Role::kShim).cpus == CpuSet{4});
  CHECK(config->by_handler.at("a").housekeeping_by_role.at(policy::Role::kVhost).cpus == CpuSet{3});
  REQUIRE(config->files.size() == 4);
  CHECK(config->files[0] == root.path() / kMain);
  CHECK(config->files[1].filename() == "10-kata.toml");
  CHECK(config->files[3].filename() == "90-last");
}

TEST_CASE("an error in a drop-in names the drop-in") {
  const tests::TempDir root;
  root.write(kMain, "[runtime]\n");
  root.write("etc/kata-containers/config.d/50-affinity.toml", "[affinity]\nvhost = \"2-\"\n");
  const auto config = config::load_config(std::nullopt, root.path());
  REQUIRE_FALSE(config);
  CHECK(config.error().message.find("config.d/50-affinity.toml:2:9: ") != std::string::npos);
}

TEST_CASE("an error does not show the raw name of a drop-in") {
  const tests::TempDir root;
  root.write(kMain, "[runtime]\n");
  const std::string drop_ins = "etc/kata-containers/config.d/";
  SECTION("its content is wrong") {
    root.write(drop_ins + "50-\x1b[31m\xe2\x80\xae.toml", "[affinity]\nvhost = \"2-\"\n");
  }
  SECTION("a value is") {
    root.write(drop_ins + "50-\x1b[31m\xe2\x80\xae.toml", "[affinity]\nnope = 1\n");
  }
  SECTION("it cannot be read") {
    root.link(drop_ins + "50-\x1b[31m\xe2\x80\xae.toml", "/dev/null");
  }
  const auto config = config::load_config(std::nullopt, root.path());
  REQUIRE_FALSE(config);
  CHECK(config.error().message.find("config.d/50-\\x1b[31m\\u{202e}.toml:") != std::string::npos);
  CHECK(base::is_printable(config.error().message, config.error().message.size()));
}

TEST_CASE("the first file in Kata's order with an [affinity] table is used") {
  const tests::TempDir root;
  root.write("opt/kata/share/defaults/kata-containers/runtimes/qemu/configuration-qemu.toml",
             "[affinity]\nvhost = \"3\"\n");
  const auto vhost = [&root] {
    const auto config = config::load_config(std::nullopt, root.path());
    REQUIRE(config);
    return config->defaults.housekeeping_by_role.at(policy::Role::kVhost).cpus;
  };
  root.write(kMain, "[runtime]\n");
  CHECK(vhost() == CpuSet{3});
  root.write("usr/share/defaults/kata-containers/configuration.toml",
             "[affinity]\nvhost = \"2\"\n");
  CHECK(vhost() == CpuSet{2});
  root.write(kMain, "[affinity]\nvhost = \"1\"\n");
  CHECK(vhost() == CpuSet{1});
  root.write("etc/kata-containers/runtime-rs/configuration.toml", "[affinity]\nvhost = \"0\"\n");
  CHECK(vhost() == CpuSet{0});
}

TEST_CASE("drop-ins are read beside the target of a symbolic link") {
  const tests::TempDir root;
  root.write("opt/kata/configuration-qemu.toml", "[runtime]\n");
  root.write("opt/kata/config.d/50-affinity.toml", "[affinity]\nvhost = \"5\"\n");
  root.link(kMain, "../../opt/kata/configuration-qemu.toml");
  const auto config = config::load_config(std::nullopt, root.path());
  REQUIRE(config);
  CHECK(config->defaults.housekeeping_by_role.at(policy::Role::kVhost).cpus == CpuSet{5});
}

TEST_CASE("a file named by --config must exist") {
  const auto config = config::load_config(fs::path("/nonexistent/configuration.toml"));
  REQUIRE_FALSE(config);
  CHECK(config.error().code == base::ErrorCode::kInvalid);
  CHECK(config.error().message.starts_with("/nonexistent/configuration.toml: "));
}

TEST_CASE("config: only this node's libvirt is accepted") {
  const auto config = load(set("libvirt_uri", R"("qemu:///system")") +
                           "libvirt_domains = [\"vm1\"]\nlibvirt_config = true\n");
  REQUIRE(config);
  CHECK(config->libvirt_uri == "qemu:///system");
  CHECK(config->libvirt_domains == std::vector<std::string>{"vm1"});
  CHECK(config->libvirt_config);
  CHECK(wrong(set("libvirt_uri", R"("qemu+ssh://node2/system")")).starts_with("2:15: "));
  CHECK(wrong(set("libvirt_domains", R"(["vm1", ""])")).starts_with("2:19: "));
  CHECK(wrong(set("libvirt_domains", R"(["vm 1"])")).find("\"vm 1\" is not a sandbox id") !=
        std::string::npos);
}

TEST_CASE("deep nesting is rejected before parsing") {
  const auto arrays = [](std::size_t depth) {
    return "x = " + std::string(depth, '[') + std::string(depth, ']') + '\n';
  };
  const auto tables = [](std::size_t depth) {
    std::string text;
    for (std::size_t i = 0; i < depth; ++i) text += "x = {";
    return text + std::string(depth, '}') + '\n';
  };
  const auto dotted = [](std::size_t parts) {
    std::string text = "x";
    for (std::size_t i = 1; i < parts; ++i) text += ".x";
    return text;
  };
  for (const std::size_t good : {1U, 32U}) {
    CHECK(wrong(arrays(good)) == "");
    CHECK(wrong(tables(good)) == "");
    CHECK(wrong(dotted(good) + " = 1\n") == "");
    CHECK(wrong('[' + dotted(good) + "]\n") == "");
  }
  for (const std::size_t bad : {33U, 50000U}) {
    CHECK(wrong(arrays(bad)) == "1:37: nests deeper than 32 levels");
    CHECK(wrong(tables(bad)) == "1:165: nests deeper than 32 levels");
    CHECK(wrong(dotted(bad) + " = 1\n") == "1:64: nests deeper than 32 levels");
    CHECK(wrong("\n[" + dotted(bad) + "]\n") == "2:65: nests deeper than 32 levels");
  }
}

TEST_CASE("brackets and dots in comments and strings do not nest") {
  const std::string many = std::string(100, '[') + std::string(100, '.');
  CHECK(wrong("# " + many + "\n") == "");
  CHECK(wrong("a = '" + many + "'\n") == "");
  CHECK(wrong("a = \"\\\"" + many + "\"\n") == "");
  CHECK(wrong("a = \"\"\"\n\"" + many + "\n\"\"\"\n") == "");
  CHECK(wrong("a = '''\n'" + many + "\n'''\n") == "");
  CHECK(wrong("a = \"\"\nb = '" + many + "'\n") == "");
}

TEST_CASE("an empty table is checked like any other") {
  CHECK(wrong("[affinity.a.b]\n").ends_with(": affinity.a.b: unknown key"));
  CHECK(wrong("[affinity]\na = {}\n") == "2:1: affinity.a: unknown key");
  CHECK(wrong("[affinity.enable]\n").find("affinity.enable: must be true or false") !=
        std::string::npos);
  CHECK(wrong("[affinity.handler]\n") == "");
  CHECK(wrong("[affinity.handler.kata]\n") == "");
  CHECK(wrong("[other.a.b]\n") == "");
}

TEST_CASE("invisible characters of a file are escaped in its errors") {
  CHECK(wrong("[affinity]\n\"a\\u001b[2J\\u202e\" = 1\n") ==
        "2:1: affinity.a\\x1b[2J\\u{202e}: unknown key");
  CHECK(wrong(set("housekeeping", "\"0\\n\"")).find("ends in a newline") != std::string::npos);
}

TEST_CASE("a configuration that is not a regular file is rejected, without blocking") {
  const tests::TempDir dir;
  dir.write("c.toml", "[affinity]\n");
  const auto fifo = dir.path() / "fifo";
  REQUIRE(::mkfifo(fifo.c_str(), 0600) == 0);
  const auto load_file = [](const fs::path& file) {
    const auto config = config::load_config(file);
    return config ? "" : config.error().message;
  };
  CHECK(load_file(fifo) == fifo.string() + ": is not a regular file");
  CHECK(load_file(dir.path()) == dir.path().string() + ": is not a regular file");
  fs::create_directories(dir.path() / "config.d");
  const auto drop_in = dir.path() / "config.d/50-fifo.toml";
  REQUIRE(::mkfifo(drop_in.c_str(), 0600) == 0);
  CHECK(load_file(dir.path() / "c.toml") ==
        fs::canonical(dir.path()).string() + "/config.d/50-fifo.toml: is not a regular file");
}

TEST_CASE("configuration files have a maximum size") {
  const std::string head = "[affinity]\n#";
  const std::size_t rest = (std::size_t{1} << 20) - head.size();
  CHECK(wrong(head + std::string(rest, 'x')) == "");
  CHECK(wrong(head + std::string(rest + 1, 'x')).find("larger than 1048576 bytes") !=
        std::string::npos);
}

TEST_CASE("a reload names the keys that require a restart") {
  const auto changed = [](const std::string& text) {
    return config::keys_for_next_start(config::default_config(), *load("[affinity]\n" + text));
  };
  using Names = std::vector<std::string_view>;
  CHECK(changed("") == Names{});
  CHECK(changed("vcpu_pinning = \"mask\"\nlog_level = \"debug\"\ndrift_check = 3\n") == Names{});
  CHECK(changed("nri_socket = \"\"\n") == Names{"nri_socket"});
  CHECK(
      changed("libvirt_domains = [\"vm\"]\nstate_dir = \"/run/other\"\nlibvirt_config = true\n") ==
      Names{"state_dir", "libvirt_domains", "libvirt_config"});
  CHECK(changed("allow_annotations = [\"environment\"]\n") == Names{});
  CHECK(changed("allow_annotations = [\"libvirt_domain\"]\n") == Names{"allow_annotations"});
}

TEST_CASE("[affinity.managed] says who gets which CPUs where we hand them out") {
  const tests::TempDir dir;
  dir.write("c.toml", R"([affinity]
mode = "managed"
[affinity.managed]
reserved_cpus = "0"
infra_cpus = "1"
infra_namespaces = ["kube-system"]
min_shared = 2
placement = "packed"
steps = ["spill", "rank"]
align = "restricted"
align_scope = "pod"
memory = "follow"
full_cores = true
guaranteed_class = "none"
exclusive_namespaces = ["db"]
share_namespaces = ["batch"]
allow_classes = ["share", "none"]
on_failure = "refuse"
)");
  const auto config = config::load_config(dir.path() / "c.toml");
  REQUIRE(config);
  using policy::managed::CpuUse;
  CHECK(config->mode == config::Mode::kManaged);
  policy::managed::Rules rules{
      .reserved = {0},
      .infra = {1},
      .min_shared = 2,
      .placement = "packed",
      .steps = {"spill", "rank"},
      .options = {policy::allocate::CpuOption::kFullPcpusOnly},
      .align = policy::allocate::HintPolicy::kRestricted,
      .align_pods = true,
      .bind_memory = true,
      .infra_namespaces = {"kube-system"},
      .by_namespace = {{"db", CpuUse::kExclusive}, {"batch", CpuUse::kShare}},
      .guaranteed = CpuUse::kNone,
      .allowed = {CpuUse::kShare, CpuUse::kNone},
      .refuse = true};
  CHECK(config->managed == rules);
}

TEST_CASE("keys of [affinity.managed] stand there, and a namespace has one class") {
  CHECK(wrong("[affinity]\n\"managed.min_shared\" = 2\n").ends_with("unknown key"));
  CHECK(wrong("[affinity.managed]\n") == "");
  CHECK(wrong(set("managed.min_share", "2"))
            .ends_with("unknown key; did you mean managed.min_shared?"));
  CHECK(wrong(set("managed.reserved_cpus", "\"1-\"")).find("is not a cpuset") != std::string::npos);
  CHECK(wrong(set("managed.allow_classes", "[\"best\"]"))
            .ends_with(R"("best" is not one of "none", "exclusive", "share")"));
  CHECK(wrong("[affinity.managed]\nexclusive_namespaces = [\"a\"]\nshare_namespaces = [\"a\"]\n")
            .ends_with("affinity.managed.share_namespaces: \"a\" is in exclusive_namespaces, too"));
  const tests::TempDir dir;
  dir.write("c.toml", set("managed.infra_cpus", "\"8\""));
  CHECK_FALSE(config::load_config(dir.path() / "c.toml", "/", policy::CpuSet::range(0, 7)));
}

TEST_CASE("settings without effect in the mode are named") {
  const auto without = [](const std::string& text) {
    return config::keys_without_effect(*load("[affinity]\n" + text));
  };
  CHECK(without("pod_resources = \"/a.sock\"\n").empty());
  CHECK(without("managed.min_shared = 2\n") == std::vector<std::string_view>{"managed"});
  CHECK(without("mode = \"managed\"\nmanaged.min_shared = 2\n").empty());
  CHECK(without("mode = \"managed\"\npod_resources = \"/a.sock\"\n") ==
        std::vector<std::string_view>{"pod_resources"});
}

TEST_CASE("going to managed, or from it, and its rules wait for the next start") {
  const auto follow = load("[affinity]\n");
  const auto managed = load("[affinity]\nmode = \"managed\"\n");
  const auto other = load("[affinity]\nmode = \"managed\"\nmanaged.min_shared = 2\n");
  REQUIRE((follow && managed && other));
  CHECK(config::keys_for_next_start(*follow, *managed) == std::vector<std::string_view>{"mode"});
  CHECK(config::keys_for_next_start(*managed, *other) == std::vector<std::string_view>{"managed"});
  CHECK(config::keys_for_next_start(*managed, *managed).empty());
}

TEST_CASE("the configuration knows every step of the allocation pipeline") {
  std::string names;
  for (const std::string_view name : policy::allocate::step_names()) {
    names += (names.empty() ? "" : " ") + std::string(name);
  }
  CHECK(config::find_key("managed.steps")->allowed == names);
}
