// SPDX-License-Identifier: Apache-2.0
#include "affinity/line/vcpu_waits.hpp"

#include <charconv>
#include <utility>

#include "affinity/line/sandbox.hpp"
#include "base/files.hpp"

namespace ka::line {
namespace {

/// "<on CPU> <waited> <slices>".
std::optional<std::uint64_t> second_number(std::string_view text) {
  const std::size_t begin = text.find(' ');
  if (begin == std::string_view::npos) return std::nullopt;
  text.remove_prefix(begin + 1);
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end == text.data()) return std::nullopt;
  return value;
}

}  // namespace

std::optional<std::uint64_t> thread_wait(const std::filesystem::path& proc,
                                         const policy::ThreadKey& key) {
  const auto text = base::read_file(proc / std::to_string(key.pid) / "task" /
                                    std::to_string(key.tid) / "schedstat");
  return text ? second_number(*text) : std::nullopt;
}

const VcpuWaits::Sums& VcpuWaits::read() {
  const auto is_gone = [this](const auto& entry) {
    return node_.sandboxes.find(entry.first) == nullptr;
  };
  std::erase_if(sums_, is_gone);
  std::erase_if(last_, is_gone);
  for (const auto& [id, sandbox] : node_.sandboxes) {
    if (sandbox->plan() != nullptr) read(id, *sandbox);
  }
  return sums_;
}

void VcpuWaits::read(const std::string& id, const Sandbox& sandbox) {
  ByContainer& sums = sums_[id];
  const auto before = std::exchange(last_[id], {});
  auto& last = last_[id];
  for (const ThreadView& thread : sandbox.threads()) {
    if (thread.facts.role != policy::Role::kVcpu) continue;
    const auto known = before.find(thread.facts.key);
    const std::uint64_t from = known == before.end() ? 0 : known->second;
    const std::uint64_t now = thread_wait(node_.roots.proc, thread.facts.key).value_or(from);
    const policy::plan::VcpuPlan* vcpu = sandbox.plan()->find_vcpu(thread.facts.vcpu_index);
    sums[vcpu == nullptr ? "" : vcpu->container] += now > from ? now - from : 0;
    last[thread.facts.key] = now;
  }
}

}  // namespace ka::line
