#include "policy/allocate/allocate.hpp"

#include <fmt/core.h>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <tuple>
#include <utility>

#include "affinity/cli/commands.hpp"
#include "affinity/host/topology.hpp"
#include "affinity/words/allocation.hpp"
#include "affinity/words/sets.hpp"

namespace ka::cli {
namespace {

using base::ErrorCode;

/// A set given to an option, whose members must be in `known`.
template <typename Tag>
base::Result<policy::IdSet<Tag>> read_set(const std::string& option, const std::string& text,
                                          const policy::IdSet<Tag>& known) {
  auto set = words::parse_set<Tag>(text);
  if (!set) return base::fail(ErrorCode::kInvalid, option + ": " + set.error().message);
  const auto strange = *set - known;
  if (strange.empty()) return set;
  return base::fail(ErrorCode::kInvalid,
                    option + ": the machine does not have " + policy::format_list(strange));
}

base::Result<policy::OptionSet> read_options(const AllocateOptions& options) {
  policy::OptionSet set;
  for (const std::string& name : options.options) {
    const auto option = policy::parse_option(name);
    if (!option) {
      return base::fail(ErrorCode::kInvalid,
                        "--option: unknown CPU Manager Policy option: \"" + name + '"');
    }
    set.add(*option);
  }
  if (options.strategy == "distributed") set.add(policy::CpuOption::kDistributeAcrossNuma);
  return set;
}

base::Result<void> read_sets(const AllocateOptions& options, const policy::Topology& topology,
                             policy::CpuRequest& request) {
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

base::Result<policy::CpuRequest> read_request(const AllocateOptions& options,
                                              const policy::Machine& machine) {
  policy::CpuRequest request{.cpus = options.cpus,
                             .group_size = options.group_size,
                             .prefer_isolated = options.prefer_isolated,
                             .explain = options.explain};
  auto flags = read_options(options);
  if (!flags) return unexpected(std::move(flags.error()));
  request.options = *flags;
  request.cpu_class = policy::parse_cpu_class(options.cpu_class).value_or(request.cpu_class);
  if (auto read = read_sets(options, machine.topology(), request); !read) {
    return unexpected(std::move(read.error()));
  }
  const auto refused = policy::refused_options(*flags, machine, policy::HintPolicy::kNone);
  if (refused) return base::fail(ErrorCode::kInvalid, *refused);
  return request;
}

/// What other containers may run on afterwards.
policy::CpuSet shared_pool(const policy::CpuRequest& request, const policy::CpuSet& cpus) {
  policy::CpuSet pool = (request.available | request.held) - cpus;
  if (request.options.has(policy::CpuOption::kStrictCpuReservation)) pool -= request.reserved;
  return pool;
}

boost::json::object to_json(const policy::CpuAllocation& answer, const policy::CpuRequest& request,
                            const policy::Machine& machine) {
  boost::json::object document{{"cpus", policy::format_list(answer.cpus)}};
  if (!request.reserved.empty()) {
    document["shared_pool"] = policy::format_list(shared_pool(request, answer.cpus));
  }
  if (!request.explain) return document;
  boost::json::array explain;
  for (const policy::Finding& finding : answer.trace) {
    explain.push_back(words::to_json(finding, machine));
  }
  document["explain"] = std::move(explain);
  return document;
}

std::string describe(const policy::CpuAllocation& answer, const policy::Machine& machine) {
  std::string text = policy::format_list(answer.cpus) + '\n';
  for (const policy::Finding& finding : answer.trace) {
    text += fmt::format("  {:<10} {:<18} {}\n", policy::phase_name(finding.phase), finding.step,
                        words::sentence(finding, machine));
  }
  return text;
}

}  // namespace

Exit run(const AllocateOptions& options, Output& output) {
  auto topology = host::load_topology(options.topology);
  if (!topology) return output.fail(topology.error());
  const policy::Machine machine(*std::move(topology));
  const auto request = read_request(options, machine);
  if (!request) return output.fail(request.error());
  const bool fitted = options.strategy == "fitted";
  const auto answer = policy::allocate(
      machine, *request, fitted ? policy::fitted_policy() : policy::policy_for(request->options));
  if (!answer) {
    const std::string error = policy::refusal_text(answer.error());
    output.show(boost::json::object{{"error", error}}, [&error] { return error + '\n'; });
    return Exit::kNo;
  }
  output.show(to_json(*answer, *request, machine), [&] { return describe(*answer, machine); });
  return Exit::kDone;
}

}  // namespace ka::cli
