// SPDX-License-Identifier: Apache-2.0
#include "affinity/cli/noise/recorder.hpp"

#include <linux/perf_event.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <optional>
#include <string>
#include <utility>

namespace ka::cli::noise {
namespace {

using base::Result;

/// A power of two, as the kernel wants it: some 5,000 events.
constexpr std::size_t kRing = 512u << 10;
constexpr std::chrono::milliseconds kTurn{100};

/// The ring lies behind a page that describes it.
std::size_t page_size() { return static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)); }

perf_event_attr attributes_of(std::uint16_t tracepoint) {
  perf_event_attr attributes{};
  attributes.size = sizeof attributes;
  attributes.type = PERF_TYPE_TRACEPOINT;
  attributes.config = tracepoint;
  attributes.sample_period = 1;
  attributes.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_RAW;
  attributes.disabled = 1;
  attributes.watermark = 1;
  attributes.wakeup_watermark = kRing / 4;
  attributes.use_clockid = 1;
  attributes.clockid = CLOCK_MONOTONIC;
  return attributes;
}

Result<base::Fd> open_event(std::uint16_t tracepoint, int cpu) {
  perf_event_attr attributes = attributes_of(tracepoint);
  const long fd = ::syscall(SYS_perf_event_open, &attributes, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
  if (fd >= 0) return base::Fd(static_cast<int>(fd));
  const std::string what = "cannot record tracepoints of CPU " + std::to_string(cpu);
  if (errno == EACCES || errno == EPERM)
    return base::fail(base::ErrorCode::kInvalid, what + ": run as root (CAP_PERFMON)");
  if (errno == EINVAL || errno == ENODEV)
    return base::fail(base::ErrorCode::kInvalid, what + ": the machine does not have it online");
  return base::fail_errno(errno, what);
}

template <typename T>
T read(std::string_view bytes, std::size_t at) {
  T value{};
  if (at + sizeof value <= bytes.size()) std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

}  // namespace

void Ring::Unmap::operator()(void* memory) const { ::munmap(memory, page_size() + kRing); }

Result<Ring> Ring::map(int event) {
  void* memory = ::mmap(nullptr, page_size() + kRing, PROT_READ | PROT_WRITE, MAP_SHARED, event, 0);
  if (memory == MAP_FAILED) return base::fail_errno(errno, "cannot map a ring of perf events");
  return Ring(memory);
}

std::string_view Ring::copy(std::uint64_t at, std::size_t size) {
  const char* data = static_cast<const char*>(memory_.get()) + page_size();
  const std::size_t begin = at % kRing;
  if (begin + size <= kRing) return {data + begin, size};
  scratch_.assign(data + begin, kRing - begin);
  scratch_.append(data, size - (kRing - begin));
  return scratch_;
}

/// The kernel writes `data_head` after the records before it, and overwrites nothing behind
/// `data_tail` (perf_event_open(2), "MMAP layout").
void Ring::drain(const std::function<void(std::string_view)>& handle) {
  auto* page = static_cast<perf_event_mmap_page*>(memory_.get());
  const std::uint64_t head = std::atomic_ref(page->data_head).load(std::memory_order_acquire);
  std::uint64_t tail = page->data_tail;
  while (tail < head) {
    const auto header = read<perf_event_header>(copy(tail, sizeof(perf_event_header)), 0);
    if (header.size < sizeof header || header.size > head - tail) break;
    handle(copy(tail, header.size));
    tail += header.size;
  }
  std::atomic_ref(page->data_tail).store(head, std::memory_order_release);
}

std::optional<TraceEvent> read_record(const Decoder& decoder, int cpu, std::string_view record) {
  constexpr std::size_t kHeader = sizeof(perf_event_header);
  const auto header = read<perf_event_header>(record, 0);
  if (header.type == PERF_RECORD_LOST) {
    // struct { header; u64 id; u64 lost; }
    return TraceEvent{cpu, {}, 0, Lost{read<std::uint64_t>(record, kHeader + 8)}};
  }
  if (header.type != PERF_RECORD_SAMPLE || record.size() < kHeader + 20) return std::nullopt;
  // struct { header; u32 pid, tid; u64 time; u32 size; char data[size]; }
  const auto tid = read<std::int32_t>(record, kHeader + 4);
  const Nanoseconds at(read<std::int64_t>(record, kHeader + 8));
  const auto size = read<std::uint32_t>(record, kHeader + 16);
  return decoder.decode(cpu, at, tid, record.substr(kHeader + 20, size));
}

Result<Recorder> Recorder::open(const Decoder& decoder, const base::Clock& clock,
                                const std::set<int>& cpus) {
  Recorder recorder(decoder, clock);
  for (const int cpu : cpus) {
    auto source = recorder.open_cpu(cpu);
    if (!source) return unexpected(source.error());
    recorder.sources_.push_back(std::move(*source));
  }
  return recorder;
}

Result<Recorder::Source> Recorder::open_cpu(int cpu) const {
  std::vector<base::Fd> events;
  for (const std::uint16_t id : decoder_->ids()) {
    auto event = open_event(id, cpu);
    if (!event) return unexpected(event.error());
    events.push_back(std::move(*event));
  }
  auto ring = Ring::map(events.front().get());
  if (!ring) return unexpected(ring.error());
  for (std::size_t i = 1; i < events.size(); ++i) {
    if (::ioctl(events[i].get(), PERF_EVENT_IOC_SET_OUTPUT, events.front().get()) != 0) {
      return base::fail_errno(errno, "cannot record tracepoints into one ring");
    }
  }
  return Source{cpu, std::move(events), std::move(*ring)};
}

void Recorder::control(unsigned long request) const {
  for (const Source& source : sources_) {
    for (const base::Fd& event : source.events) ::ioctl(event.get(), request, 0);
  }
}

Nanoseconds Recorder::start() {
  control(PERF_EVENT_IOC_ENABLE);
  return now();
}

void Recorder::record(std::chrono::nanoseconds time,
                      const std::function<void(const TraceEvent&)>& handle) {
  std::vector<pollfd> rings;
  for (const Source& source : sources_) rings.push_back({source.events.front().get(), POLLIN, 0});
  const Nanoseconds end = now() + time;
  for (Nanoseconds left = time; left > Nanoseconds::zero(); left = end - now()) {
    const auto wait =
        std::chrono::ceil<std::chrono::milliseconds>(std::min<Nanoseconds>(left, kTurn));
    const int ready = ::poll(rings.data(), rings.size(), static_cast<int>(wait.count()));
    if (ready < 0 && errno != EINTR) return;
    drain(handle);
  }
}

Nanoseconds Recorder::stop(const std::function<void(const TraceEvent&)>& handle) {
  control(PERF_EVENT_IOC_DISABLE);
  drain(handle);
  return now();
}

void Recorder::drain(const std::function<void(const TraceEvent&)>& handle) {
  for (Source& source : sources_) {
    source.ring.drain([&](std::string_view record) {
      if (const auto event = read_record(*decoder_, source.cpu, record)) handle(*event);
    });
  }
}

}  // namespace ka::cli::noise
