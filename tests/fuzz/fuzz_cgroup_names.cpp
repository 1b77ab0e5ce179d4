// SPDX-License-Identifier: Apache-2.0
// Names of cgroups, and lines of mountinfo: whoever makes a cgroup or mounts names it. The first
// line is a cgroup, the second an id.
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "affinity/host/cgroup_names.hpp"
#include "base/mounts.hpp"
#include "tests/fuzz/require.hpp"

using namespace ka;

namespace {

const std::filesystem::path kMount = "/sys/fs/cgroup";

/// None of these leads out of the mount.
void check_inside(const std::filesystem::path& found) {
  tests::require(found.empty() || host::is_inside(found.lexically_normal(), kMount));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const std::size_t end = text.find('\n');
  const std::string cgroup = text.substr(0, end);
  const std::string id = end == std::string::npos ? std::string() : text.substr(end + 1);
  (void)host::is_guaranteed_pod(cgroup);
  (void)host::is_named_after(cgroup, id);
  (void)host::is_of_container(cgroup, id);
  (void)host::is_of_monitor(cgroup);
  (void)host::container_name(cgroup);
  (void)host::pod_uid_of(cgroup);
  (void)host::unit_of(cgroup);
  (void)host::domain_cgroup(cgroup);
  check_inside(host::own_cgroup(id, cgroup, {}, kMount));
  check_inside(host::container_cgroup(cgroup, id, kMount));
  for (const base::Mount& mount : base::parse_mounts(text)) {
    tests::require(!mount.point.empty() && !mount.type.empty());
  }
  return 0;
}
