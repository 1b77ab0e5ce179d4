#include "guest-agent/agent/files.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <memory>

namespace ka::agent {
namespace {

constexpr std::size_t kMostBytes = std::size_t{1} << 20;

struct CloseDir {
  void operator()(DIR* directory) const { ::closedir(directory); }
};

bool is_directory(const std::filesystem::path& in, const dirent& entry) {
  if (entry.d_type != DT_UNKNOWN) return entry.d_type == DT_DIR;
  struct stat status{};
  return ::lstat((in / entry.d_name).c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

}  // namespace

std::optional<std::string> read_text(const std::filesystem::path& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return std::nullopt;
  std::string text;
  char buffer[4096];
  ssize_t size = 0;
  while (text.size() < kMostBytes && (size = ::read(fd, buffer, sizeof buffer)) > 0) {
    text.append(buffer, static_cast<std::size_t>(size));
  }
  ::close(fd);
  if (size < 0) return std::nullopt;
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

int write_text(const std::filesystem::path& path, const std::string& text) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_TRUNC);
  if (fd < 0) return errno;
  const ssize_t written = ::write(fd, text.data(), text.size());
  const int error = written < 0 ? errno : 0;
  ::close(fd);
  return error;
}

int replace_file(const std::filesystem::path& path, const std::string& text) {
  std::error_code failed;
  std::filesystem::create_directories(path.parent_path(), failed);
  const std::string fresh = path.string() + ".new";
  const int fd = ::open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
  if (fd < 0) return errno;
  const ssize_t written = ::write(fd, text.data(), text.size());
  const bool whole = written == static_cast<ssize_t>(text.size());
  ::close(fd);
  if (!whole) return EIO;
  return ::rename(fresh.c_str(), path.c_str()) == 0 ? 0 : errno;
}

std::vector<std::string> list_names(const std::filesystem::path& path, bool directories) {
  std::vector<std::string> names;
  const std::unique_ptr<DIR, CloseDir> directory(::opendir(path.c_str()));
  if (!directory) return names;
  while (const dirent* entry = ::readdir(directory.get())) {
    const std::string_view name = entry->d_name;
    if (name == "." || name == ".." || (directories && !is_directory(path, *entry))) continue;
    names.emplace_back(name);
  }
  std::ranges::sort(names);
  return names;
}

std::optional<long long> parse_number(std::string_view text) {
  long long value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::vector<int> read_numbers(const std::filesystem::path& path) {
  std::vector<int> numbers;
  const auto text = read_text(path);
  if (!text) return numbers;
  std::string_view rest = *text;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    if (const auto number = parse_number(rest.substr(0, end))) {
      numbers.push_back(static_cast<int>(*number));
    }
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return numbers;
}

std::vector<int> list_numbers(const std::filesystem::path& path) {
  std::vector<int> numbers;
  for (const std::string& name : list_names(path)) {
    if (const auto number = parse_number(name)) numbers.push_back(static_cast<int>(*number));
  }
  std::ranges::sort(numbers);
  return numbers;
}

}  // namespace ka::agent
