// SPDX-License-Identifier: Apache-2.0
// A child process of a benchmark: started, waited for until it says something, ended.
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <string>
#include <vector>

namespace ka::bench {

class Child {
 public:
  /// Its standard input stays open until the Child ends; its standard output is read by wait_line.
  explicit Child(std::vector<std::string> command) {
    std::array<int, 2> in{}, out{};
    if (::pipe2(in.data(), O_CLOEXEC) != 0 || ::pipe2(out.data(), O_CLOEXEC) != 0) ::_exit(2);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::dup2(in[0], STDIN_FILENO);
      ::dup2(out[1], STDOUT_FILENO);
      std::vector<char*> arguments;
      for (std::string& word : command) arguments.push_back(word.data());
      arguments.push_back(nullptr);
      ::execv(arguments[0], arguments.data());
      ::_exit(127);
    }
    ::close(in[0]);
    ::close(out[1]);
    input_ = in[1];
    output_ = out[0];
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    ::close(input_);
    ::close(output_);
    ::kill(pid_, SIGTERM);
    ::waitpid(pid_, nullptr, 0);
  }

  int pid() const { return pid_; }

  /// Blocks until it printed one byte or ended.
  bool wait_output() const {
    char byte = 0;
    return ::read(output_, &byte, 1) == 1;
  }

 private:
  int pid_ = -1;
  int input_ = -1;
  int output_ = -1;
};

}  // namespace ka::bench
