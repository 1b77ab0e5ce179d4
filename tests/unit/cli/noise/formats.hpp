// SPDX-License-Identifier: Apache-2.0
// Descriptions of tracepoints as Linux 6.12 writes them, and records that fit them.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>

namespace ka::tests {

inline constexpr const char* kSwitchFormat = R"(name: sched_switch
ID: 372
format:
	field:unsigned short common_type;	offset:0;	size:2;	signed:0;
	field:int common_pid;	offset:4;	size:4;	signed:1;

	field:char prev_comm[16];	offset:8;	size:16;	signed:0;
	field:pid_t prev_pid;	offset:24;	size:4;	signed:1;
	field:int prev_prio;	offset:28;	size:4;	signed:1;
	field:long prev_state;	offset:32;	size:8;	signed:1;
	field:char next_comm[16];	offset:40;	size:16;	signed:0;
	field:pid_t next_pid;	offset:56;	size:4;	signed:1;
	field:int next_prio;	offset:60;	size:4;	signed:1;

print fmt: "prev_comm=%s ==> next_comm=%s", REC->prev_comm, REC->next_comm
)";

inline constexpr const char* kIrqFormat = R"(name: irq_handler_entry
ID: 225
format:
	field:unsigned short common_type;	offset:0;	size:2;	signed:0;

	field:int irq;	offset:8;	size:4;	signed:1;
	field:__data_loc char[] name;	offset:12;	size:4;	signed:0;
)";

inline constexpr const char* kSoftirqFormat = R"(name: softirq_entry
ID: 223
format:
	field:unsigned short common_type;	offset:0;	size:2;	signed:0;

	field:unsigned int vec;	offset:8;	size:4;	signed:0;
)";

/// A record of zeros of this type.
class RecordMaker {
 public:
  RecordMaker(std::uint16_t type, std::size_t size) : bytes_(size, '\0') { put(0, type); }

  template <typename T>
  RecordMaker& put(std::size_t at, T value) {
    std::memcpy(bytes_.data() + at, &value, sizeof value);
    return *this;
  }
  RecordMaker& put_text(std::size_t at, const std::string& text) {
    bytes_.replace(at, text.size(), text);
    return *this;
  }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

}  // namespace ka::tests
