// SPDX-License-Identifier: Apache-2.0
// Measures wake-up latencies: a process with a thread on each CPU, so that the agent's own loop
// goes on.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/fd.hpp"
#include "guest-agent/protocol/latency.hpp"

namespace ka::agent {

class LatencyMeter {
 public:
  /// A CPU of the guest, and its hardware id.
  struct Target {
    int cpu = 0;
    std::uint64_t hardware_id = 0;
  };

  explicit LatencyMeter(std::filesystem::path proc) : proc_(std::move(proc)) {}
  LatencyMeter(const LatencyMeter&) = delete;
  LatencyMeter& operator=(const LatencyMeter&) = delete;
  /// Ends what is being measured.
  ~LatencyMeter();

  /// A number for this measurement; absent: another one goes on, or there is no process to be had.
  /// `cpusets`: where these are mounted; empty: there are none. It measures in the root cgroup: as
  /// a service the agent is kept off the CPUs of containers.
  std::optional<std::uint64_t> start(const std::vector<Target>& targets,
                                     const guest::LatencyRequest& request,
                                     const std::filesystem::path& cpusets);

  /// Readable when there is something to read(); below 0: nothing is being measured.
  int fd() const { return pipe_.get(); }
  /// True when a measurement has ended.
  bool read();

  /// The encoded guest::Latencies of a measurement that has ended; empty: it failed. Absent: it is
  /// not the last one, or goes on.
  std::optional<std::string> result(std::uint64_t number) const;

 private:
  void end();

  std::filesystem::path proc_;
  std::uint64_t number_ = 0;
  pid_t process_ = 0;
  base::Fd pipe_;
  std::string text_;
};

}  // namespace ka::agent
