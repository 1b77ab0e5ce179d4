// SPDX-License-Identifier: Apache-2.0
#include "affinity/cli/command_line/options.hpp"

#include <algorithm>
#include <sstream>
#include <vector>

#include "tests/catch.hpp"

using namespace ka;
using cli::Exit;

namespace {

/// Of a terminal; the last one is the prompt's.
constexpr int kRows = 24;

struct Parsed {
  Expected<cli::Invocation, Exit> invocation;
  std::string out, err;
};

Parsed parse(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "kata-affinityctl");
  std::ostringstream out, err;
  auto invocation = cli::parse(static_cast<int>(arguments.size()), arguments.data(), out, err);
  return {std::move(invocation), out.str(), err.str()};
}

}  // namespace

TEST_CASE("a command's options are parsed, with --json before or after it") {
  for (const auto& arguments : {std::vector<const char*>{"topology", "--topology", "x", "--json"},
                                std::vector<const char*>{"--json", "topology", "--topology=x"}}) {
    const auto parsed = parse(arguments);
    REQUIRE(parsed.invocation);
    CHECK(parsed.invocation->json);
    CHECK(std::get<cli::TopologyOptions>(parsed.invocation->command).topology == "x");
  }
}

TEST_CASE("--socket may come before or after the command") {
  for (const auto& arguments : {std::vector<const char*>{"--socket", "/s", "sandbox", "rm", "a"},
                                std::vector<const char*>{"sandbox", "--socket=/s", "rm", "a"},
                                std::vector<const char*>{"sandbox", "rm", "a", "--socket", "/s"}}) {
    const auto parsed = parse(arguments);
    REQUIRE(parsed.invocation);
    CHECK(std::get<cli::SandboxRemoveOptions>(parsed.invocation->command).socket == "/s");
  }
  CHECK(std::get<cli::VerifyOptions>(parse({"verify"}).invocation->command).socket ==
        "/run/kata-affinity/api.sock");
}

TEST_CASE("help fits a screen and ends with a newline") {
  const auto parsed = parse({"--help"});
  REQUIRE_FALSE(parsed.invocation);
  CHECK(parsed.invocation.error() == Exit::kDone);
  CHECK(parsed.out.find("topology") != std::string::npos);
  CHECK(std::ranges::count(parsed.out, '\n') < kRows);
}

TEST_CASE("--help lists commands by group, --help-all with their summaries") {
  const std::string brief = parse({"--help"}).out, all = parse({"--help-all"}).out;
  INFO(brief + all);
  CHECK(brief.find("sandbox, container\n") != std::string::npos);
  CHECK(brief.find("names") == std::string::npos);
  CHECK(all.find("\nOffline commands:\n  topology ") != std::string::npos);
  CHECK(all.find("  status                  show sandboxes, threads and CPUs\n") !=
        std::string::npos);
}

TEST_CASE("allocate lists rarely used options only with --help-all") {
  CHECK(parse({"allocate", "--help"}).out.find("--promised") == std::string::npos);
  CHECK(parse({"allocate", "--help-all"}).out.find("--promised") != std::string::npos);
  CHECK(parse({"allocate", "--cpus", "1", "--promised", "2"}).invocation);
}

TEST_CASE("each command's help fits a screen and has its own examples") {
  for (const auto& path : std::vector<std::vector<const char*>>{{"topology"},
                                                                {"plan"},
                                                                {"allocate"},
                                                                {"hints"},
                                                                {"merge-hints"},
                                                                {"simulate"},
                                                                {"status"},
                                                                {"explain"},
                                                                {"map"},
                                                                {"pools"},
                                                                {"class"},
                                                                {"node-report"},
                                                                {"discover"},
                                                                {"verify"},
                                                                {"events"},
                                                                {"reconcile"},
                                                                {"release"},
                                                                {"sandbox", "add"},
                                                                {"sandbox", "rm"},
                                                                {"container", "update"},
                                                                {"container", "rm"},
                                                                {"vcpupin"},
                                                                {"emulatorpin"},
                                                                {"iothreadpin"},
                                                                {"vhostpin"},
                                                                {"doctor"},
                                                                {"setup"},
                                                                {"guest-image", "check"},
                                                                {"guest-image", "add"},
                                                                {"guest-image", "extension"}}) {
    auto arguments = path;
    arguments.push_back("--help");
    const std::string help = parse(arguments).out;
    INFO(help);
    CHECK(std::ranges::count(help, '\n') < kRows);
    const auto examples = help.find("Examples:");
    REQUIRE(examples != std::string::npos);
    CHECK(help.find(std::string("kata-affinityctl ") + path.front(), examples) !=
          std::string::npos);
  }
}

TEST_CASE("--version prints the version") {
  const auto parsed = parse({"--version"});
  CHECK(parsed.invocation.error() == Exit::kDone);
  CHECK(parsed.out.starts_with("kata-affinityctl "));
}

TEST_CASE("a usage error exits with status 2 and one line") {
  for (const auto& arguments : {std::vector<const char*>{}, std::vector<const char*>{"topologie"},
                                std::vector<const char*>{"topology", "--scenario", "x"},
                                std::vector<const char*>{"topology", "--topology"}}) {
    const auto parsed = parse(arguments);
    REQUIRE_FALSE(parsed.invocation);
    CHECK(parsed.invocation.error() == Exit::kWrong);
    CHECK(parsed.out.empty());
    CHECK(std::ranges::count(parsed.err, '\n') == 1);
  }
}

TEST_CASE("class takes a pod or a container, and one of three classes") {
  const auto parsed = parse({"class", "shop/cart/app", "share"});
  REQUIRE(parsed.invocation);
  const auto& options = std::get<cli::ClassOptions>(parsed.invocation->command);
  CHECK(options.target == "shop/cart/app");
  CHECK(options.use == "share");
  for (const auto& arguments :
       {std::vector<const char*>{"class"}, std::vector<const char*>{"class", "shop/cart"},
        std::vector<const char*>{"class", "shop/cart", "best"}}) {
    const auto refused = parse(arguments);
    REQUIRE_FALSE(refused.invocation);
    CHECK(refused.invocation.error() == Exit::kWrong);
    CHECK(std::ranges::count(refused.err, '\n') == 1);
  }
}

TEST_CASE("explain queries the daemon about a sandbox or a CPU, or answers offline for --cpus") {
  const auto sandbox = parse({"explain", "s1"});
  REQUIRE(sandbox.invocation);
  CHECK(std::get<cli::ExplainOptions>(sandbox.invocation->command).sandbox == "s1");
  const auto request = parse({"explain", "--cpus", "3", "--strategy", "fitted"});
  REQUIRE(request.invocation);
  const auto& options = std::get<cli::AllocateOptions>(request.invocation->command);
  CHECK(options.explain);
  CHECK(options.cpus == 3);
  CHECK(options.strategy == "fitted");
  const auto cpu = parse({"explain", "--cpu", "3"});
  REQUIRE(cpu.invocation);
  CHECK(std::get<cli::ExplainOptions>(cpu.invocation->command).cpu == 3);
  for (const auto& arguments :
       {std::vector<const char*>{"explain"}, std::vector<const char*>{"explain", "--cpu", "-1"},
        std::vector<const char*>{"explain", "s1", "--cpu", "3"},
        std::vector<const char*>{"explain", "--cpu", "3", "--cpus", "3"},
        std::vector<const char*>{"explain", "s1", "--cpus", "3"}}) {
    const auto parsed = parse(arguments);
    REQUIRE_FALSE(parsed.invocation);
    CHECK(parsed.invocation.error() == Exit::kWrong);
  }
}

TEST_CASE("an unknown command is named") {
  CHECK(parse({"topologie"}).err ==
        "kata-affinityctl: unknown command \"topologie\" (see --help)\n");
  CHECK(parse({"sandbox", "remove", "s1"}).err.find("unknown command \"remove\"") !=
        std::string::npos);
  CHECK(parse({}).err == "kata-affinityctl: no command given (see --help)\n");
  CHECK(parse({"--foo"}).err == "kata-affinityctl: unknown option \"--foo\" (see --help)\n");
  CHECK(parse({"map", "a"}).err == "kata-affinityctl: unexpected argument \"a\" (see --help)\n");
  CHECK(parse({"\x1b[31m"}).err ==
        "kata-affinityctl: unknown command \"\\x1b[31m\" (see --help)\n");
}

TEST_CASE("a number out of range is rejected with the range") {
  const auto parsed = parse({"allocate", "--cpus", "-2"});
  CHECK(parsed.invocation.error() == Exit::kWrong);
  CHECK(parsed.err.find("8192") != std::string::npos);
  CHECK(parsed.err.size() < 100);
}

TEST_CASE("ownership is sent only if an option gives it") {
  const auto exclusive = [](std::vector<const char*> flags) {
    flags.insert(flags.begin(), {"container", "update", "s1", "c1", "--cpus", "1"});
    const auto parsed = parse(flags);
    REQUIRE(parsed.invocation);
    return std::get<cli::ContainerUpdateOptions>(parsed.invocation->command).exclusive;
  };
  CHECK(exclusive({}) == std::nullopt);
  CHECK(exclusive({"--exclusive"}) == true);
  CHECK(exclusive({"--shared"}) == false);
  CHECK_FALSE(parse({"container", "update", "s1", "c1", "--exclusive", "--shared"}).invocation);
}

TEST_CASE("libvirt's verbs show, set and remove pins") {
  const auto pin = [](std::vector<const char*> arguments) {
    const auto parsed = parse(arguments);
    REQUIRE(parsed.invocation);
    return std::get<cli::PinOptions>(parsed.invocation->command);
  };
  const auto set = pin({"vcpupin", "s1", "2", "4-5"});
  CHECK(set.sandbox + ' ' + set.role + ' ' + set.thread + ' ' + set.cpus == "s1 vcpu 2 4-5");
  CHECK_FALSE(set.remove);
  CHECK(pin({"iothreadpin", "s1", "io1", "--remove"}).remove);
  CHECK(pin({"vcpupin", "s1"}).thread.empty());
  CHECK(pin({"emulatorpin", "s1", "4"}).cpus == "4");
  CHECK(pin({"vhostpin", "s1", "--remove"}).role == "vhost");
  CHECK(pin({"emulatorpin", "s1", "4", "--force", "--for", "10m"}).force);
  CHECK(pin({"emulatorpin", "s1", "4", "--for", "10m"}).lasts_for == 600);
  CHECK(pin({"emulatorpin", "s1", "4", "--for", "90"}).lasts_for == 90);
  CHECK(pin({"emulatorpin", "s1", "4"}).lasts_for == 0);
  for (const auto& arguments :
       {std::vector<const char*>{"vcpupin"}, std::vector<const char*>{"vcpupin", "s1", "--remove"},
        std::vector<const char*>{"vcpupin", "s1", "1", "2", "--remove"},
        std::vector<const char*>{"emulatorpin", "s1", "1", "2"},
        std::vector<const char*>{"emulatorpin", "s1", "--for", "10m"},
        std::vector<const char*>{"emulatorpin", "s1", "1", "--for", "0"},
        std::vector<const char*>{"emulatorpin", "s1", "1", "--for", "10x"}}) {
    CHECK(parse(arguments).invocation.error() == Exit::kWrong);
  }
}
