// SPDX-License-Identifier: Apache-2.0
#include "guest-agent/agent/show_affinity.hpp"

#include "base/files.hpp"
#include "tests/catch.hpp"
#include "tests/temp_dir.hpp"

using namespace ka;

namespace {

/// What it prints; empty: it failed.
std::string shown(const tests::TempDir& root) {
  const auto file = root.path() / "printed";
  std::FILE* out = std::fopen(file.c_str(), "w");
  REQUIRE(out != nullptr);
  const bool good = agent::show_affinity({.proc = root.path() / "proc"}, out);
  std::fclose(out);
  return good ? base::read_file(file).value() : "";
}

}  // namespace

TEST_CASE("agent: a container's affinity is that of its first process, with all CPUs") {
  const tests::TempDir root;
  root.write("proc/1/status", "Name:\tpause\nCpus_allowed_list:\t6-7\n");
  CHECK(shown(root).empty());
  root.write("proc/cpuinfo", "processor\t: 0\napicid\t\t: 0\n\n");
  CHECK(shown(root) == "Name:\tpause\nCpus_allowed_list:\t6-7\nprocessor\t: 0\napicid\t\t: 0\n\n");
}
