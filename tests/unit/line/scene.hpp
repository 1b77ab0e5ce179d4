// SPDX-License-Identifier: Apache-2.0
// A node with VM sandboxes made of files, a line on it, and what the kernel would make of it.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "affinity/board/board.hpp"
#include "affinity/line/line.hpp"
#include "affinity/line/requests.hpp"
#include "affinity/line/verifier.hpp"
#include "base/log/log.hpp"
#include "tests/fake_calls.hpp"
#include "tests/fake_cpusets.hpp"
#include "tests/fake_node.hpp"
#include "tests/temp_dir.hpp"
#include "tests/test_clock.hpp"

namespace ka::tests {

policy::Topology flat_machine(int cpus);

/// Housekeeping on the sandbox's own CPUs: what moves is then visible in these alone.
line::Options at_home();

/// Thread ids of a VM with main pid P: P is the main thread, P+1 the iothread, P+10+i vCPU i.
class LineScene {
 public:
  explicit LineScene(int cpus = 8, line::Options options = at_home());
  LineScene(const LineScene&) = delete;
  LineScene& operator=(const LineScene&) = delete;
  ~LineScene();

  /// A daemon that died and came back: only files and the kernel know what was.
  void start();

  void boot_vm(int pid, int vcpus);
  /// Two sandboxes, whose VMs have main pids 100 and 200.
  void boot_two(int vcpus, const std::string& first = "a", const std::string& second = "b");
  /// A VM in a cgroup of its own, named after the sandbox, which says nothing about its CPUs yet.
  void boot_pod(const std::string& id, int pid, int vcpus);
  void plug(int pid, int vcpu);

  base::Result<board::Outcome> add(const std::string& id, int pid);
  base::Result<board::Outcome> container(const std::string& sandbox, const std::string& id,
                                         policy::CpuSet cpus, bool exclusive);
  base::Result<board::Outcome> remove(const std::string& sandbox);

  /// What verify finds broken, or could not read.
  std::vector<line::Finding> broken();

  std::string cpus(int tid) const { return policy::format_list(calls.effective(tid)); }
  line::Line& line();
  line::Requests& requests();
  line::Verifier& verifier();
  board::Board& board();
  std::filesystem::path state_dir() const { return temp_.path() / "state"; }

  FakeNode node;
  policy::CpuSet machine;
  policy::Topology topology;  ///< that the next daemon starts with
  FakeCalls calls;
  FakeCpusets cpusets;
  TestClock clock;
  std::vector<std::string> notified;
  std::string log_lines;

 private:
  struct Daemon;

  TempDir temp_;
  std::map<int, std::string> cgroups_;  ///< by pid, of those with one of their own
  line::Options options_;
  log::Log log_;
  std::unique_ptr<Daemon> daemon_;
};

}  // namespace ka::tests
