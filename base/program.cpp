// SPDX-License-Identifier: Apache-2.0
#include "base/program.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>

#include "base/fd.hpp"
#include "base/pidfd.hpp"

namespace ka::base {
namespace {

constexpr std::size_t kMostErrors = 4096;
constexpr int kNotExecuted = 127;
constexpr std::chrono::seconds kDeath{1};  ///< that SIGKILL may take

/// A file without a name that holds `text`, to be read from its beginning.
Result<Fd> memory_file(std::string_view text) {
  Fd fd(::memfd_create("text", MFD_CLOEXEC));
  if (!fd) return fail_errno(errno, "memfd_create");
  while (!text.empty()) {
    const ssize_t put = ::write(fd.get(), text.data(), text.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return fail_errno(errno, "memfd");
    text.remove_prefix(static_cast<std::size_t>(put));
  }
  if (::lseek(fd.get(), 0, SEEK_SET) < 0) return fail_errno(errno, "memfd");
  return fd;
}

std::vector<char*> pointers(const std::vector<std::string>& words) {
  std::vector<char*> list;
  for (const std::string& word : words) list.push_back(const_cast<char*>(word.c_str()));
  list.push_back(nullptr);
  return list;
}

/// What a child needs between fork(2) and execve(2), where nothing may be allocated.
struct Child {
  const char* file = nullptr;
  const char* directory = nullptr;  ///< null: it stays
  char* const* arguments = nullptr;
  char* const* environment = nullptr;
  int input = -1, output = -1, errors = -1;  ///< -1: ours
  int parent = 0;
};

[[noreturn]] void execute(const Child& child) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const bool is_orphan = ::getppid() != child.parent;
  if (is_orphan || (child.directory != nullptr && ::chdir(child.directory) != 0)) {
    ::_exit(kNotExecuted);
  }
  if (child.input >= 0) ::dup2(child.input, STDIN_FILENO);
  ::dup2(child.output, STDOUT_FILENO);
  if (child.errors >= 0) ::dup2(child.errors, STDERR_FILENO);
  ::execve(child.file, child.arguments, child.environment);
  ::_exit(kNotExecuted);
}

/// Waits for a descriptor of the program as long as it may run.
Result<void> await(int fd, const Command& command) {
  const Waited waited = wait_for(fd, POLLIN, command.wait_limit);
  if (waited == Waited::kReady) return {};
  return fail(ErrorCode::kTransient,
              command.file.string() + " was terminated: " + reason_of(waited));
}

Result<void> read_all(int fd, const Command& command, std::string& text) {
  std::array<char, 65536> chunk{};
  for (;;) {
    if (auto ready = await(fd, command); !ready) return ready;
    const ssize_t got = ::read(fd, chunk.data(), chunk.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return {};
    if (text.size() + static_cast<std::size_t>(got) > command.most_output) {
      return fail(ErrorCode::kInvalid, command.file.string() + " prints more than " +
                                           std::to_string(command.most_output) +
                                           " bytes and was terminated");
    }
    text.append(chunk.data(), static_cast<std::size_t>(got));
  }
}

int reap(int pid) {
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

/// How it ended, once it was `read`; where that failed, it is ended. One that the kernel does not
/// let go is left behind.
Result<int> finish(int pid, const Command& command, Result<void> read) {
  const Fd pidfd = open_pidfd(pid);
  if (read && pidfd) read = await(pidfd.get(), command);
  if (read) return reap(pid);
  ::kill(pid, SIGKILL);
  if (!pidfd || wait_for(pidfd.get(), POLLIN, WaitLimit::of(kDeath)) == Waited::kReady) reap(pid);
  return unexpected(std::move(read.error()));
}

std::string read_errors(const Fd& file) {
  std::string text(kMostErrors, '\0');
  const ssize_t got = ::pread(file.get(), text.data(), text.size(), 0);
  text.resize(got < 0 ? 0 : static_cast<std::size_t>(got));
  return text;
}

/// What the command's standard input and error are; none: ours.
struct Streams {
  Fd input;
  Fd errors;
};

Result<Streams> open_streams(const Command& command) {
  Streams streams;
  if (command.input) {
    auto input = memory_file(*command.input);
    if (!input) return unexpected(std::move(input.error()));
    streams.input = std::move(*input);
  }
  if (command.catches_errors) {
    auto errors = memory_file({});
    if (!errors) return unexpected(std::move(errors.error()));
    streams.errors = std::move(*errors);
  }
  return streams;
}

/// Its pid.
Result<int> start(const Command& command, const Streams& streams, const Fd& output) {
  const auto arguments = pointers(command.words);
  const auto environment =
      command.environment ? pointers(*command.environment) : std::vector<char*>{};
  const Child child{.file = command.file.c_str(),
                    .directory = command.directory.empty() ? nullptr : command.directory.c_str(),
                    .arguments = arguments.data(),
                    .environment = command.environment ? environment.data() : environ,
                    .input = streams.input ? streams.input.get() : -1,
                    .output = output.get(),
                    .errors = streams.errors ? streams.errors.get() : -1,
                    .parent = ::getpid()};
  const int pid = ::fork();
  if (pid < 0) return fail_errno(errno, "fork");
  if (pid == 0) execute(child);
  return pid;
}

}  // namespace

Result<Ended> run_program(const Command& command) {
  const auto streams = open_streams(command);
  if (!streams) return unexpected(streams.error());
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return fail_errno(errno, "pipe");
  const Fd from(ends[0]);
  Fd to(ends[1]);
  const auto pid = start(command, *streams, to);
  if (!pid) return unexpected(pid.error());
  to.reset();
  Ended ended;
  const auto status = finish(*pid, command, read_all(from.get(), command, ended.output));
  if (!status) return unexpected(status.error());
  ended.status = *status;
  if (streams->errors) ended.errors = read_errors(streams->errors);
  return ended;
}

bool is_program(const std::filesystem::path& file) {
  std::error_code ignored;
  return ::access(file.c_str(), X_OK) == 0 && !std::filesystem::is_directory(file, ignored);
}

std::optional<std::filesystem::path> find_program(
    std::string_view name, std::span<const std::filesystem::path> directories) {
  for (const std::filesystem::path& directory : directories) {
    if (auto file = directory / name; is_program(file)) return file;
  }
  return std::nullopt;
}

}  // namespace ka::base
