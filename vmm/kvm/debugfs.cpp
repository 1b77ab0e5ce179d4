// SPDX-License-Identifier: Apache-2.0
#include "vmm/kvm/debugfs.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <utility>

#include "base/files.hpp"

namespace ka::vmm {
namespace {

struct Number {
  int value = 0;
  std::string_view rest;
};

std::optional<Number> leading_number(std::string_view text) {
  int value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || value < 0) return std::nullopt;
  return Number{value, text.substr(static_cast<std::size_t>(stop - text.data()))};
}

/// The creator of the VM in "<tid>-<fd>".
std::optional<int> creator(std::string_view name) {
  const auto tid = leading_number(name);
  if (!tid || !tid->rest.starts_with('-')) return std::nullopt;
  const auto fd = leading_number(tid->rest.substr(1));
  if (!fd || !fd->rest.empty()) return std::nullopt;
  return tid->value;
}

/// N of "vcpuN".
std::optional<int> vcpu_id(std::string_view name) {
  constexpr std::string_view kPrefix = "vcpu";
  if (!name.starts_with(kPrefix)) return std::nullopt;
  const auto id = leading_number(name.substr(kPrefix.size()));
  if (!id || !id->rest.empty()) return std::nullopt;
  return id->value;
}

std::vector<KvmVcpu> read_vm(const std::filesystem::path& directory, base::Trouble& trouble) {
  std::vector<KvmVcpu> vcpus;
  const auto names = base::list_directory(directory);
  trouble.record(names);
  if (!names) return vcpus;
  for (const std::string& name : *names) {
    const auto id = vcpu_id(name);
    if (!id) continue;
    const auto text = base::read_file(directory / name / "pid");
    trouble.record(text);
    if (!text) continue;
    const auto tid = base::parse_number(*text);
    if (tid) vcpus.push_back({.id = *id, .tid = static_cast<int>(*tid)});
  }
  return vcpus;
}

}  // namespace

std::vector<KvmVcpu> read_kvm_vcpus(const std::filesystem::path& debugfs,
                                    const std::function<bool(int tid)>& is_ours,
                                    base::Trouble& trouble) {
  std::vector<KvmVcpu> vcpus;
  const std::filesystem::path kvm = debugfs / "kvm";
  const auto names = base::list_directory(kvm);
  trouble.record(names);
  if (!names) return vcpus;
  for (const std::string& name : *names) {
    const auto tid = creator(name);
    if (!tid || !is_ours(*tid)) continue;
    const auto of_vm = read_vm(kvm / name, trouble);
    vcpus.insert(vcpus.end(), of_vm.begin(), of_vm.end());
  }
  std::ranges::sort(vcpus, {}, [](const KvmVcpu& vcpu) { return std::pair(vcpu.id, vcpu.tid); });
  return vcpus;
}

}  // namespace ka::vmm
