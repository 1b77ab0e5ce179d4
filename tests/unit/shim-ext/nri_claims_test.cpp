// SPDX-License-Identifier: Apache-2.0
// Claims on CPUs that a container's environment names, as NRI brings it.
#include <string>
#include <vector>

#include "tests/text_log.hpp"
#include "tests/unit/shim-ext/nri_scene.hpp"

using namespace ka;
using namespace ka::tests;
using policy::ledger::ContainerSeen;
using Claims = std::vector<policy::ledger::PreparedClaim>;

namespace {

struct Scene {
  std::optional<Claims> seen(const wire::Container& container) const {
    return std::get<ContainerSeen>(translator.container(container).body).claims;
  }
  std::optional<Claims> updated(const wire::Container& container) const {
    return std::get<ContainerSeen>(translator.updated(container, {}).body).claims;
  }

  std::string lines;
  TestClock clock;
  log::Log log = text_log(log::Level::kInfo, lines);
  nri::Translator translator{[](int, nri::Origin) -> base::Result<nri::Process> {
                               return base::fail(base::ErrorCode::kGone, "none");
                             },
                             log, clock};
};

wire::Container with(const std::vector<std::string>& environment) {
  auto container = nri_container("s1", "c1", "2-5");
  for (const std::string& entry : environment) container.add_env(entry);
  return container;
}

}  // namespace

TEST_CASE("claims are named by each report of the container") {
  const Scene scene;
  // Two claims, as dra-driver-cpu's CDI files put them there, after what the image has.
  const auto container =
      with({"PATH=/bin", "DRA_CPUSET_a1b2c3d4-1111-4222-8333-444455557777=2-3,6-7", "DRA_CPUSET=9",
            "XDRA_CPUSET_u3=1", "DRA_CPUSET_5f0c2b1e=7", "DRA_CPUSET_5f0c2b1e=1,5"});
  const Claims claims{{"5f0c2b1e", {1, 5}}, {"a1b2c3d4-1111-4222-8333-444455557777", {2, 3, 6, 7}}};
  CHECK(scene.seen(container) == claims);
  CHECK(scene.updated(container) == claims);
}

TEST_CASE("an environment without claims names none; one that was not sent says nothing") {
  const Scene scene;
  CHECK(scene.seen(with({"PATH=/bin"})) == Claims{});
  CHECK_FALSE(scene.seen(with({})));
}

TEST_CASE("a malformed entry is a claim without CPUs, and its name is made printable") {
  const Scene scene;
  CHECK(scene.seen(with({"DRA_CPUSET_u1=3-2", "DRA_CPUSET_u2=", "DRA_CPUSET_u3=4\n",
                         "DRA_CPUSET_u4\x1b[2J"})) ==
        Claims{{"u1", {}}, {"u2", {}}, {"u3", {}}, {"u4\\x1b[2J", {}}});
}

TEST_CASE("an environment with claims without end is cut off") {
  const Scene scene;
  std::vector<std::string> environment;
  for (int i = 0; i < 5000; ++i) environment.push_back("DRA_CPUSET_u" + std::to_string(i) + "=1");
  CHECK(scene.seen(with(environment))->size() == 256);
}
