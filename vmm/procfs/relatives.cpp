// SPDX-License-Identifier: Apache-2.0
#include "vmm/procfs/relatives.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <optional>
#include <ranges>
#include <utility>

#include "base/files.hpp"
#include "base/path.hpp"
#include "base/process.hpp"
#include "vmm/procfs/thread_names.hpp"

namespace ka::vmm {
namespace {

using policy::Role;

constexpr int kInit = 1;
constexpr int kKthreadd = 2;
constexpr std::size_t kMaxMembers = 4096;
constexpr std::size_t kMaxCgroups = 256;
constexpr int kMaxAncestors = 8;
constexpr std::size_t kMaxFamily = 64;
constexpr std::size_t kMaxGenerations = 16;
constexpr int kMostWalks = 3;

/// The numbers in a text; other words are skipped.
std::vector<int> read_numbers(std::string_view text) {
  std::vector<int> numbers;
  while (!text.empty()) {
    const std::size_t length = std::min(text.find_first_of(" \n"), text.size());
    int value = 0;
    const auto [stop, error] = std::from_chars(text.data(), text.data() + length, value);
    if (error == std::errc{} && stop == text.data() + length && value > 0) numbers.push_back(value);
    text.remove_prefix(std::min(length + 1, text.size()));
  }
  return numbers;
}

template <typename T>
void sort_unique(std::vector<T>& values) {
  std::ranges::sort(values);
  const auto rest = std::ranges::unique(values);
  values.erase(rest.begin(), rest.end());
}

std::vector<int> children_of_thread(const std::filesystem::path& proc, int pid, int tid,
                                    base::Trouble& trouble) {
  const auto text =
      base::read_file(proc / std::to_string(pid) / "task" / std::to_string(tid) / "children");
  trouble.record(text);
  return text ? read_numbers(*text) : std::vector<int>{};
}

bool is_thread_of(std::span<const SeenThread> threads, int tid) {
  return std::ranges::any_of(threads,
                             [tid](const SeenThread& thread) { return thread.key.tid == tid; });
}

bool works_for(std::string_view comm, std::span<const SeenThread> vmm_threads) {
  const auto meaning = read_thread_name(comm);
  return meaning && meaning->role == Role::kVhost && is_thread_of(vmm_threads, meaning->number);
}

/// arch/x86/kvm/i8254.c; virt/kvm/kvm_main.c, kvm_vm_create_worker_thread() before 6.13
constexpr std::string_view kPit = "kvm-pit/";
constexpr std::string_view kHugePageRecovery = "kvm-nx-lpage-recovery-";

/// KVM names its kernel threads after the process that made them: any of its threads would do.
/// Absent: it is none of KVM's.
std::optional<int> maker_of(std::string_view comm) {
  for (const std::string_view prefix : {kPit, kHugePageRecovery}) {
    if (!comm.starts_with(prefix)) continue;
    if (const auto pid = base::parse_number(comm.substr(prefix.size()))) {
      return static_cast<int>(*pid);
    }
  }
  return std::nullopt;
}

/// Kernel threads that are not older than the VMM, whose they are by their names. kthreadd's
/// children are listed by age, and a node has thousands: the youngest are asked first.
template <typename IsWanted>
std::vector<policy::ProcessId> kernel_threads(const std::filesystem::path& proc,
                                              const SeenProcess& vmm, IsWanted is_wanted,
                                              base::Trouble& trouble) {
  const base::ProcFs procfs(proc);
  std::vector<int> candidates = children_of_thread(proc, kKthreadd, kKthreadd, trouble);
  const bool by_age = !candidates.empty();
  if (!by_age) {
    const auto processes = procfs.processes();
    trouble.record(processes);
    candidates = processes.value_or(std::vector<int>{});
  }
  std::vector<policy::ProcessId> found;
  for (const int pid : std::views::reverse(candidates)) {
    const auto stat = procfs.stat(pid);
    trouble.record(stat);
    if (!stat || stat->ppid != kKthreadd) continue;
    const bool is_older = stat->start_time < vmm.start_time;
    if (is_older && by_age) break;
    if (!is_older && is_wanted(stat->comm, vmm.threads)) {
      found.push_back({pid, stat->start_time});
    }
  }
  sort_unique(found);
  return found;
}

struct Companion {
  std::string_view name;
  Role role;
};

/// Programs beside a VMM whose threads have a role of their own.
constexpr Companion kCompanions[] = {
    {"virtiofsd", Role::kVirtiofsd},
};

/// Each by how its name begins.
constexpr std::string_view kHelpers[] = {"passt",       "pasta",          "slirp4netns",
                                         "swtpm",       "qemu-pr-help",   "nydusd",
                                         "dbus-daemon", "qemu-bridge-hel"};

std::optional<Role> find_program(std::string_view name) {
  const auto* found = std::ranges::find(kCompanions, name, &Companion::name);
  return found == std::end(kCompanions) ? std::nullopt : std::optional(found->role);
}

/// By the process's name, else by the file that it runs; kHelper for any other program.
Role role_of_program(const std::filesystem::path& proc, int pid, std::string_view comm) {
  if (const auto role = find_program(comm)) return *role;
  return find_program(program_name(proc, pid)).value_or(Role::kHelper);
}

/// Ends at the first that cannot be read, with the reason in `missing`.
std::vector<policy::ProcessId> walk_up(const std::filesystem::path& proc, int pid,
                                       std::optional<base::Error>& missing) {
  const base::ProcFs procfs(proc);
  std::vector<policy::ProcessId> line;
  missing.reset();
  while (pid > kInit && line.size() < kMaxGenerations) {
    const auto stat = procfs.stat(pid);
    if (!stat) {
      missing = stat.error();
      break;
    }
    line.push_back({pid, stat->start_time});
    pid = stat->ppid;
  }
  return line;
}

/// Subdirectories of a cgroup. cgroupfs counts them as links, so that most need no listing.
std::vector<std::filesystem::path> child_cgroups(const std::filesystem::path& cgroup,
                                                 base::Trouble& trouble) {
  struct stat status{};
  if (::stat(cgroup.c_str(), &status) == 0 && status.st_nlink == 2) return {};
  const auto names = base::list_subdirectories(cgroup);
  trouble.record(names);
  std::vector<std::filesystem::path> found;
  if (!names) return found;
  for (const std::string& name : *names) found.push_back(cgroup / name);
  return found;
}

}  // namespace

base::Result<std::string> read_program_name(const std::filesystem::path& proc, int pid) {
  constexpr std::string_view kDeleted = " (deleted)";
  const auto exe = base::read_link(proc / std::to_string(pid) / "exe");
  if (exe) {
    std::string_view path = *exe;
    if (path.ends_with(kDeleted)) path.remove_suffix(kDeleted.size());
    return std::string(base::base_name(path));
  }
  const auto arguments = base::ProcFs(proc).cmdline(pid);
  if (!arguments) return unexpected(arguments.error());
  if (arguments->empty()) return unexpected(exe.error());
  return std::string(base::base_name(arguments->front()));
}

std::string program_name(const std::filesystem::path& proc, int pid) {
  return read_program_name(proc, pid).value_or(std::string());
}

bool is_known_helper(std::string_view comm) {
  return is_huge_page_recovery(comm) ||
         std::ranges::any_of(kHelpers, [&](auto name) { return comm.starts_with(name); });
}

bool is_shim(const std::filesystem::path& proc, int pid, std::string_view comm) {
  if (!comm.starts_with("containerd-shim")) return false;
  return !program_name(proc, pid).starts_with("containerd-shim-runc");
}

/// Its identity is read before its program.
base::Result<policy::ProcessId> find_proxy(const std::filesystem::path& proc, int pid) {
  const auto stat = base::ProcFs(proc).stat(pid);
  if (!stat) return unexpected(stat.error());
  const auto program = read_program_name(proc, pid);
  if (!program) return unexpected(program.error());
  if (*program == kProxyProgram) return policy::ProcessId{pid, stat->start_time};
  return base::fail(base::ErrorCode::kGone,
                    "process " + std::to_string(pid) + " is not a shim proxy");
}

std::vector<int> children(const std::filesystem::path& proc, int pid, base::Trouble& trouble) {
  std::vector<int> found;
  const auto tids = base::list_numbers(proc / std::to_string(pid) / "task");
  trouble.record(tids);
  if (!tids) return found;
  for (const int tid : *tids) {
    const auto of_thread = children_of_thread(proc, pid, tid, trouble);
    found.insert(found.end(), of_thread.begin(), of_thread.end());
  }
  return found;
}

Role role_of_process(const std::filesystem::path& proc, const SeenProcess& process,
                     std::span<const SeenThread> vmm_threads) {
  if (process.ppid == kKthreadd && works_for(process.comm, vmm_threads)) return Role::kVhost;
  if (process.ppid == kKthreadd && process.comm.starts_with(kPit)) {
    const auto maker = maker_of(process.comm);
    return maker && is_thread_of(vmm_threads, *maker) ? Role::kPit : Role::kEmulator;
  }
  // It need not be in the VMM's cgroup: planned with its threads, it would be held where these are.
  // Kernels before 5.17 cut the names of kernel threads, so that its own names no process.
  if (process.ppid == kKthreadd && is_huge_page_recovery(process.comm)) return Role::kHelper;
  if (is_shim(proc, process.pid, process.comm)) return Role::kShim;
  return role_of_program(proc, process.pid, process.comm);
}

CgroupMembers cgroup_members(const std::filesystem::path& cgroup, base::Trouble& trouble) {
  CgroupMembers members;
  std::vector<int>& pids = members.pids;
  std::vector<std::filesystem::path> open = {cgroup};
  for (std::size_t visited = 0; !open.empty() && visited < kMaxCgroups; ++visited) {
    const std::filesystem::path next = std::move(open.back());
    open.pop_back();
    const auto text = base::read_file(next / "cgroup.procs");
    // Processes of a threaded cgroup are those of the domain above (kernel/cgroup/cgroup.c).
    if (text || text.error().number != EOPNOTSUPP) trouble.record(text);
    if (text) {
      const auto there = read_numbers(*text);
      pids.insert(pids.end(), there.begin(), there.end());
    }
    std::ranges::move(child_cgroups(next, trouble), std::back_inserter(open));
  }
  sort_unique(pids);
  members.is_cut = !open.empty() || pids.size() > kMaxMembers;
  if (pids.size() > kMaxMembers) pids.resize(kMaxMembers);
  return members;
}

/// A child whose parent has ended has another one.
base::Result<std::vector<policy::ProcessId>> ancestry(const std::filesystem::path& proc, int pid) {
  std::optional<base::Error> missing;
  std::vector<policy::ProcessId> line;
  for (int walks = 0; walks < kMostWalks; ++walks) {
    line = walk_up(proc, pid, missing);
    if (!missing || line.empty() || !is_gone(*missing)) break;
  }
  if (missing && (line.empty() || !is_gone(*missing))) return unexpected(std::move(*missing));
  return line;
}

/// A parent ends before its number is another's, and then its child has another parent.
std::vector<policy::ProcessId> shim_ancestors(const std::filesystem::path& proc,
                                              const SeenProcess& vmm, base::Trouble& trouble) {
  const base::ProcFs procfs(proc);
  std::vector<policy::ProcessId> shims;
  int child = vmm.pid;
  int pid = vmm.ppid;
  for (int level = 0; pid > 1 && level < kMaxAncestors; ++level) {
    const auto stat = procfs.stat(pid);
    const auto of_child = procfs.stat(child);
    trouble.record(stat);
    trouble.record(of_child);
    if (!stat || !of_child || of_child->ppid != pid) break;
    if (is_shim(proc, pid, stat->comm)) shims.push_back({pid, stat->start_time});
    child = std::exchange(pid, stat->ppid);
  }
  std::ranges::sort(shims);
  return shims;
}

std::vector<policy::ProcessId> virtiofsd_children(const std::filesystem::path& proc,
                                                  const std::vector<int>& parents,
                                                  base::Trouble& trouble) {
  std::vector<policy::ProcessId> found;
  std::vector<int> open = parents;
  while (!open.empty()) {
    const int parent = open.back();
    open.pop_back();
    for (const int child : children(proc, parent, trouble)) {
      const auto stat = base::ProcFs(proc).stat(child);
      trouble.record(stat);
      if (!stat || stat->ppid != parent) continue;
      if (role_of_program(proc, child, stat->comm) != Role::kVirtiofsd) continue;
      if (found.size() == kMaxFamily) {
        trouble.record_left_out("more than " + std::to_string(kMaxFamily) + " virtiofsd processes");
        open.clear();
        break;
      }
      found.push_back({child, stat->start_time});
      open.push_back(child);
    }
  }
  sort_unique(found);
  return found;
}

std::vector<policy::ProcessId> vhost_kernel_threads(const std::filesystem::path& proc,
                                                    const SeenProcess& vmm,
                                                    base::Trouble& trouble) {
  return kernel_threads(proc, vmm, works_for, trouble);
}

std::vector<policy::ProcessId> kvm_kernel_threads(const std::filesystem::path& proc,
                                                  const SeenProcess& vmm,
                                                  const std::vector<int>& children,
                                                  base::Trouble& trouble) {
  const auto works_for_kvm = [&](std::string_view comm, std::span<const SeenThread> vmm_threads) {
    const auto maker = maker_of(comm);
    return maker && (is_thread_of(vmm_threads, *maker) ||
                     std::ranges::find(children, *maker) != children.end());
  };
  return kernel_threads(proc, vmm, works_for_kvm, trouble);
}

}  // namespace ka::vmm
