// SPDX-License-Identifier: Apache-2.0
#include "affinity/cli/map/node_map.hpp"

#include <fmt/core.h>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <utility>

#include "affinity/cli/client/daemon.hpp"
#include "affinity/cli/client/grade.hpp"
#include "affinity/cli/client/interrupted.hpp"
#include "base/json/lookup.hpp"

namespace ka::cli {
namespace {

namespace json = boost::json;

/// By pod and container.
using Key = std::pair<std::string, std::string>;
using Owners = std::map<Key, MapOwner>;

/// Interruptions a second.
constexpr double kWarm = 1, kHot = 100;

/// A, B, ... Z, AA, AB, ...
std::string letter_of(std::size_t number) {
  std::string text;
  for (++number; number > 0; number = (number - 1) / 26) {
    text.insert(text.begin(), static_cast<char>('A' + (number - 1) % 26));
  }
  return text;
}

bool is_reported(const json::value& owner) {
  const bool* flag = base::member(owner, "reported").if_bool();
  return flag == nullptr || *flag;
}

/// kubelet's claim names the pod by its uid, and no container where the pod owns CPUs as a whole.
std::string claim_title(const json::value& owner) {
  if (const std::string claim = text_of(owner, "claim"); !claim.empty())
    return "ResourceClaim " + claim;
  const std::string uid = text_of(owner, "pod"), name = text_of(owner, "name");
  return (uid.empty() ? "" : "pod " + uid) + (uid.empty() || name.empty() ? "" : ", ") +
         (name.empty() ? "" : "container " + name);
}

std::string title_of(const json::value& owner) {
  if (!is_reported(owner)) return claim_title(owner);
  const std::string pod = text_of(owner, "pod_name");
  const std::string name = text_of(owner, "name");
  return (pod.empty() ? text_of(owner, "pod") : pod) + ", container " +
         (name.empty() ? text_of(owner, "container") : name);
}

Key key_of(const json::value& owner) {
  return {text_of(owner, "pod"), text_of(owner, "container")};
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

std::string isolation_of(const json::value& owner) {
  if (flag_of(owner, "isolated")) return "isolated";
  const std::string obstacles = text_of(owner, "obstacles");
  return obstacles.empty() ? "" : "NOT isolated: " + obstacles;
}

/// All its owners are containers whose CPUs the host leaves.
void add_grade(Owners& owners, const json::value& pod) {
  const std::string id = text_of(pod, "id");
  for (auto& [key, owner] : owners) {
    if (key.first == id) owner.grade = grade_text(pod);
  }
}

Owners owners_of(const json::value& node) {
  Owners owners;
  for (const json::value& cpu : array_of(node, "cpus")) {
    for (const json::value& one : array_of(cpu, "owners")) {
      MapOwner& owner = owners[key_of(one)];
      owner.name = title_of(one);
      owner.vm = flag_of(one, "vm");
      owner.reported = is_reported(one);
      owner.isolation = isolation_of(one);
      owner.cpus.add(static_cast<int>(number_of(cpu, "cpu")));
    }
  }
  for (const json::value& cpu : array_of(node, "cpus")) add_vcpus(owners, cpu);
  for (const json::value& pod : array_of(node, "pods")) add_grade(owners, pod);
  std::size_t number = 0;
  for (auto& [key, owner] : owners) owner.letter = letter_of(number++);
  return owners;
}

void add_threads(const json::value& cpu, MapCpu& map) {
  const json::value& threads = base::member(cpu, "threads");
  if (!threads.is_object()) return;
  for (const auto& member : threads.get_object()) {
    const long long number = number_of(threads, member.key());
    map.thread_count += number;
    const std::string_view role(member.key());
    map.threads += fmt::format("{}{} {}", map.threads.empty() ? "" : ", ", number,
                               role == "vcpu" ? "vCPU" : role);
  }
}

/// The use of each CPU, by its number.
std::map<long long, MapCpu> tenants_of(const json::value& node, const Owners& owners) {
  std::map<long long, MapCpu> cpus;
  for (const json::value& cpu : array_of(node, "cpus")) {
    const long long number = number_of(cpu, "cpu");
    MapCpu& map = cpus[number];
    map.cpu = static_cast<int>(number);
    map.shared = flag_of(cpu, "shared");
    for (const json::value& owner : array_of(cpu, "owners")) {
      const auto place = std::distance(owners.begin(), owners.find(key_of(owner)));
      map.owners.push_back(static_cast<std::size_t>(place));
    }
    for (const json::value& vcpu : array_of(cpu, "vcpus")) {
      map.vcpu += fmt::format("{}vCPU {}", map.vcpu.empty() ? "" : ", ", number_of(vcpu, "vcpu"));
    }
    add_threads(cpu, map);
  }
  for (const InterruptedCpu& cpu : interrupted_of(node)) cpus[cpu.cpu].interrupted = cpu.count;
  return cpus;
}

void add_kind(const json::value& kind, MapHost& host) {
  const std::string name = text_of(kind, "kind");
  const json::array& left = array_of(kind, "left");
  for (const json::value& rest : left) {
    host.rows.push_back(
        {text_of(rest, "cpus"),
         fmt::format("{} {}: {}", name, text_of(rest, "name"), text_of(rest, "why"))});
  }
  const std::string problem = text_of(kind, "problem");
  if (!problem.empty()) host.rows.push_back({"", fmt::format("{}: not seen: {}", name, problem)});
  const long long more = number_of(kind, "left_total") - static_cast<long long>(left.size());
  if (more > 0) host.rows.push_back({"", fmt::format("{}: {} more", name, more)});
}

MapHost host_of(const json::value& node) {
  const json::value& quiet = base::member(node, "quiet");
  MapHost host{.cpus = text_of(quiet, "wanted"), .problem = text_of(quiet, "problem")};
  for (const json::value& kind : array_of(quiet, "kinds")) add_kind(kind, host);
  return host;
}

}  // namespace

int NodeMap::cpu_count() const {
  std::size_t count = 0;
  for (const auto& [socket, nodes] : sockets) {
    for (const auto& [node, caches] : nodes) {
      for (const auto& [cache, cores] : caches) {
        for (const auto& [core, cpus] : cores) count += cpus.size();
      }
    }
  }
  return static_cast<int>(count);
}

NodeMap read_map(const json::value& node) {
  NodeMap map{.shared_pool = text_of(node, "shared_pool"), .observe = flag_of(node, "observe")};
  Owners owners = owners_of(node);
  auto tenants = tenants_of(node, owners);
  for (const json::value& place : array_of(base::member(node, "topology"), "cpus")) {
    const long long number = number_of(place, "cpu");
    MapCpu cpu = std::move(tenants[number]);
    cpu.cpu = static_cast<int>(number);
    const bool* online = base::member(place, "online").if_bool();
    cpu.online = online == nullptr || *online;
    map.sockets[number_of(place, "socket")][number_of(place, "numa")][number_of(place, "l3")]
               [number_of(place, "core")]
                   .push_back(std::move(cpu));
  }
  for (auto& [key, owner] : owners) map.owners.push_back(std::move(owner));
  map.host = host_of(node);
  return map;
}

double MapCpu::heat() const {
  const auto count = static_cast<double>(interrupted.slices + interrupted.interrupts);
  return interrupted.seconds > 0 ? count / interrupted.seconds : 0;
}

std::string_view owner_kind(const MapOwner& owner) {
  if (!owner.reported) return " (not reported by the runtime yet)";
  return owner.vm ? " (VM)" : " (no VM)";
}

std::string sign_of(const NodeMap& map, const MapCpu& cpu) {
  std::string text = std::to_string(cpu.cpu);
  for (const std::size_t owner : cpu.owners) text += map.owners[owner].letter;
  if (cpu.owners.size() > 1) text += '!';
  if (cpu.heat() >= kWarm) text += cpu.heat() >= kHot ? '*' : '+';
  return cpu.online ? text : text + 'x';
}

}  // namespace ka::cli
