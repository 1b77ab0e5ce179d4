// SPDX-License-Identifier: Apache-2.0
#include "guest-agent/agent/placed_record.hpp"

#include <algorithm>
#include <optional>
#include <string_view>
#include <system_error>

#include "guest-agent/agent/files.hpp"

namespace ka::agent {
namespace {

/// "2-3<tab>200000 100000<tab>/sys/fs/cgroup/..."
std::optional<PlacedCgroup> parse_placed(std::string_view line) {
  const std::size_t first = line.find('\t');
  const std::size_t second = first == std::string_view::npos ? first : line.find('\t', first + 1);
  if (second == std::string_view::npos) return std::nullopt;
  auto cpus = policy::parse_list<policy::GuestCpuTag>(line.substr(0, first));
  const std::filesystem::path directory = line.substr(second + 1);
  if (!cpus || !directory.is_absolute()) return std::nullopt;
  return PlacedCgroup{directory, *std::move(cpus),
                      std::string(line.substr(first + 1, second - first - 1))};
}

std::string line_of(const PlacedCgroup& placed) {
  return policy::format_list(placed.cpus) + '\t' + placed.quota + '\t' + placed.directory.string() +
         '\n';
}

}  // namespace

std::vector<PlacedCgroup> PlacedRecord::load() const {
  std::vector<PlacedCgroup> all;
  const std::string text = read_text(file_).value_or("");
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    if (auto placed = parse_placed(line)) all.push_back(*std::move(placed));
  }
  return all;
}

/// A name with a line's end would be another cgroup's.
void PlacedRecord::save(const std::vector<PlacedCgroup>& placed) {
  std::string text;
  for (const PlacedCgroup& one : placed) {
    if (one.directory.native().find('\n') == std::string::npos) text += line_of(one);
  }
  if (text == written_) return;
  std::error_code failed;
  if (text.empty()) std::filesystem::remove(file_, failed);
  const bool is_done = text.empty() ? !failed : replace_file(file_, text, kRecordMode);
  if (is_done) written_ = std::move(text);
}

}  // namespace ka::agent
