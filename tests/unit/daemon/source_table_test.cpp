// SPDX-License-Identifier: Apache-2.0
#include "affinity/daemon/source_table.hpp"

#include <set>

#include "tests/catch.hpp"
#include "tests/temp_dir.hpp"

using namespace ka;
using policy::ledger::Source;

namespace {

std::set<Source> awaited(const daemon::SourceSettings& settings) {
  std::set<Source> sources;
  for (const auto& row : daemon::source_registrations()) {
    if (row.is_awaited(settings)) sources.insert(row.source);
  }
  return sources;
}

}  // namespace

TEST_CASE("a start waits for the sources that the node has") {
  const tests::TempDir dir;
  daemon::SourceSettings settings;
  CHECK(awaited(settings) == std::set{Source::kPersist});
  settings.nri_socket = dir.path() / "nri.sock";  // the runtime may not be up yet
  settings.libvirt.uri = "qemu:///system";
  settings.kubelet_state = dir.path() / "cpu_manager_state";
  CHECK(awaited(settings) == std::set{Source::kNri, Source::kPersist, Source::kLibvirt});
  settings.state_dir = dir.path() / "state";
  CHECK_FALSE(awaited(settings).contains(Source::kKubelet));
  dir.write("state/cpu_manager_state", "of the daemon before");
  CHECK(awaited(settings).contains(Source::kKubelet));
  settings.state_dir.clear();
  dir.write("cpu_manager_state", "{");
  CHECK(awaited(settings).contains(Source::kKubelet));
  settings.cdi = dir.path() / "cdi";
  CHECK_FALSE(awaited(settings).contains(Source::kDra));
  dir.write("cdi/file.json", "{}");
  CHECK(awaited(settings).contains(Source::kDra));
}
