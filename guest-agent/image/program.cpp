// SPDX-License-Identifier: Apache-2.0
#include "guest-agent/image/program.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>

#include "base/fd.hpp"

namespace ka::image {
namespace {

using base::ErrorCode;
using base::Fd;
using base::Result;

constexpr std::size_t kMostErrors = 4096;

/// A file without a name that holds `text`, to be read from its beginning.
Result<Fd> memory_file(std::string_view text) {
  Fd fd(::memfd_create("text", MFD_CLOEXEC));
  if (!fd) return base::fail_errno(errno, "memfd_create");
  while (!text.empty()) {
    const ssize_t put = ::write(fd.get(), text.data(), text.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return base::fail_errno(errno, "memfd");
    text.remove_prefix(static_cast<std::size_t>(put));
  }
  if (::lseek(fd.get(), 0, SEEK_SET) < 0) return base::fail_errno(errno, "memfd");
  return fd;
}

/// What a program is started with.
class Actions {
 public:
  Actions() { ::posix_spawn_file_actions_init(&actions_); }
  Actions(const Actions&) = delete;
  Actions& operator=(const Actions&) = delete;
  ~Actions() { ::posix_spawn_file_actions_destroy(&actions_); }

  void use(int fd, int as) { ::posix_spawn_file_actions_adddup2(&actions_, fd, as); }
  void enter(const std::filesystem::path& directory) {
    ::posix_spawn_file_actions_addchdir_np(&actions_, directory.c_str());
  }
  const posix_spawn_file_actions_t* get() const { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_{};
};

/// Its pid.
Result<pid_t> start(const Call& call, const Actions& actions) {
  std::vector<char*> words;
  for (const std::string& word : call.words) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  // Messages that are compared, and no colours.
  std::string locale = "LC_ALL=C";
  // Kata's hosts have administrators' programs where an ordinary PATH may not look.
  std::string path = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
  std::array<char*, 3> environment{locale.data(), path.data(), nullptr};
  pid_t pid = 0;
  for (const char* where : {"/usr/sbin/", "/usr/bin/", "/usr/local/sbin/", "/usr/local/bin/"}) {
    const std::string file = where + call.words.front();
    const int failed =
        ::posix_spawn(&pid, file.c_str(), actions.get(), nullptr, words.data(), environment.data());
    if (failed == 0) return pid;
    if (failed != ENOENT) return base::fail_errno(failed, file);
  }
  return base::fail(ErrorCode::kUnavailable, call.words.front() + " is not installed");
}

/// False when it says more than `most`.
bool read_all(int fd, std::size_t most, std::string& text) {
  std::array<char, 65536> chunk{};
  for (;;) {
    const ssize_t got = ::read(fd, chunk.data(), chunk.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return true;
    if (text.size() + static_cast<std::size_t>(got) > most) return false;
    text.append(chunk.data(), static_cast<std::size_t>(got));
  }
}

int wait_for(pid_t pid) {
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

std::string Ended::complaint() const {
  const std::size_t end = err.find_last_not_of('\n');
  if (end == std::string::npos) return "it ended with status " + std::to_string(status);
  const std::size_t begin = err.rfind('\n', end);
  const std::size_t from = begin == std::string::npos ? 0 : begin + 1;
  return err.substr(from, end + 1 - from);
}

Result<Ended> run(const Call& call) {
  auto input = memory_file(call.input);
  if (!input) return unexpected(input.error());
  auto errors = memory_file({});
  if (!errors) return unexpected(errors.error());
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return base::fail_errno(errno, "pipe");
  const Fd from(ends[0]);
  Fd to(ends[1]);
  Actions actions;
  actions.use(input->get(), STDIN_FILENO);
  actions.use(to.get(), STDOUT_FILENO);
  actions.use(errors->get(), STDERR_FILENO);
  if (!call.directory.empty()) actions.enter(call.directory);
  const auto pid = start(call, actions);
  if (!pid) return unexpected(pid.error());
  to.reset();
  Ended ended;
  const bool whole = read_all(from.get(), call.most, ended.out);
  if (!whole) ::kill(*pid, SIGKILL);
  ended.status = wait_for(*pid);
  if (!whole) {
    return base::fail(ErrorCode::kInvalid,
                      "it unpacks to more than " + std::to_string(call.most >> 20) + " MiB");
  }
  ended.err.resize(kMostErrors);
  const ssize_t got = ::pread(errors->get(), ended.err.data(), kMostErrors, 0);
  ended.err.resize(got < 0 ? 0 : static_cast<std::size_t>(got));
  return ended;
}

}  // namespace ka::image
