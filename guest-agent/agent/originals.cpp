// SPDX-License-Identifier: Apache-2.0
#include "guest-agent/agent/originals.hpp"

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <system_error>

#include "guest-agent/agent/files.hpp"

namespace ka::agent {

using policy::GuestCpuSet;

/// "interrupt 24:0-3", a line each. A line that is none is as if it were not there.
void Originals::load() {
  const std::string text = read_text(file_).value_or("");
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    const auto cpus = policy::parse_list<policy::GuestCpuTag>(line.substr(colon + 1));
    if (cpus && !cpus->empty()) masks_[std::string(line.substr(0, colon))] = *cpus;
  }
}

void Originals::remember(const std::string& key, const GuestCpuSet& cpus,
                         const GuestCpuSet& online) {
  if (online.subset_of(cpus)) {
    is_new_ |= masks_.erase(key) > 0;
    return;
  }
  const auto [known, is_first] = masks_.try_emplace(key, cpus);
  is_new_ |= is_first || known->second != cpus;
  known->second = cpus;
}

void Originals::save() {
  if (!is_new_) return;
  std::string text;
  for (const auto& [key, cpus] : masks_) text += key + ':' + policy::format_list(cpus) + '\n';
  is_new_ = !replace_file(file_, text, kRecordMode);
}

GuestCpuSet Originals::find(const std::string& key, const GuestCpuSet& online) const {
  const auto known = masks_.find(key);
  const GuestCpuSet left = known == masks_.end() ? GuestCpuSet{} : known->second & online;
  return left.empty() ? online : left;
}

void Originals::clear() {
  masks_.clear();
  is_new_ = false;
  std::error_code none;
  std::filesystem::remove(file_, none);
}

}  // namespace ka::agent
