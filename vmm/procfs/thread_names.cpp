// SPDX-License-Identifier: Apache-2.0
#include "vmm/procfs/thread_names.hpp"

#include <algorithm>
#include <charconv>

#include "vmm/procfs/known_vmms.hpp"

namespace ka::vmm {
namespace {

using policy::Role;

// Thread ids go up to PID_MAX_LIMIT (include/linux/threads.h).
constexpr int kPidMax = 4 * 1024 * 1024 + 1;
// drivers/vhost/vhost.c
constexpr VcpuName kVhost{"vhost-"};
// io_uring/io-wq.c, io_uring/sqpoll.c
constexpr VcpuName kIoUring[] = {{"iou-wrk-"}, {"iou-sqp-"}};

/// A decimal without sign or leading zeros, below `limit`; -1 for anything else.
int read_number(std::string_view text, int limit) {
  if (text.empty() || text[0] < '0' || text[0] > '9') return -1;
  if (text.size() > 1 && text[0] == '0') return -1;
  int value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc{} && stop == text.data() + text.size();
  return whole && value < limit ? value : -1;
}

/// The number, below `limit`, in a name of this form; -1 for any other name.
int number_in(const VcpuName& form, std::string_view comm, int limit) {
  if (comm.size() <= form.prefix.size() + form.suffix.size()) return -1;
  if (!comm.starts_with(form.prefix) || !comm.ends_with(form.suffix)) return -1;
  comm.remove_prefix(form.prefix.size());
  comm.remove_suffix(form.suffix.size());
  return read_number(comm, limit);
}

bool is_number(std::string_view text) { return read_number(text, policy::kMaxIds) >= 0; }

bool matches(const QueueName& queue, std::string_view comm) {
  if (!comm.starts_with(queue.prefix)) return false;
  comm.remove_prefix(queue.prefix.size());
  if (queue.second.empty()) return is_number(comm);
  const std::size_t at = comm.find(queue.second);
  return at != std::string_view::npos && is_number(comm.substr(0, at)) &&
         is_number(comm.substr(at + queue.second.size()));
}

NameMeaning iothread(std::string_view id) {
  return {.role = Role::kIothread, .number = -1, .iothread = std::string(id)};
}

}  // namespace

bool is_made_by_kernel(std::string_view comm) {
  return comm.starts_with("vhost-") || is_huge_page_recovery(comm) || io_uring_submitter(comm);
}

bool is_known_emulator(std::string_view comm) {
  const auto begins = [comm](std::string_view name) { return comm.starts_with(name); };
  return belongs_to_vm(comm) || io_uring_submitter(comm).has_value() ||
         std::ranges::any_of(known_vmms(), [&](const KnownVmm& vmm) {
           return std::ranges::any_of(vmm.emulators, begins);
         });
}

bool is_huge_page_recovery(std::string_view comm) { return comm.starts_with("kvm-nx-lpage-"); }

std::optional<int> io_uring_submitter(std::string_view comm) {
  for (const VcpuName& form : kIoUring) {
    if (const int tid = number_in(form, comm, kPidMax); tid >= 0) return tid;
  }
  return std::nullopt;
}

bool belongs_to_vm(std::string_view comm) {
  return comm == "vmm_master" || (is_made_by_kernel(comm) && !io_uring_submitter(comm).has_value());
}

std::optional<NameMeaning> read_thread_name(std::string_view comm) {
  const int worked_for = number_in(kVhost, comm, kPidMax);
  if (worked_for >= 0) return NameMeaning{Role::kVhost, worked_for, {}};
  for (const KnownVmm& vmm : known_vmms()) {
    for (const VcpuName& form : vmm.vcpus) {
      const int index = number_in(form, comm, policy::kMaxIds);
      if (index >= 0) return NameMeaning{Role::kVcpu, index, {}};
    }
    for (const QueueName& queue : vmm.queues) {
      if (matches(queue, comm)) return iothread(comm.starts_with('_') ? comm.substr(1) : comm);
    }
  }
  constexpr std::string_view kIothread = "IO ";
  if (!comm.starts_with(kIothread) || comm.size() == kIothread.size()) return std::nullopt;
  const std::string_view id = comm.substr(kIothread.size());
  if (id == "mon_iothread") return std::nullopt;
  return iothread(id);
}

}  // namespace ka::vmm
