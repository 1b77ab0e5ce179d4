// SPDX-License-Identifier: Apache-2.0
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>

#include "affinity/cli/allocate/allocate.hpp"
#include "affinity/cli/allocate/request_sets.hpp"
#include "affinity/documents/hints.hpp"
#include "affinity/host/topology.hpp"
#include "policy/allocate/cpu_hints.hpp"

namespace ka::cli {
namespace {

base::Result<policy::allocate::CpuHintProblem> read_problem(
    const HintsOptions& options, const policy::allocate::Machine& machine) {
  policy::allocate::CpuHintProblem problem{.available = machine.cpus(), .cpus = options.cpus};
  const policy::CpuSet& known = machine.topology().all();
  if (options.available) {
    auto set = read_set("--available", *options.available, known);
    if (!set) return unexpected(std::move(set.error()));
    problem.available = *std::move(set) & machine.cpus();
  }
  if (options.reserved) {
    const auto set = read_set("--reserved", *options.reserved, known);
    if (!set) return unexpected(set.error());
    problem.available -= *set;
  }
  if (options.reusable) {
    auto set = read_set("--reusable", *options.reusable, known);
    if (!set) return unexpected(std::move(set.error()));
    problem.reusable = *std::move(set);
  }
  const auto flags = read_policy_options(options.options);
  if (!flags) return unexpected(flags.error());
  problem.options = *flags;
  const auto refused =
      policy::allocate::refused_options(*flags, machine, policy::allocate::HintPolicy::kBestEffort);
  if (refused) return base::fail(base::ErrorCode::kInvalid, *refused);
  return problem;
}

boost::json::object to_json(const std::vector<policy::allocate::Hint>& hints) {
  boost::json::array list;
  for (const policy::allocate::Hint& hint : hints) list.push_back(documents::to_json(hint));
  return {{"hints", std::move(list)}};
}

std::string describe(const std::vector<policy::allocate::Hint>& hints) {
  if (hints.empty()) return "no set of NUMA nodes has enough CPUs\n";
  std::string text;
  for (const policy::allocate::Hint& hint : hints) {
    text += "NUMA nodes " + policy::format_list(hint.affinity.value_or(policy::NodeSet{})) +
            (hint.preferred ? ", preferred\n" : "\n");
  }
  return text;
}

}  // namespace

Exit run(const HintsOptions& options, Output& output) {
  auto topology = host::load_topology(options.topology);
  if (!topology) return output.fail(topology.error());
  const policy::allocate::Machine machine(*std::move(topology));
  const auto problem = read_problem(options, machine);
  if (!problem) return output.fail(problem.error());
  const auto hints = policy::allocate::cpu_hints(machine, *problem);
  output.show(to_json(hints), [&hints] { return describe(hints); });
  return hints.empty() ? Exit::kNo : Exit::kDone;
}

}  // namespace ka::cli
