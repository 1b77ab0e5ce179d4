// SPDX-License-Identifier: Apache-2.0
#include "shim-ext/proxy/program.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <string_view>

#include "base/fd.hpp"
#include "base/files.hpp"

namespace ka::proxy {
namespace {

using base::ErrorCode;

/// With `program` before the arguments, as containerd does it.
std::vector<char*> argv_of(const std::string& program, const std::vector<std::string>& arguments) {
  std::vector<char*> argv{const_cast<char*>(program.c_str())};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  return argv;
}

bool runs(const std::string& file) {
  std::error_code ignored;
  return ::access(file.c_str(), X_OK) == 0 && !std::filesystem::is_directory(file, ignored);
}

std::optional<std::string> below_path(const std::string& name) {
  const char* path = std::getenv("PATH");
  std::string_view rest = path == nullptr ? "" : path;
  while (!rest.empty()) {
    const auto end = std::min(rest.find(':'), rest.size());
    if (std::string file = std::string(rest.substr(0, end)) + '/' + name;
        file.starts_with('/') && runs(file)) {
      return file;
    }
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return std::nullopt;
}

std::optional<std::string> beside_us(const std::string& name) {
  const auto self = base::read_link("/proc/self/exe");
  if (!self) return std::nullopt;
  const std::string file = std::filesystem::path(*self).parent_path() / name;
  return runs(file) ? std::optional(file) : std::nullopt;
}

[[noreturn]] void run_child(const std::string& program, const std::vector<char*>& argv, int output,
                            int parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);
  ::dup2(output, STDOUT_FILENO);
  ::execv(program.c_str(), argv.data());
  ::_exit(127);
}

/// At most one block more than kMaxOutput: of what is longer there is more to come.
std::string read_output(int fd) {
  std::string text;
  std::array<char, 4096> block{};
  while (text.size() <= kMaxOutput) {
    const ssize_t got = ::read(fd, block.data(), block.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    text.append(block.data(), static_cast<std::size_t>(got));
  }
  return text;
}

int wait_for(int pid) {
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

}  // namespace

base::Result<std::string> find_program(const std::string& name) {
  if (name.starts_with('/')) {
    if (runs(name)) return name;
  } else if (const auto file = below_path(name)) {
    return *file;
  } else if (const auto near = beside_us(name)) {
    return *near;
  }
  return base::fail(ErrorCode::kGone,
                    "the real shim, " + name + ", is not there ([affinity] real_shim)");
}

base::Error become(const std::string& program, const std::vector<std::string>& arguments) {
  ::execv(program.c_str(), argv_of(program, arguments).data());
  return base::system_error(errno, program);
}

base::Result<Ran> run(const std::string& program, const std::vector<std::string>& arguments) {
  const std::vector<char*> argv = argv_of(program, arguments);
  std::array<int, 2> pipe{};
  if (::pipe2(pipe.data(), O_CLOEXEC) != 0) return base::fail_errno(errno, "pipe");
  const base::Fd output(pipe[0]);
  base::Fd input(pipe[1]);
  const int self = ::getpid();
  const int pid = ::fork();
  if (pid < 0) return base::fail_errno(errno, "fork");
  if (pid == 0) run_child(program, argv, input.get(), self);
  input.reset();
  std::string text = read_output(output.get());
  if (text.size() <= kMaxOutput) return Ran{wait_for(pid), std::move(text)};
  ::kill(pid, SIGKILL);
  wait_for(pid);
  return base::fail(ErrorCode::kInvalid, program + " prints more than " +
                                             std::to_string(kMaxOutput) + " bytes, and was ended");
}

void end_like(int status) {
  if (WIFSIGNALED(status)) {
    ::signal(WTERMSIG(status), SIG_DFL);
    ::raise(WTERMSIG(status));
  }
  ::_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
}

}  // namespace ka::proxy
