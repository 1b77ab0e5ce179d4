// SPDX-License-Identifier: Apache-2.0
// Programs as a test runs them: the daemon, the command line, QEMU.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "policy/facts/id_set.hpp"
#include "tests/temp_dir.hpp"

namespace ka::tests {

using Seconds = std::chrono::duration<double>;

/// A process of ours; killed at the end where it still runs. What it prints goes to a file.
class Program {
 public:
  Program(const std::vector<std::string>& arguments, const std::filesystem::path& output);
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  ~Program();

  int pid() const { return pid_; }
  void send(int signal) const;
  bool runs();
  /// Its exit status, or 128 + the signal that ended it; -1 when it does not end in time.
  int wait(Seconds limit = Seconds(10));
  /// The CPU time that it has used, in the kernel's ticks of 10 ms: other load does not change it.
  double cpu_seconds() const;

 private:
  int pid_ = -1;
  int status_ = -1;
};

/// Asks until it holds.
bool eventually(const std::function<bool()>& holds, Seconds limit = Seconds(10));

std::string read_text(const std::filesystem::path& path);

struct Ended {
  int exit = -1;
  std::string out;  ///< standard output and standard error
};

/// A VM that never runs a guest: `vcpus` vCPUs (one more can be plugged), an iothread, two
/// monitors: one for the daemon, one for the test.
class Vm {
 public:
  Vm(const std::filesystem::path& directory, int vcpus);

  /// Whether there are two CPUs and a QEMU for it; says why not.
  static bool possible();

  int pid() const { return program_.pid(); }
  std::string monitor() const { return (directory_ / "qmp").string(); }
  void kill() const { program_.send(9); }
  void plug_vcpu();

  /// Thread ids by name ("CPU 0/TCG").
  std::vector<std::pair<std::string, int>> threads() const;
  int thread(const std::string& name) const;

 private:
  std::filesystem::path directory_;
  int vcpus_;
  Program program_;
};

/// What the kernel says that a thread may use, read by the test itself.
policy::CpuSet allowed(int tid);

/// Whether we may use two CPUs; says so where we may not.
bool has_two_cpus();

/// A daemon with a socket, a configuration and a state directory of its own.
class DaemonScene {
 public:
  explicit DaemonScene(const std::string& configuration = "drift_check = 1\n");

  std::filesystem::path path(const std::string& name) const { return temp_.path() / name; }
  std::string socket() const { return path("api.sock").string(); }
  /// Lines of [affinity]. Sources of this machine that they do not name are not followed.
  void configure(const std::string& configuration) const;

  std::vector<std::string> command() const;
  /// The next daemons run below another program.
  void wrap(std::vector<std::string> command) { wrapper_ = std::move(command); }
  /// Starts it and waits until it answers.
  void start();
  Program& daemon() { return *daemon_; }
  std::string log() const { return read_text(path("log")); }

  /// Runs kata-affinityctl against it.
  Ended ctl(std::vector<std::string> arguments) const;
  /// Sends bytes over a new connection and returns everything that comes back.
  std::string raw(const std::string& bytes) const;
  /// The value of a metric.
  double metric(const std::string& name) const;

 private:
  TempDir temp_;
  std::vector<std::string> wrapper_;
  std::unique_ptr<Program> daemon_;
};

/// Runs a program to its end.
Ended run(const std::vector<std::string>& arguments, const std::filesystem::path& output);

}  // namespace ka::tests
