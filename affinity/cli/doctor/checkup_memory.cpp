// SPDX-License-Identifier: Apache-2.0
// Checks of `doctor`: whether VMs fit into the memory limits of their pods.
#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "affinity/cli/doctor/checkup.hpp"
#include "base/files.hpp"
#include "base/process.hpp"
#include "base/text.hpp"

namespace ka::cli {
namespace {

namespace fs = std::filesystem;
using Level = Symptom::Level;
using Symptoms = std::vector<Symptom>;

constexpr std::int64_t kMebi = 1 << 20;
constexpr const char* kMoreOverhead =
    "set the RuntimeClass's overhead.podFixed.memory to default_memory plus the memory of VMM, "
    "virtiofsd and shim";

/// Of either version of cgroups: where those with limits on memory are.
struct MemoryCgroups {
  explicit MemoryCgroups(const fs::path& root)
      : is_v1(is_there(root / "sys/fs/cgroup/memory")),
        mount(root / (is_v1 ? "sys/fs/cgroup/memory" : "sys/fs/cgroup")) {}
  const char* limit() const { return is_v1 ? "memory.limit_in_bytes" : "memory.max"; }
  const char* events() const { return is_v1 ? "memory.oom_control" : "memory.events"; }

  bool is_v1;
  fs::path mount;
};

/// "-m 2048M,slots=10,maxmem=..." of QEMU's command line, in MiB; 0: not given.
std::int64_t mebibytes_of_qemu(const std::vector<std::string>& arguments) {
  const auto flag = std::ranges::find(arguments, "-m");
  if (flag == arguments.end() || std::next(flag) == arguments.end()) return 0;
  std::string size = std::next(flag)->substr(0, std::next(flag)->find(','));
  if (size.starts_with("size=")) size.erase(0, 5);
  const std::size_t unit = size.find_first_not_of("0123456789");
  const auto number = base::parse_number(size.substr(0, unit)).value_or(0);
  return unit != std::string::npos && size[unit] == 'G' ? number * 1024 : number;
}

/// "7f00-7f80 rw-s ...", in bytes; 0: no such line.
std::int64_t size_of_mapping(std::string_view line) {
  std::uint64_t begin = 0, end = 0;
  const char* const last = line.data() + line.size();
  const auto first = std::from_chars(line.data(), last, begin, 16);
  if (first.ec != std::errc() || first.ptr == last) return 0;
  if (std::from_chars(first.ptr + 1, last, end, 16).ec != std::errc() || end < begin) return 0;
  return static_cast<std::int64_t>(end - begin);
}

/// Cloud Hypervisor has the guest's memory from its API: a file in memory of this name
/// (create_anonymous_file() in vmm/src/memory_manager.rs).
std::int64_t mebibytes_of_clh(const fs::path& process) {
  std::istringstream maps(base::read_file(process / "maps", 16U << 20U).value_or(""));
  std::int64_t bytes = 0;
  for (std::string line; std::getline(maps, line);) {
    if (line.find("/memfd:ch_ram") != std::string::npos) bytes += size_of_mapping(line);
  }
  return bytes / kMebi;
}

std::int64_t guest_mebibytes(const fs::path& root, int vmm) {
  const auto arguments = base::ProcFs(root / "proc").cmdline(vmm);
  const std::int64_t known = arguments ? mebibytes_of_qemu(*arguments) : 0;
  return known > 0 ? known : mebibytes_of_clh(root / "proc" / std::to_string(vmm));
}

/// A process's cgroup and those above it.
std::vector<fs::path> cgroups_of(const fs::path& root, const MemoryCgroups& memory, int pid) {
  const auto path = base::ProcFs(root / "proc").cgroup(pid, memory.is_v1 ? "memory" : "");
  std::vector<fs::path> list;
  if (!path) return list;
  for (fs::path below = fs::path(*path).relative_path(); !below.empty();
       below = below.parent_path()) {
    list.push_back(memory.mount / below);
  }
  return list;
}

/// As kubelet names it, with either driver: "pod1234", "kubepods-burstable-pod1234.slice".
bool is_pod(const fs::path& cgroup) {
  const std::string name = cgroup.filename();
  return name.starts_with("pod") || name.find("-pod") != std::string::npos;
}

/// "oom_kill 3". With version 2 that of all cgroups below it, too.
std::int64_t kills_in(const fs::path& cgroup, const MemoryCgroups& memory) {
  std::istringstream events(base::read_file(cgroup / memory.events()).value_or(""));
  std::int64_t number = 0;
  for (std::string key; events >> key >> number;) {
    if (key == "oom_kill") return number;
  }
  return 0;
}

std::int64_t kills_of_pod(const std::vector<fs::path>& cgroups, const MemoryCgroups& memory) {
  std::int64_t kills = 0;
  for (const fs::path& cgroup : cgroups) {
    kills = std::max(kills, kills_in(cgroup, memory));
    if (is_pod(cgroup)) return kills;
  }
  return 0;
}

std::string kills_text(std::int64_t kills, const std::string& of) {
  return fmt::format("the kernel killed {} {} of {} for want of memory", kills,
                     kills == 1 ? "process" : "processes", of);
}

/// The smallest limit, with the cgroup that has it.
std::pair<std::int64_t, fs::path> memory_limit(const std::vector<fs::path>& cgroups,
                                               const MemoryCgroups& memory) {
  std::pair<std::int64_t, fs::path> least{0, {}};
  for (const fs::path& cgroup : cgroups) {
    const auto text = base::read_file(cgroup / memory.limit());
    const auto limit = base::parse_number(text.value_or("")).value_or(0);
    if (limit > 0 && (least.first == 0 || limit < least.first)) least = {limit, cgroup};
  }
  return least;
}

std::vector<fs::path> directories_in(const fs::path& directory) {
  std::vector<fs::path> list;
  for (const std::string& name :
       base::list_directory(directory).value_or(std::vector<std::string>{})) {
    std::error_code failed;
    if (fs::is_directory(directory / name, failed)) list.push_back(directory / name);
  }
  std::ranges::sort(list);
  return list;
}

/// Guaranteed pods are beside the groups of the other classes, which have theirs below them.
std::vector<fs::path> pods_in(const fs::path& mount) {
  std::vector<fs::path> pods;
  for (const char* top : {"kubepods.slice", "kubepods"}) {
    for (const fs::path& one : directories_in(mount / top)) {
      if (is_pod(one)) {
        pods.push_back(one);
      } else {
        std::ranges::copy_if(directories_in(one), std::back_inserter(pods), is_pod);
      }
    }
  }
  return pods;
}

bool has_process(const fs::path& cgroup) {
  if (!base::read_file(cgroup / "cgroup.procs").value_or("").empty()) return true;
  return std::ranges::any_of(directories_in(cgroup), has_process);
}

}  // namespace

/// A pod's limit is that of its containers, and of the RuntimeClass's overhead where it has one.
void examine_memory_limit(const fs::path& root, int vmm, const std::string& head,
                          Symptoms& symptoms) {
  const MemoryCgroups memory(root);
  const auto cgroups = cgroups_of(root, memory, vmm);
  if (const std::int64_t kills = kills_of_pod(cgroups, memory); kills > 0) {
    symptoms.push_back({"memory", Level::kBad, head + kills_text(kills, "its pod"), kMoreOverhead});
  }
  const std::int64_t guest = guest_mebibytes(root, vmm);
  const auto [limit, cgroup] = memory_limit(cgroups, memory);
  if (guest == 0 || limit == 0 || guest * kMebi < limit) return;
  symptoms.push_back(
      {"memory", Level::kBad,
       head + fmt::format("the guest has {} MiB, but the VMM is limited to {} MiB ({}): the kernel "
                          "kills the VMM when the guest uses all its memory",
                          guest, limit / kMebi, cgroup.native()),
       kMoreOverhead});
}

Symptoms examine_killed_pods(const fs::path& root) {
  const MemoryCgroups memory(root);
  Symptoms symptoms;
  for (const fs::path& pod : pods_in(memory.mount)) {
    const std::int64_t kills = kills_in(pod, memory);
    if (kills == 0 || has_process(pod)) continue;
    symptoms.push_back({"memory", Level::kNote,
                        kills_text(kills, "a pod") + ", and none runs there now (" + pod.native() +
                            "): if it is a VM's, its limit is too low for VMM and guest",
                        kMoreOverhead});
  }
  return symptoms;
}

}  // namespace ka::cli
