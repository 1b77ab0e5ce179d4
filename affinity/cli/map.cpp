// The node in a terminal: cores in brackets, each CPU with the letter of its owner, and what the
// letters mean.
#include <fmt/core.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <map>
#include <tuple>
#include <vector>

#include "affinity/cli/daemon.hpp"
#include "affinity/cli/describe.hpp"
#include "policy/facts/id_set.hpp"

namespace ka::cli {
namespace {

namespace json = boost::json;
using policy::CpuSet;

constexpr std::size_t kWidth = 80;

/// An exclusive owner of CPUs.
struct Owner {
  std::string name;
  bool vm = false;
  std::string letter;
  CpuSet cpus;
  std::string vcpus;  ///< "2 on CPU 4, 3 on CPU 5"
};

/// By pod and container.
using Owners = std::map<std::pair<std::string, std::string>, Owner>;

/// A, B, ... Z, AA, AB, ...
std::string letter_of(std::size_t number) {
  std::string text;
  for (++number; number > 0; number = (number - 1) / 26) {
    text.insert(text.begin(), static_cast<char>('A' + (number - 1) % 26));
  }
  return text;
}

std::string title_of(const json::value& owner) {
  const std::string pod = text_of(owner, "pod_name");
  const std::string name = text_of(owner, "name");
  return (pod.empty() ? text_of(owner, "pod") : pod) + ", container " +
         (name.empty() ? text_of(owner, "container") : name);
}

void add_vcpus(Owners& owners, const json::value& cpu) {
  for (const json::value& vcpu : array_of(cpu, "vcpus")) {
    const auto found = owners.find({text_of(vcpu, "sandbox"), text_of(vcpu, "container")});
    if (found == owners.end()) continue;
    std::string& text = found->second.vcpus;
    text += fmt::format("{}vCPU {} on {}", text.empty() ? "" : ", ", number_of(vcpu, "vcpu"),
                        number_of(cpu, "cpu"));
  }
}

Owners owners_of(const json::value& node) {
  Owners owners;
  for (const json::value& cpu : array_of(node, "cpus")) {
    for (const json::value& one : array_of(cpu, "owners")) {
      Owner& owner = owners[{text_of(one, "pod"), text_of(one, "container")}];
      owner.name = title_of(one);
      owner.vm = flag_of(one, "vm");
      owner.cpus.add(static_cast<int>(number_of(cpu, "cpu")));
    }
  }
  for (const json::value& cpu : array_of(node, "cpus")) add_vcpus(owners, cpu);
  std::size_t number = 0;
  for (auto& [key, owner] : owners) owner.letter = letter_of(number++);
  return owners;
}

/// "4A", "9" where nobody owns it, "5A!" where two do, "7x" offline.
std::string cpu_text(const Owners& owners, const json::value& place) {
  const int cpu = static_cast<int>(number_of(place, "cpu"));
  std::string text = std::to_string(cpu);
  int times = 0;
  for (const auto& [key, owner] : owners) {
    if (!owner.cpus.contains(cpu)) continue;
    text += owner.letter;
    ++times;
  }
  if (times > 1) text += '!';
  const json::object& fields = place.as_object();
  const auto* online = fields.if_contains("online");
  return online != nullptr && !online->as_bool() ? text + 'x' : text;
}

/// Cores of one L3 cache, side by side, wrapped below the first.
std::string cache_text(const std::string& head, const std::map<long long, std::string>& cores) {
  std::size_t width = 0;
  for (const auto& [core, text] : cores) width = std::max(width, text.size() + 2);
  std::string text, line = head;
  for (const auto& [core, cpus] : cores) {
    if (line.size() > head.size() && line.size() + 1 + width > kWidth) {
      text += line.substr(0, line.find_last_not_of(' ') + 1) + '\n';
      line.assign(head.size(), ' ');
    }
    line += fmt::format(" {:<{}}", '[' + cpus + ']', width);
  }
  return text + line.substr(0, line.find_last_not_of(' ') + 1) + '\n';
}

std::string picture(const json::value& node, const Owners& owners) {
  using Place = std::tuple<long long, long long, long long>;  // socket, node, L3
  std::map<Place, std::map<long long, std::string>> caches;
  const auto* topology = node.as_object().if_contains("topology");
  for (const json::value& cpu : array_of(topology == nullptr ? node : *topology, "cpus")) {
    std::string& core = caches[{number_of(cpu, "socket"), number_of(cpu, "numa"),
                                number_of(cpu, "l3")}][number_of(cpu, "core")];
    core += (core.empty() ? "" : " ") + cpu_text(owners, cpu);
  }
  std::string text;
  for (const auto& [place, cores] : caches) {
    const auto& [socket, numa, l3] = place;
    text += cache_text(fmt::format("socket {} node {} L3 {}:", socket, numa, l3), cores);
  }
  return text;
}

std::string legend(const Owners& owners) {
  std::string text;
  for (const auto& [key, owner] : owners) {
    text += fmt::format("  {:<3} {:<12} {} ({})\n", owner.letter, policy::format_list(owner.cpus),
                        owner.name, owner.vm ? "VM" : "no VM");
    if (!owner.vcpus.empty()) text += fmt::format("  {:<3} {:<12} {}\n", "", "", owner.vcpus);
  }
  return text;
}

/// "3 emulator, 2 vcpu": what may run on a CPU.
std::string threads_text(const json::value& cpu) {
  std::string text;
  const auto* threads = cpu.as_object().if_contains("threads");
  if (threads == nullptr || !threads->is_object()) return text;
  for (const auto& member : threads->get_object()) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", number_of(*threads, member.key()),
                        std::string_view(member.key()));
  }
  return text;
}

/// CPUs on which the same threads may run, together.
std::string loads(const json::value& node) {
  std::vector<std::pair<std::string, CpuSet>> groups;
  for (const json::value& cpu : array_of(node, "cpus")) {
    const std::string text = threads_text(cpu);
    if (text.empty()) continue;
    auto found = std::ranges::find(groups, text, &std::pair<std::string, CpuSet>::first);
    if (found == groups.end()) found = groups.insert(groups.end(), {text, {}});
    found->second.add(static_cast<int>(number_of(cpu, "cpu")));
  }
  std::string text;
  for (const auto& [threads, cpus] : groups) {
    text += fmt::format("  {:<16} {}\n", policy::format_list(cpus), threads);
  }
  return text.empty() ? text : "\nthreads of sandboxes that may run on each CPU\n" + text;
}

}  // namespace

std::string describe_node(const json::value& node) {
  const Owners owners = owners_of(node);
  const std::string shared = text_of(node, "shared_pool");
  std::string text = picture(node, owners) + "\n  ";
  text += fmt::format("{:<3} {:<12} shared pool\n", "-", shared.empty() ? "-" : shared);
  return text + legend(owners) + loads(node);
}

}  // namespace ka::cli
