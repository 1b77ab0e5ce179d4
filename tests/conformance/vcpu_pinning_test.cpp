// SPDX-License-Identifier: Apache-2.0
// KubeVirt's table of vCPU placements. Ours need not choose the same CPUs; it has to be at least as
// good: no more guest siblings apart, no more guest cores across NUMA cells, no more cells in use.
#include <algorithm>
#include <iostream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "policy/plan/invariants.hpp"
#include "policy/plan/plan.hpp"
#include "tests/catch.hpp"
#include "tests/conformance/vectors.hpp"

namespace {

using namespace ka::policy;
using namespace ka::policy::plan;
using boost::json::object;
using boost::json::value;

int number(const value& json) { return static_cast<int>(json.as_int64()); }

/// A host core is known by its first sibling, which is unique on the machine.
Topology host_of(const object& row) {
  std::vector<Cpu> cpus;
  int cell = 0;
  for (const value& members : row.at("hostCells").as_array()) {
    for (const value& cpu : members.as_array()) {
      const int core = number(cpu.as_object().at("siblings").as_array().at(0));
      const int id = number(cpu.as_object().at("id"));
      cpus.push_back({.cpu = id, .core = core, .socket = cell, .numa = cell, .l3 = cell});
    }
    ++cell;
  }
  return Topology::make(cpus).value();
}

SandboxFacts sandbox_of(const object& row, int vcpus) {
  SandboxFacts facts{.id = "s"};
  ContainerFacts container{.id = "c", .exclusive = true};
  for (const value& cpu : row.at("cpuSet").as_array()) container.cpus.add(number(cpu));
  facts.containers.push_back(container);
  const int threads = number(row.at("vcpuThreadsPerCore"));
  for (int i = 0; i < vcpus; ++i) {
    facts.vcpus.push_back({.index = i, .core = i / threads, .thread = i % threads});
  }
  return facts;
}

struct Quality {
  int pairs_apart = 0;   ///< guest siblings on different host cores
  int cores_across = 0;  ///< guest cores in more than one cell
  int cells = 0;         ///< cells in use
};

/// `cpus`: the CPU of each vCPU.
Quality quality(const Topology& host, const std::vector<int>& cpus, int threads) {
  Quality result;
  std::set<int> cells;
  std::map<int, std::set<int>> cells_of_core;
  for (std::size_t i = 0; i < cpus.size(); ++i) {
    const Cpu& cpu = *host.find(cpus[i]);
    const int core = static_cast<int>(i) / threads;
    cells.insert(cpu.numa);
    cells_of_core[core].insert(cpu.numa);
    for (std::size_t k = i + 1; k < cpus.size() && static_cast<int>(k) / threads == core; ++k) {
      if (host.find(cpus[k])->core != cpu.core) ++result.pairs_apart;
    }
  }
  for (const auto& [core, used] : cells_of_core) result.cores_across += used.size() > 1 ? 1 : 0;
  result.cells = static_cast<int>(cells.size());
  return result;
}

std::vector<int> our_cpus(const Topology& host, const SandboxFacts& facts) {
  const NodeView node{host, {}, {}, {}};
  const SandboxPlan plan = plan_sandbox(node, facts, {}, nullptr);
  CHECK(check_plan(node, facts, {}, plan).empty());
  std::vector<int> cpus;
  for (const VcpuPlan& vcpu : plan.vcpus) {
    CHECK(vcpu.role == VcpuRole::kDedicated);
    cpus.push_back(vcpu.cpus.first());
  }
  return cpus;
}

void replay(const object& row) {
  const int threads = number(row.at("vcpuThreadsPerCore"));
  const Topology host = host_of(row);
  const bool strict_fails = row.contains("expectError");
  std::vector<int> theirs;
  if (!strict_fails) {
    for (const value& cpu : row.at("expect").as_array()) theirs.push_back(number(cpu));
  }
  const int vcpus =
      strict_fails ? threads * number(row.at("vcpuCores")) : static_cast<int>(theirs.size());
  const Quality ours = quality(host, our_cpus(host, sandbox_of(row, vcpus)), threads);
  if (strict_fails) {
    CHECK(ours.cores_across > 0);  // it was impossible for us, too, and we went on
    return;
  }
  const Quality known = quality(host, theirs, threads);
  CHECK(ours.pairs_apart <= known.pairs_apart);
  CHECK(ours.cores_across <= known.cores_across);
  CHECK(ours.cells <= known.cells);
}

}  // namespace

TEST_CASE("vCPU placement is at least as good as KubeVirt's") {
  const auto vectors = ka::test::conformance_vectors("kubevirt_vcpu_pinning.json");
  if (!vectors) return;
  const auto& cases = vectors->at("cases").as_array();
  ka::test::say_count("kubevirt_vcpu_pinning.json", cases.size(), 33);
  for (const value& row : cases) {
    INFO(row);
    replay(row.as_object());
  }
}
