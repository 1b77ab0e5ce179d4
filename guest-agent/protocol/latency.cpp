// SPDX-License-Identifier: Apache-2.0
#include "guest-agent/protocol/latency.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <utility>

#include "base/ttrpc/wire.hpp"

namespace ka::guest {
namespace {

using ttrpc::Field;
using ttrpc::read_fields;
using ttrpc::Writer;

constexpr int kDigits = 5;  ///< significant bits of a latency
/// Of nanoseconds and of counts: no guest needs more, and no sum of them overflows.
constexpr std::uint64_t kMostOf = std::uint64_t{1} << 40;

bool read(const Field& field, std::uint64_t& into, std::uint64_t most) {
  into = field.value;
  return !field.is_bytes && field.value <= most;
}

/// Ascending: a bucket comes once, and is not empty.
bool read_bucket(std::string_view bytes, CpuLatency& cpu) {
  std::uint64_t bucket = 0, count = 0;
  const bool good = read_fields(bytes, [&](const Field& field) {
    if (field.number == 1) return read(field, bucket, LatencyHistogram::kBuckets - 1);
    return field.number != 2 || read(field, count, kMostOf);
  });
  const auto& known = cpu.latencies.counts();
  if (!good || count == 0 || (!known.empty() && known.rbegin()->first >= bucket)) return false;
  cpu.latencies.set(static_cast<std::uint32_t>(bucket), count);
  return true;
}

bool read_cpu(std::string_view bytes, CpuLatency& cpu) {
  constexpr std::uint64_t kAny = std::numeric_limits<std::uint64_t>::max();
  return read_fields(bytes, [&cpu](const Field& field) {
    switch (field.number) {
      case 1:
        return read(field, cpu.hardware_id, kAny);
      case 2:
        return read(field, cpu.longest, kMostOf);
      case 3:
        return read(field, cpu.stolen, kMostOf);
      case 4:
        return field.is_bytes && read_bucket(field.bytes, cpu);
      default:
        return true;
    }
  });
}

std::string encode(const CpuLatency& cpu) {
  Writer out;
  out.number(1, cpu.hardware_id);
  out.number(2, cpu.longest);
  out.number(3, cpu.stolen);
  for (const auto& [bucket, count] : cpu.latencies.counts()) {
    Writer one;
    one.number(1, bucket);
    one.number(2, count);
    out.message(4, one.release());
  }
  return out.release();
}

template <typename Unit>
bool is_between(Unit shortest, Unit value, Unit longest) {
  return shortest <= value && value <= longest;
}

}  // namespace

std::uint32_t LatencyHistogram::bucket_of(std::uint64_t nanoseconds) {
  const int shift = std::max(static_cast<int>(std::bit_width(nanoseconds)) - kDigits, 0);
  const auto bucket = (static_cast<std::uint64_t>(shift) << (kDigits - 1)) + (nanoseconds >> shift);
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(bucket, kBuckets - 1));
}

std::uint64_t LatencyHistogram::end_of(std::uint32_t bucket) {
  constexpr std::uint32_t kHalf = 1U << (kDigits - 1);
  if (bucket < 2 * kHalf) return bucket;
  const std::uint32_t shift = bucket / kHalf - 1;
  const std::uint64_t leading = bucket % kHalf + kHalf;
  return ((leading + 1) << shift) - 1;
}

std::uint64_t LatencyHistogram::total() const {
  std::uint64_t total = 0;
  for (const auto& [bucket, count] : counts_) total += count;
  return total;
}

std::uint64_t LatencyHistogram::percentile(double share) const {
  const auto wanted = static_cast<std::uint64_t>(
      std::ceil(std::clamp(share, 0.0, 1.0) * static_cast<double>(total())));
  std::uint64_t below = 0;
  for (const auto& [bucket, count] : counts_) {
    below += count;
    if (below >= wanted) return end_of(bucket);
  }
  return 0;
}

std::string encode(const LatencyRequest& request) {
  Writer out;
  out.number(1, static_cast<std::uint64_t>(request.duration.count()));
  out.number(2, static_cast<std::uint64_t>(request.interval.count()));
  for (const std::uint64_t id : request.hardware_ids) out.present(3, id);
  return out.release();
}

std::string encode(const Latencies& latencies) {
  Writer out;
  out.number(1, latencies.realtime ? 1 : 0);
  for (const CpuLatency& cpu : latencies.cpus) out.message(2, encode(cpu));
  return out.release();
}

std::optional<LatencyRequest> decode_latency_request(std::string_view bytes) {
  std::uint64_t duration = 0, interval = 0;
  LatencyRequest request;
  const bool good = read_fields(bytes, [&](const Field& field) {
    if (field.number == 1) return read(field, duration, kMostOf);
    if (field.number == 2) return read(field, interval, kMostOf);
    if (field.number != 3) return true;
    request.hardware_ids.push_back(field.value);
    return !field.is_bytes && request.hardware_ids.size() <= kMaxMeasuredCpus;
  });
  request.duration = std::chrono::milliseconds(duration);
  request.interval = std::chrono::microseconds(interval);
  using std::chrono::milliseconds;
  if (!good || request.hardware_ids.empty() ||
      !is_between(milliseconds(1), request.duration, milliseconds(kLongestMeasurement)) ||
      !is_between(kShortestInterval, request.interval, kLongestInterval)) {
    return std::nullopt;
  }
  return request;
}

std::optional<Latencies> decode_latencies(std::string_view bytes) {
  Latencies latencies;
  const bool good = read_fields(bytes, [&latencies](const Field& field) {
    if (field.number == 1) {
      latencies.realtime = field.value == 1;
      return !field.is_bytes && field.value <= 1;
    }
    if (field.number != 2) return true;
    if (!field.is_bytes || latencies.cpus.size() >= kMaxMeasuredCpus) return false;
    return read_cpu(field.bytes, latencies.cpus.emplace_back());
  });
  return good ? std::optional(std::move(latencies)) : std::nullopt;
}

}  // namespace ka::guest
