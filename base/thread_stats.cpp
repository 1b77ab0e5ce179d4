// SPDX-License-Identifier: Apache-2.0
#include "base/thread_stats.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <string_view>

#include "base/descriptors.hpp"
#include "base/files.hpp"

namespace ka::base {
namespace {

/// The kernel regenerates the line for each read from the beginning (seq_file).
Result<ThreadStat> read_line(const Fd& file, int tid) {
  std::array<char, 2048> line;
  const ssize_t size = ::pread(file.get(), line.data(), line.size(), 0);
  if (size < 0) return fail_errno(errno, "stat line of thread " + std::to_string(tid));
  auto stat = thread_stat_of({line.data(), static_cast<std::size_t>(size)});
  if (stat && stat->tid != tid) return fail(ErrorCode::kInvalid, "stat line of another thread");
  return stat;
}

Fd open_line(const Fd& tasks, int tid) {
  constexpr std::string_view kFile = "/stat";
  std::array<char, 24> name{};
  const auto digits = std::to_chars(name.data(), name.data() + name.size(), tid);
  kFile.copy(digits.ptr, kFile.size());
  return open_file_at(tasks.get(), name.data(), O_RDONLY);
}

/// What is kept open is kept to save time: it is given up first.
bool is_want_of_descriptors(int number) { return number == EMFILE || number == ENFILE; }

}  // namespace

Result<void> ThreadStats::open_tasks(int pid) {
  if (pid_ == pid) return {};
  pid_ = 0;
  tasks_.reset();
  const std::string path = proc_.native() + '/' + std::to_string(pid) + "/task";
  auto tasks = open_directory(path);
  if (!tasks && is_want_of_descriptors(tasks.error().number)) {
    files_.clear();
    tasks = open_directory(path);
  }
  if (!tasks) return unexpected(std::move(tasks.error()));
  tasks_ = std::move(*tasks);
  pid_ = pid;
  return {};
}

Result<std::vector<int>> ThreadStats::threads(int pid) {
  pid_ = 0;  // a listing is read to its end once
  if (const auto opened = open_tasks(pid); !opened) return unexpected(opened.error());
  return list_numbers_at(tasks_.get());
}

Result<ThreadStat> ThreadStats::read(int pid, int tid) {
  if (const auto open = files_.find(tid); open != files_.end()) {
    auto stat = read_line(open->second, tid);
    if (stat) return stat;
    files_.erase(open);
  }
  if (const auto opened = open_tasks(pid); !opened) return unexpected(opened.error());
  return read_anew(tid);
}

Result<ThreadStat> ThreadStats::read_anew(int tid) {
  Fd file = open_line(tasks_, tid);
  if (!file && is_want_of_descriptors(errno)) {
    files_.clear();
    file = open_line(tasks_, tid);
  }
  if (!file) return fail_errno(errno, "stat line of thread " + std::to_string(tid));
  auto stat = read_line(file, tid);
  if (stat && files_.size() < kMostOpen) files_.emplace(tid, std::move(file));
  return stat;
}

}  // namespace ka::base
