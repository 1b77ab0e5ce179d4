// SPDX-License-Identifier: Apache-2.0
#include "guest-agent/protocol/notice.hpp"

#include <algorithm>
#include <string_view>

namespace ka::guest {
namespace {

std::string quote(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c >= ' ' && c <= '~' ? c : '?';  // as the protocol passes text on
  }
  return out + '"';
}

const char* word(bool value) { return value ? "true" : "false"; }

std::string cpu_text(const policy::GuestCpu& cpu, const policy::GuestSpec& spec) {
  std::string text = "{\"cpu\":" + std::to_string(cpu.number);
  if (cpu.hardware_id) text += ",\"apic_id\":" + std::to_string(*cpu.hardware_id);
  text += std::string(",\"online\":") + word(cpu.online);
  const auto vcpu = std::ranges::find_if(spec.vcpus, [&cpu](const policy::GuestVcpu& candidate) {
    return candidate.hardware_id == cpu.hardware_id;
  });
  if (vcpu != spec.vcpus.end()) {
    text += ",\"vcpu\":" + std::to_string(vcpu->index) +
            ",\"host_cpus\":" + quote(policy::format_list(vcpu->cpus)) +
            ",\"host_nodes\":" + quote(policy::format_list(vcpu->nodes)) +
            ",\"dedicated\":" + word(vcpu->dedicated);
  }
  return text + '}';
}

std::string container_text(const policy::GuestContainer& container,
                           const policy::GuestReport& report) {
  const auto state =
      std::ranges::find(report.containers, container.id, &policy::GuestContainerState::id);
  const auto cpus = state == report.containers.end() ? policy::GuestCpuSet{} : state->wanted;
  return "{\"id\":" + quote(container.id) + ",\"name\":" + quote(container.name) +
         ",\"cpus\":" + quote(policy::format_list(cpus)) +
         ",\"dedicated\":" + word(container.dedicated) + '}';
}

template <typename List, typename ToText>
std::string array(const List& list, ToText to_text) {
  std::string text = "[";
  for (const auto& element : list) text += (text.size() > 1 ? "," : "") + to_text(element);
  return text + ']';
}

}  // namespace

std::string notice_text(const policy::GuestSpec& spec, const policy::GuestReport& report) {
  return "{\"version\":1,\"common\":" + quote(policy::format_list(report.common)) +
         ",\"cpus\":" + array(report.cpus, [&](const auto& cpu) { return cpu_text(cpu, spec); }) +
         ",\"containers\":" +
         array(spec.containers,
               [&](const auto& container) { return container_text(container, report); }) +
         "}\n";
}

}  // namespace ka::guest
