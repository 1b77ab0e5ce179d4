// SPDX-License-Identifier: Apache-2.0
#include "affinity/cli/allocate/allocate.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <tuple>
#include <utility>

#include "affinity/cli/allocate/allocation.hpp"
#include "affinity/cli/allocate/request_sets.hpp"
#include "affinity/documents/allocation.hpp"
#include "affinity/host/topology.hpp"
#include "affinity/messages/allocation.hpp"
#include "base/files.hpp"
#include "base/sets.hpp"
#include "policy/allocate/allocate.hpp"
#include "policy/allocate/preferences.hpp"

namespace ka::cli {
namespace {

using base::ErrorCode;

base::Result<void> read_sets(const AllocateOptions& options, const policy::Topology& topology,
                             policy::allocate::CpuRequest& request) {
  request.available = topology.online();
  for (const auto& [name, text, into] :
       {std::tuple("--available", &options.available, &request.available),
        std::tuple("--reserved", &options.reserved, &request.reserved),
        std::tuple("--held", &options.held, &request.held),
        std::tuple("--promised", &options.promised, &request.promised)}) {
    if (!*text) continue;
    auto set = read_set(name, **text, topology.all());
    if (!set) return unexpected(std::move(set.error()));
    *into = *std::move(set);
  }
  if (!options.numa_affinity) return {};
  auto nodes = read_set("--numa-affinity", *options.numa_affinity, topology.nodes());
  if (!nodes) return unexpected(std::move(nodes.error()));
  request.numa_affinity = *std::move(nodes);
  return {};
}

/// What the pod's annotations ask for; options of the command line win.
base::Result<void> read_preferences(const AllocateOptions& options,
                                    policy::allocate::CpuRequest& request) {
  policy::allocate::Annotations annotations;
  for (const std::string& text : options.annotations) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos) {
      return base::fail(ErrorCode::kInvalid, "--annotation: \"" + text + "\" is not KEY=VALUE");
    }
    annotations[text.substr(0, equals)] = text.substr(equals + 1);
  }
  const auto preferences = policy::allocate::read_preferences(annotations, options.container);
  if (!preferences) return base::fail(ErrorCode::kInvalid, preferences.error());
  const auto given = policy::allocate::parse_cpu_class(options.cpu_class.value_or(""));
  request.cpu_class = given.value_or(preferences->cpu_class);
  request.prefer_isolated = options.prefer_isolated || preferences->prefer_isolated;
  return {};
}

/// "1.36" is 36.
base::Result<int> read_kubelet_version(const std::string& text) {
  if (text.empty()) return policy::allocate::kNewestKubelet;
  const auto minor =
      base::parse_number(std::string_view(text).substr(std::min<std::size_t>(2, text.size())));
  if (text.starts_with("1.") && minor && *minor <= 1000) return static_cast<int>(*minor);
  return base::fail(ErrorCode::kInvalid,
                    "--kubelet-version: \"" + text + "\" is not of the form 1.N, as in 1.36");
}

base::Result<policy::allocate::CpuRequest> read_request(const AllocateOptions& options,
                                                        const policy::allocate::Machine& machine) {
  policy::allocate::CpuRequest request{
      .cpus = options.cpus, .group_size = options.group_size, .explain = options.explain};
  auto flags = read_strategy(options.strategy, options.options);
  if (!flags) return unexpected(std::move(flags.error()));
  request.options = *flags;
  const auto kubelet = read_kubelet_version(options.kubelet_version);
  if (!kubelet) return unexpected(kubelet.error());
  request.kubelet = *kubelet;
  if (auto read = read_preferences(options, request); !read) {
    return unexpected(std::move(read.error()));
  }
  if (auto read = read_sets(options, machine.topology(), request); !read) {
    return unexpected(std::move(read.error()));
  }
  const auto refused =
      policy::allocate::refused_options(*flags, machine, policy::allocate::HintPolicy::kNone);
  if (refused) return base::fail(ErrorCode::kInvalid, *refused);
  return request;
}

/// What other containers may run on afterwards.
policy::CpuSet shared_pool(const policy::allocate::CpuRequest& request,
                           const policy::CpuSet& cpus) {
  policy::CpuSet pool = (request.available | request.held) - cpus;
  if (request.options.has(policy::allocate::CpuOption::kStrictCpuReservation))
    pool -= request.reserved;
  return pool;
}

boost::json::object to_json(const policy::allocate::CpuAllocation& answer,
                            const policy::allocate::CpuRequest& request,
                            const policy::allocate::Machine& machine) {
  boost::json::object document{{"cpus", policy::format_list(answer.cpus)}};
  if (!request.reserved.empty()) {
    document["shared_pool"] = policy::format_list(shared_pool(request, answer.cpus));
  }
  if (!request.explain) return document;
  boost::json::array explain;
  for (const policy::allocate::Finding& finding : answer.trace) {
    explain.push_back(documents::to_json(finding, machine));
  }
  document["explain"] = std::move(explain);
  return document;
}

std::string describe(const policy::allocate::CpuAllocation& answer,
                     const policy::allocate::Machine& machine) {
  std::string text = policy::format_list(answer.cpus) + '\n';
  for (const policy::allocate::Finding& finding : answer.trace) {
    text += fmt::format("  {:<10} {:<18} {}\n", policy::allocate::phase_name(finding.phase),
                        finding.step, messages::sentence(finding, machine));
  }
  return text;
}

/// --option distribute-cpus-across-numa is --strategy distributed.
const policy::allocate::Pipeline& policy_of(const AllocateOptions& options,
                                            policy::allocate::OptionSet set) {
  return set.has(policy::allocate::CpuOption::kDistributeAcrossNuma)
             ? policy::allocate::distributed_policy()
             : *policy::allocate::find_policy(options.strategy);
}

boost::json::object refusal_to_json(const policy::allocate::Refusal& refusal) {
  return {{"error", policy::allocate::refusal_text(refusal)}};
}

}  // namespace

base::Result<policy::allocate::OptionSet> read_policy_options(
    const std::vector<std::string>& names) {
  policy::allocate::OptionSet set;
  for (const std::string& name : names) {
    const auto option = policy::allocate::parse_option(name);
    if (!option) {
      return base::fail(ErrorCode::kInvalid,
                        "--option: unknown CPU Manager Policy option: \"" + name + '"');
    }
    set.add(*option);
  }
  return set;
}

base::Result<policy::allocate::OptionSet> read_strategy(const std::string& strategy,
                                                        const std::vector<std::string>& names) {
  auto read = read_policy_options(names);
  if (!read) return read;
  policy::allocate::OptionSet set = *read;
  const auto across_nodes = policy::allocate::CpuOption::kDistributeAcrossNuma;
  if (strategy == "distributed") set.add(across_nodes);
  if (set.has(across_nodes) && strategy == "fitted") {
    return base::fail(ErrorCode::kInvalid,
                      "--strategy fitted takes the fewest nodes, --option " +
                          std::string(policy::allocate::option_name(across_nodes)) +
                          " spreads over nodes");
  }
  return set;
}

base::Result<boost::json::object> allocation(const AllocateOptions& options,
                                             const policy::allocate::Machine& machine) {
  const auto request = read_request(options, machine);
  if (!request) return unexpected(request.error());
  if (policy::allocate::find_policy(options.strategy) == nullptr) {
    return base::fail(ErrorCode::kInvalid, "strategy: unknown \"" + options.strategy + '"');
  }
  const auto answer =
      policy::allocate::allocate(machine, *request, policy_of(options, request->options));
  return answer ? to_json(*answer, *request, machine) : refusal_to_json(answer.error());
}

Exit run(const AllocateOptions& options, Output& output) {
  if (options.batch) return run_allocate_batch(options, output);
  auto topology = host::load_topology(options.topology);
  if (!topology) return output.fail(topology.error());
  const policy::allocate::Machine machine(*std::move(topology));
  const auto request = read_request(options, machine);
  if (!request) return output.fail(request.error());
  const auto answer =
      policy::allocate::allocate(machine, *request, policy_of(options, request->options));
  if (!answer) {
    output.show(refusal_to_json(answer.error()),
                [&] { return policy::allocate::refusal_text(answer.error()) + '\n'; });
    return Exit::kNo;
  }
  output.show(to_json(*answer, *request, machine), [&] { return describe(*answer, machine); });
  return Exit::kDone;
}

}  // namespace ka::cli
