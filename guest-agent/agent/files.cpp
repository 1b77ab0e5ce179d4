// SPDX-License-Identifier: Apache-2.0
#include "guest-agent/agent/files.hpp"

#include <algorithm>

#include "base/files.hpp"

namespace ka::agent {
namespace {

constexpr std::size_t kMostBytes = std::size_t{16} << 20;  // cpuinfo has some 1.5 KiB a CPU

}  // namespace

std::optional<std::string> read_text(const std::filesystem::path& path) {
  auto text = base::read_regular_file(path, kMostBytes);
  if (!text) return std::nullopt;
  if (text->ends_with('\n')) text->pop_back();
  return std::move(*text);
}

int write_text(const std::filesystem::path& path, const std::string& text) {
  const auto written = base::write_kernel_file(path, text);
  return written ? 0 : written.error().number;
}

bool replace_file(const std::filesystem::path& path, const std::string& text, mode_t mode) {
  std::error_code none;
  std::filesystem::create_directories(path.parent_path(), none);
  return base::write_atomically(path, text, mode).has_value();
}

std::vector<std::string> list_names(const std::filesystem::path& path) {
  return base::list_directory(path).value_or(std::vector<std::string>{});
}

std::vector<std::string> list_directories(const std::filesystem::path& path) {
  return base::list_subdirectories(path).value_or(std::vector<std::string>{});
}

std::optional<long long> parse_number(std::string_view text) {
  const auto number = base::parse_number(text);
  return number ? std::optional(*number) : std::nullopt;
}

std::vector<int> read_numbers(const std::filesystem::path& path) {
  std::vector<int> numbers;
  const std::string text = read_text(path).value_or("");
  for (std::string_view rest = text; !rest.empty();) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    if (const auto number = parse_number(rest.substr(0, end))) {
      numbers.push_back(static_cast<int>(*number));
    }
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return numbers;
}

std::vector<int> list_numbers(const std::filesystem::path& path) {
  return base::list_numbers(path).value_or(std::vector<int>{});
}

}  // namespace ka::agent
