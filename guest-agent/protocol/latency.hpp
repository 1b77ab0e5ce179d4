// SPDX-License-Identifier: Apache-2.0
// Wake-up latencies as measured inside a guest: how much later than asked a sleeping thread ran.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ka::guest {

inline constexpr std::chrono::seconds kLongestMeasurement{50};
inline constexpr std::chrono::microseconds kShortestInterval{100}, kLongestInterval{100000};
inline constexpr std::size_t kMaxMeasuredCpus = 64;

/// What to measure.
struct LatencyRequest {
  std::chrono::milliseconds duration{10000};
  std::chrono::microseconds interval{1000};  ///< between two wake-ups of a thread
  std::vector<std::uint64_t> hardware_ids;   ///< of the CPUs, a thread each

  bool operator==(const LatencyRequest&) const = default;
};

/// Latencies by size, in buckets at most a sixteenth wide: exact below 32 ns.
class LatencyHistogram {
 public:
  /// A latency of a minute has the last bucket, as has every longer one.
  static constexpr std::uint32_t kBuckets = 528;

  static std::uint32_t bucket_of(std::uint64_t nanoseconds);
  /// The longest latency of a bucket, in nanoseconds.
  static std::uint64_t end_of(std::uint32_t bucket);

  void add(std::uint64_t nanoseconds) { ++counts_[bucket_of(nanoseconds)]; }
  void set(std::uint32_t bucket, std::uint64_t count) { counts_[bucket] = count; }
  const std::map<std::uint32_t, std::uint64_t>& counts() const { return counts_; }
  std::uint64_t total() const;
  /// The latency that this share of all (0 to 1) does not exceed, rounded up to the end of its
  /// bucket, in nanoseconds; 0 where there are none.
  std::uint64_t percentile(double share) const;

  bool operator==(const LatencyHistogram&) const = default;

 private:
  std::map<std::uint32_t, std::uint64_t> counts_;  ///< by bucket; none is 0
};

struct CpuLatency {
  std::uint64_t hardware_id = 0;
  std::uint64_t longest = 0;  ///< nanoseconds
  /// Nanoseconds that the hypervisor kept the CPU from running though it had work (steal time), as
  /// the guest's kernel counts them: in hundredths of a second. 0 also where it does not.
  std::uint64_t stolen = 0;
  LatencyHistogram latencies;

  bool operator==(const CpuLatency&) const = default;
};

struct Latencies {
  bool realtime = false;  ///< measured with SCHED_FIFO: the workload's own threads do not count
  std::vector<CpuLatency> cpus;

  bool operator==(const Latencies&) const = default;
};

std::string encode(const LatencyRequest& request);
std::string encode(const Latencies& latencies);
/// Absent for what is malformed or beyond the limits.
std::optional<LatencyRequest> decode_latency_request(std::string_view bytes);
std::optional<Latencies> decode_latencies(std::string_view bytes);

}  // namespace ka::guest
