// SPDX-License-Identifier: Apache-2.0
#include "shim-ext/proxy/program.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string_view>
#include <utility>

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

std::optional<std::filesystem::path> below_path(const std::string& name) {
  const char* path = std::getenv("PATH");
  std::string_view rest = path == nullptr ? "" : path;
  std::vector<std::filesystem::path> directories;
  while (!rest.empty()) {
    const auto end = std::min(rest.find(':'), rest.size());
    if (rest.starts_with('/')) directories.emplace_back(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return base::find_program(name, directories);
}

std::optional<std::filesystem::path> beside_us(const std::string& name) {
  const auto self = base::read_link("/proc/self/exe");
  if (!self) return std::nullopt;
  const std::array directories = {std::filesystem::path(*self).parent_path()};
  return base::find_program(name, directories);
}

}  // namespace

base::Result<std::string> find_program(const std::string& name) {
  if (name.starts_with('/')) {
    if (base::is_program(name)) return name;
  } else if (const auto file = below_path(name)) {
    return *file;
  } else if (const auto near = beside_us(name)) {
    return *near;
  }
  return base::fail(ErrorCode::kGone,
                    "real shim " + name + " not found (key real_shim in [affinity])");
}

base::Error become(const std::string& program, const std::vector<std::string>& arguments) {
  ::execv(program.c_str(), argv_of(program, arguments).data());
  return base::system_error(errno, program);
}

base::Result<base::Ended> run(const std::string& program,
                              const std::vector<std::string>& arguments) {
  std::vector<std::string> words{program};
  words.insert(words.end(), arguments.begin(), arguments.end());
  // containerd waits for the shim as long as it sees fit, and so do we.
  return base::run_program({.file = program, .words = std::move(words), .wait_limit = {}});
}

void end_like(int status) {
  if (WIFSIGNALED(status)) {
    ::signal(WTERMSIG(status), SIG_DFL);
    ::raise(WTERMSIG(status));
  }
  ::_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
}

}  // namespace ka::proxy
