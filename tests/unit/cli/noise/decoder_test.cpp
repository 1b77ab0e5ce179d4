// SPDX-License-Identifier: Apache-2.0
#include "affinity/cli/noise/decoder.hpp"

#include "affinity/cli/noise/trace_format.hpp"
#include "tests/catch.hpp"
#include "tests/temp_dir.hpp"
#include "tests/unit/cli/noise/formats.hpp"

using namespace ka;
using namespace ka::cli::noise;
using tests::RecordMaker;

namespace {

TraceFormat format_of(const std::string& text) {
  auto format = TraceFormat::parse(text);
  REQUIRE(format);
  return *std::move(format);
}

/// A kernel that has what is required, but for the scheduler's.
struct Kernel {
  Kernel() {
    write("irq/irq_handler_entry", tests::kIrqFormat);
    write("irq/irq_handler_exit", "ID: 224\n\tfield:int irq;\toffset:8;\tsize:4;\tsigned:1;\n");
    write("irq/softirq_entry", tests::kSoftirqFormat);
    write("irq/softirq_exit", "ID: 222\n\tfield:int vec;\toffset:8;\tsize:4;\tsigned:1;\n");
  }
  void write(const std::string& name, const char* format) const {
    sys.write("kernel/tracing/events/" + name + "/format", format);
  }

  tests::TempDir sys;
};

Decoder decoder() {
  const Kernel kernel;
  kernel.write("sched/sched_switch", tests::kSwitchFormat);
  const auto tracefs = find_tracefs(kernel.sys.path());
  REQUIRE(tracefs);
  auto read = Decoder::read(*tracefs);
  REQUIRE(read);
  return *std::move(read);
}

RecordMaker switch_record() {
  RecordMaker record(372, 64);
  record.put(24, std::int32_t{41}).put(56, std::int32_t{17});
  return record.put_text(8, "CPU 2/KVM").put_text(40, "kworker/4:1");
}

std::optional<TraceEvent> decode(const std::string& bytes) {
  static const Decoder kDecoder = decoder();
  return kDecoder.decode(4, Nanoseconds(1000), 41, bytes);
}

}  // namespace

TEST_CASE("a switch names both tasks") {
  const auto event = decode(switch_record().bytes());
  REQUIRE(event);
  CHECK((event->cpu == 4 && event->at == Nanoseconds(1000) && event->running == 41));
  const auto& change = std::get<Switch>(event->body);
  CHECK((change.from == 41 && change.from_name == "CPU 2/KVM"));
  CHECK((change.to == 17 && change.to_name == "kworker/4:1"));
}

TEST_CASE("an interrupt has its number, and its name behind the record") {
  RecordMaker record(225, 32);
  record.put(8, std::int32_t{36}).put(12, std::uint32_t{14u << 16 | 16u});
  record.put_text(16, "virtio1-req.0");
  const auto event = decode(record.bytes());
  REQUIRE(event);
  const auto& begin = std::get<Begin>(event->body);
  CHECK((begin.cause == Cause{CauseKind::kInterrupt, 36} && begin.name == "virtio1-req.0"));
}

TEST_CASE("a softirq is named by its vector") {
  const auto named = [](std::uint32_t vector) {
    const auto event = decode(RecordMaker(223, 12).put(8, vector).bytes());
    REQUIRE(event);
    return std::get<Begin>(event->body).name;
  };
  CHECK(named(3) == "NET_RX");
  CHECK(named(9) == "RCU");
  CHECK(named(10) == "softirq");
}

TEST_CASE("a record that is cut short, or of another tracepoint, is none") {
  const std::string whole = switch_record().bytes();
  for (std::size_t size = 0; size < 60; ++size) CHECK_FALSE(decode(whole.substr(0, size)));
  CHECK_FALSE(decode(RecordMaker(99, 64).bytes()));
  // A text that would lie outside the record.
  RecordMaker elsewhere(225, 16);
  elsewhere.put(8, std::int32_t{36}).put(12, std::uint32_t{0xffffu << 16 | 0xffffu});
  const auto event = decode(elsewhere.bytes());
  REQUIRE(event);
  CHECK(std::get<Begin>(event->body).name.empty());
}

TEST_CASE("control characters in a task's name are escaped") {
  const auto event = decode(switch_record().put_text(40, "\x1b[2Jevil\n").bytes());
  REQUIRE(event);
  CHECK(std::get<Switch>(event->body).to_name == "\\x1b[2Jevil\\x0a:1");
}

TEST_CASE("numbers of every width, with and without sign") {
  const auto format = format_of(
      "ID: 7\n\tfield:s8 a;\toffset:2;\tsize:1;\tsigned:1;\n"
      "\tfield:u16 b;\toffset:4;\tsize:2;\tsigned:0;\n"
      "\tfield:s64 c;\toffset:8;\tsize:8;\tsigned:1;\n");
  RecordMaker record(7, 16);
  record.put(2, std::int8_t{-1}).put(4, std::uint16_t{65535}).put(8, std::int64_t{-5});
  CHECK(format.number(record.bytes(), "a") == -1);
  CHECK(format.number(record.bytes(), "b") == 65535);
  CHECK(format.number(record.bytes(), "c") == -5);
  CHECK_FALSE(format.number(record.bytes(), "d"));
}

TEST_CASE("what describes no tracepoint is refused") {
  CHECK_FALSE(TraceFormat::parse(""));
  CHECK_FALSE(TraceFormat::parse("ID: 372\n"));
  CHECK_FALSE(TraceFormat::parse("ID: x\n\tfield:int a;\toffset:0;\tsize:4;\tsigned:1;\n"));
  CHECK_FALSE(TraceFormat::parse("ID: 70000\n\tfield:int a;\toffset:0;\tsize:4;\tsigned:1;\n"));
}

TEST_CASE("a kernel without the scheduler's tracepoint is an error, one without vectors is not") {
  CHECK_FALSE(find_tracefs(tests::TempDir().path()));
  const Kernel kernel;
  const auto tracefs = find_tracefs(kernel.sys.path());
  REQUIRE(tracefs);
  CHECK_FALSE(Decoder::read(*tracefs));
  kernel.write("sched/sched_switch", tests::kSwitchFormat);
  const auto read = Decoder::read(*tracefs);
  REQUIRE(read);
  CHECK(read->ids() == std::vector<std::uint16_t>{222, 223, 224, 225, 372});
}
