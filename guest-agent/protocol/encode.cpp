// SPDX-License-Identifier: Apache-2.0
// Messages as they are written.
#include <algorithm>

#include "base/ttrpc/wire.hpp"
#include "guest-agent/protocol/messages.hpp"

namespace ka::guest {
namespace {

using ttrpc::Writer;

using namespace policy;

std::uint64_t number_of(int value) { return static_cast<std::uint64_t>(std::max(value, 0)); }

/// What the reader would refuse in a name is shown as a question mark, and a long one is cut.
std::string plain(std::string_view text, std::size_t longest) {
  std::string out(text.substr(0, longest));
  std::ranges::replace_if(out, [](char c) { return !is_plain(c); }, '?');
  return out;
}

std::string encode(const GuestVcpu& vcpu) {
  Writer out;
  out.number(1, vcpu.hardware_id);
  out.number(2, number_of(vcpu.index));
  out.text(3, format_list(vcpu.cpus));
  out.text(4, format_list(vcpu.nodes));
  out.number(5, vcpu.dedicated ? 1 : 0);
  out.number(6, vcpu.common ? 1 : 0);
  return out.release();
}

std::string encode(const GuestContainer& container) {
  Writer out;
  out.text(1, container.id);
  out.text(2, plain(container.name, kMaxName * 4));
  for (const std::uint64_t id : container.hardware_ids) out.present(3, id);
  out.number(4, container.dedicated ? 1 : 0);
  out.number(5, container.lift_quota ? 1 : 0);
  return out.release();
}

std::string encode(const GuestCpu& cpu) {
  Writer out;
  out.number(1, number_of(cpu.number));
  if (cpu.hardware_id) out.present(2, *cpu.hardware_id);
  out.number(3, number_of(cpu.socket));
  out.number(4, number_of(cpu.core));
  out.number(5, number_of(cpu.thread));
  out.number(6, number_of(cpu.node));
  out.number(7, cpu.online ? 1 : 0);
  return out.release();
}

std::string encode(const GuestProcess& process) {
  Writer out;
  out.number(1, number_of(process.pid));
  out.text(2, plain(process.name, kMaxName));
  out.number(3, number_of(process.threads));
  out.text(4, format_list(process.cpus));
  return out.release();
}

std::string encode(const GuestContainerState& state) {
  Writer out;
  out.text(1, state.id);
  out.text(2, format_list(state.wanted));
  out.text(3, format_list(state.actual));
  out.number(4, static_cast<std::uint64_t>(state.method));
  out.number(5, static_cast<std::uint64_t>(state.problem));
  out.number(6, number_of(state.threads));
  out.number(7, number_of(state.outside));
  for (const GuestProcess& process : state.processes) out.message(8, encode(process));
  out.number(9, state.quota_lifted ? 1 : 0);
  return out.release();
}

}  // namespace

std::optional<std::uint32_t> common_version(const Hello& ours, const Hello& theirs) {
  const std::uint32_t newest = std::min(ours.version, theirs.version);
  if (newest < std::max(ours.oldest, theirs.oldest)) return std::nullopt;
  return newest;
}

std::string encode(const Hello& hello) {
  Writer out;
  out.number(1, hello.version);
  out.number(2, hello.oldest);
  out.text(3, plain(hello.program, kMaxName));
  return out.release();
}

std::string encode(const GuestSpec& spec) {
  Writer out;
  for (const GuestVcpu& vcpu : spec.vcpus) out.message(1, encode(vcpu));
  for (const GuestContainer& container : spec.containers) out.message(2, encode(container));
  out.number(3, spec.move_interrupts ? 1 : 0);
  out.number(4, spec.release ? 1 : 0);
  out.number(5, spec.halt_poll ? 1 : 0);
  return out.release();
}

std::string encode(const GuestReport& report) {
  Writer out;
  out.number(1, report.generation);
  for (const GuestCpu& cpu : report.cpus) out.message(2, encode(cpu));
  out.text(3, format_list(report.common));
  for (const GuestContainerState& state : report.containers) out.message(4, encode(state));
  out.number(5, number_of(report.interrupts_moved));
  out.number(6, number_of(report.interrupts_stuck));
  out.number(7, number_of(report.kernel_threads_moved));
  out.number(8, number_of(report.kernel_threads_stuck));
  out.number(9, report.services_moved ? 1 : 0);
  out.number(10, static_cast<std::uint64_t>(report.idle));
  return out.release();
}

std::string encode(const ContainerNews& news) {
  Writer writer;
  writer.text(1, news.id);
  writer.number(2, news.stopped ? 1 : 0);
  return writer.release();
}

std::string encode_watch(std::uint64_t generation) {
  Writer out;
  out.number(1, generation);
  return out.release();
}

}  // namespace ka::guest
