// SPDX-License-Identifier: Apache-2.0
#include "affinity/cli/selftest/reader.hpp"

#include <sched.h>

#include <algorithm>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <cerrno>
#include <cstdint>
#include <numeric>
#include <optional>
#include <utility>

#include "affinity/cli/client/daemon.hpp"
#include "base/files.hpp"
#include "base/json/json.hpp"
#include "base/json/lookup.hpp"
#include "base/path.hpp"
#include "base/text.hpp"

namespace ka::cli::selftest {
namespace {

namespace fs = std::filesystem;
using base::ErrorCode;
using base::Result;
using Words = std::vector<std::string>;

constexpr const char* kTasks = "run/containerd/io.containerd.runtime.v2.task/k8s.io";
constexpr std::size_t kMaxSpec = std::size_t{4} << 20;
constexpr std::size_t kIdLength = 64;
constexpr std::string_view kVcpu = "vcpu";
constexpr std::string_view kHex = "0123456789abcdef";

/// containerd's ids in a command line or the path of a cgroup.
Words ids_in(std::string_view text) {
  Words found;
  while (!text.empty()) {
    text.remove_prefix(std::min(text.find_first_of(kHex), text.size()));
    const auto length = std::min(text.find_first_not_of(kHex), text.size());
    if (length == kIdLength) found.emplace_back(text.substr(0, length));
    text.remove_prefix(length);
  }
  return found;
}

std::string joined(const Words& words) {
  return std::accumulate(
      words.begin(), words.end(), std::string(),
      [](std::string all, const std::string& word) { return std::move(all) + ' ' + word; });
}

/// A shim's program also starts a shim and cleans up after one; that takes milliseconds.
bool is_momentary(const Words& words) {
  return !words.empty() && (words.back() == "start" || words.back() == "delete");
}

/// The program of a task's shim. containerd 2 writes it for the sandbox alone, earlier ones for
/// each of its containers too.
Result<std::string> shim_of(const fs::path& directory, const std::string& sandbox) {
  auto shim = base::read_regular_file(directory / "shim-binary-path");
  if (shim || !is_gone(shim) || !base::is_id(sandbox)) return shim;
  return base::read_regular_file(directory.parent_path() / sandbox / "shim-binary-path");
}

void name_vcpu(const std::map<int, std::uint64_t>& vcpus, ThreadSeen& thread) {
  const auto found = vcpus.find(thread.tid);
  if (found == vcpus.end()) return;
  thread.part = "vCPU";
  thread.apic_id = found->second;
}

/// "<tid>-<fd>" of KVM's debugfs: the thread that created the VM.
std::optional<int> creator_of(const std::string& name) {
  const auto dash = name.find('-');
  if (dash == std::string::npos) return std::nullopt;
  const auto tid = base::parse_number(name.substr(0, dash));
  return tid ? std::optional(static_cast<int>(*tid)) : std::nullopt;
}

}  // namespace

Result<policy::CpuSet> read_mask(int tid) {
  constexpr std::size_t kWords = policy::kMaxIds / 64;
  std::vector<std::uint64_t> words(kWords);
  const std::size_t bytes = kWords * sizeof(std::uint64_t);
  if (::sched_getaffinity(tid, bytes, reinterpret_cast<cpu_set_t*>(words.data())) != 0) {
    return base::fail_errno(errno, "sched_getaffinity");
  }
  return policy::CpuSet::from_words(words);
}

Reader::Reader(fs::path root, ReadMask read_mask)
    : root_(std::move(root)), read_mask_(std::move(read_mask)), procfs_(root_ / "proc") {}

Result<Reader::Task> Reader::read_task(const fs::path& directory) const {
  const auto text = base::read_regular_file(directory / "config.json", kMaxSpec);
  if (!text) return unexpected(text.error());
  const auto spec = base::parse_json(*text, "config.json");
  if (!spec) return unexpected(spec.error());
  const auto& notes = base::member(*spec, "annotations");
  if (!notes.is_object()) return base::fail(ErrorCode::kInvalid, "config.json: no annotations");
  Task task;
  task.sandbox = text_of(notes, "io.kubernetes.cri.sandbox-id");
  task.pod_uid = text_of(notes, "io.kubernetes.cri.sandbox-uid");
  task.container = text_of(notes, "io.kubernetes.cri.container-name");
  const auto shim = shim_of(directory, task.sandbox);
  if (!shim) return unexpected(shim.error());
  task.is_vm = base::base_name(*shim).find("kata") != std::string_view::npos;
  return task;
}

/// The description of a task does not change while it is there.
void Reader::refresh_tasks() {
  const auto names = base::list_directory(root_ / kTasks).value_or(Words{});
  std::erase_if(tasks_, [&names](const auto& known) {
    return !std::ranges::binary_search(names, known.first);
  });
  for (const std::string& id : names) {
    if (tasks_.contains(id)) continue;
    if (auto task = read_task(root_ / kTasks / id)) tasks_.emplace(id, std::move(*task));
  }
}

const Reader::Task* Reader::find_task(const std::string& text) const {
  for (const std::string& id : ids_in(text)) {
    if (const auto found = tasks_.find(id); found != tasks_.end()) return &found->second;
  }
  return nullptr;
}

/// The VM in whose pod's cgroup a process lies; systemd's names have "_" for "-".
const Reader::Task* Reader::sandbox_of_pod(const std::string& cgroup) const {
  std::string path = cgroup;
  std::ranges::replace(path, '_', '-');
  for (const auto& [id, task] : tasks_) {
    const bool inside = !task.pod_uid.empty() && path.find(task.pod_uid) != std::string::npos;
    if (inside && task.is_vm && task.container.empty()) return &task;
  }
  return nullptr;
}

Reader::Membership Reader::member_of_vm(const Task& task, const Words& words) const {
  const std::string_view program = words.empty() ? "" : base::base_name(words.front());
  if (is_momentary(words)) return {};
  if (program.starts_with("containerd-shim")) return {&task, "shim"};
  return {&task, program.starts_with("virtiofsd") ? "virtiofsd" : "helper"};
}

/// runc's pause process is left out: kubelet assigns it no CPUs.
Reader::Membership Reader::member(int pid) const {
  const Words words = procfs_.cmdline(pid).value_or(Words{});
  if (const Task* task = find_task(joined(words)); task != nullptr && task->is_vm) {
    return member_of_vm(*task, words);
  }
  const auto unified = procfs_.cgroup(pid, "");
  const std::string cgroup = unified ? *unified : procfs_.cgroup(pid, "cpuset").value_or("");
  const Task* task = find_task(cgroup);
  if (task == nullptr) task = sandbox_of_pod(cgroup);
  if (task == nullptr) return {};
  if (task->is_vm) return member_of_vm(*task, words);
  return task->container.empty() ? Membership{} : Membership{task, "container " + task->container};
}

Reader::Vcpus Reader::read_vcpus() const {
  Vcpus found;
  const fs::path kvm = root_ / "sys/kernel/debug/kvm";
  for (const std::string& name : base::list_directory(kvm).value_or(Words{})) {
    const auto creator = creator_of(name);
    if (!creator) continue;
    for (const std::string& each : base::list_directory(kvm / name).value_or(Words{})) {
      if (!each.starts_with(kVcpu)) continue;
      const auto id = base::parse_number(each.substr(kVcpu.size()));
      const auto text = base::read_file(kvm / name / each / "pid");
      const auto tid = base::parse_number(text.value_or(""));
      if (id && tid)
        found[*creator].emplace(static_cast<int>(*tid), static_cast<std::uint64_t>(*id));
    }
  }
  return found;
}

void Reader::add_threads(int pid, const Membership& member, const Vcpus& vcpus,
                         std::vector<ThreadSeen>& threads, int& unread) const {
  const auto tids = procfs_.threads(pid);
  if (!tids) {
    unread += is_gone(tids) ? 0 : 1;
    return;
  }
  const auto creator = std::ranges::find_if(*tids, [&](int tid) { return vcpus.contains(tid); });
  const bool is_vmm = creator != tids->end();
  for (const int tid : *tids) {
    const auto cpus = read_mask_(tid);
    if (!cpus) {
      unread += is_gone(cpus) ? 0 : 1;
      continue;
    }
    threads.push_back({tid, is_vmm ? "VMM" : member.part, *cpus, {}});
    if (is_vmm) name_vcpu(vcpus.at(*creator), threads.back());
  }
}

Reading Reader::read(const std::string& pod_uid) {
  refresh_tasks();
  Reading reading;
  for (const auto& [id, task] : tasks_) {
    if (task.pod_uid == pod_uid) reading.sandbox = task.sandbox;
  }
  for (const auto& [id, task] : tasks_) {
    const bool own = task.sandbox == reading.sandbox && !task.container.empty();
    if (own) reading.containers.emplace(task.container, id);
  }
  const Vcpus vcpus = read_vcpus();
  for (const int pid : procfs_.processes().value_or(std::vector<int>{})) {
    const Membership found = member(pid);
    if (found.task == nullptr) continue;
    const bool own = found.task->sandbox == reading.sandbox;
    add_threads(pid, found, vcpus, own ? reading.own : reading.others, reading.unread);
  }
  return reading;
}

/// The kernel has a directory for each thread, and lists those of processes.
Result<ThreadTime> Reader::time_of(int tid) const {
  const auto text = base::read_file(procfs_.root() / std::to_string(tid) / "schedstat");
  if (!text) return unexpected(text.error());
  const auto space = text->find(' ');
  const auto ran = base::parse_number(text->substr(0, space));
  const std::string rest = space == std::string::npos ? "" : text->substr(space + 1);
  const auto waited = base::parse_number(rest.substr(0, rest.find(' ')));
  if (!ran || !waited) return base::fail(ErrorCode::kInvalid, "schedstat: not two numbers");
  return ThreadTime{std::chrono::nanoseconds(*ran), std::chrono::nanoseconds(*waited)};
}

bool Reader::has_tasks(const std::string& pod_uid) {
  refresh_tasks();
  return std::ranges::any_of(
      tasks_, [&pod_uid](const auto& known) { return known.second.pod_uid == pod_uid; });
}

bool Reader::has_processes(const std::string& sandbox) const {
  const auto pids = procfs_.processes().value_or(std::vector<int>{});
  return std::ranges::any_of(pids, [this, &sandbox](int pid) {
    const auto words = procfs_.cmdline(pid);
    return words && joined(*words).find(sandbox) != std::string::npos;
  });
}

}  // namespace ka::cli::selftest
