// SPDX-License-Identifier: Apache-2.0
#include "affinity/engine/vcpu_waits.hpp"

#include <charconv>
#include <optional>
#include <utility>

#include "base/files.hpp"

namespace ka::engine {
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

std::optional<std::uint64_t> waited(const std::filesystem::path& proc,
                                    const policy::ThreadKey& key) {
  const auto text = base::read_file(proc / std::to_string(key.pid) / "task" /
                                    std::to_string(key.tid) / "schedstat");
  return text ? second_number(*text) : std::nullopt;
}

}  // namespace

void VcpuWaits::read(const std::filesystem::path& proc, const std::string& sandbox,
                     const std::vector<ThreadView>& threads,
                     const policy::plan::SandboxPlan& plan) {
  ByContainer& sums = sums_[sandbox];
  const auto before = std::exchange(last_[sandbox], {});
  auto& last = last_[sandbox];
  for (const ThreadView& thread : threads) {
    if (thread.facts.role != policy::Role::kVcpu) continue;
    const auto known = before.find(thread.facts.key);
    const std::uint64_t from = known == before.end() ? 0 : known->second;
    const std::uint64_t now = waited(proc, thread.facts.key).value_or(from);
    const policy::plan::VcpuPlan* vcpu = plan.find_vcpu(thread.facts.vcpu_index);
    sums[vcpu == nullptr ? "" : vcpu->container] += now > from ? now - from : 0;
    last[thread.facts.key] = now;
  }
}

void VcpuWaits::forget(std::string_view sandbox) {
  if (const auto sums = sums_.find(sandbox); sums != sums_.end()) sums_.erase(sums);
  if (const auto last = last_.find(sandbox); last != last_.end()) last_.erase(last);
}

}  // namespace ka::engine
