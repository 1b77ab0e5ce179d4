// SPDX-License-Identifier: Apache-2.0
// What isolation changes: how long each thread of the self-test's VM waits for a CPU while its
// neighbours are busy, without pins and with them.
#pragma once

#include <boost/json/object.hpp>
#include <chrono>
#include <string>
#include <vector>

#include "affinity/cli/selftest/reader.hpp"
#include "policy/facts/id_set.hpp"

namespace ka::cli::selftest {

/// A thread during a period.
struct Sample {
  ThreadSeen thread;  ///< with its mask at the end of the period
  ThreadTime time;    ///< of the period
};

/// The samples of threads that are in both lists: times that passed between two readings.
std::vector<Sample> elapsed(const std::vector<Sample>& begin, const std::vector<Sample>& end);

struct Demonstration {
  std::chrono::seconds period{};
  policy::CpuSet busy;  ///< CPUs that the self-test kept busy
  std::vector<Sample> before;
  std::vector<Sample> after;
};

/// "demo" in the document of `selftest --json`. Threads that are not in both periods are left out.
boost::json::object to_json(const Demonstration& shown);

/// The same as a text table.
std::string describe(const Demonstration& shown);

}  // namespace ka::cli::selftest
