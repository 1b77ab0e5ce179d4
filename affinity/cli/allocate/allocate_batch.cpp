// SPDX-License-Identifier: Apache-2.0
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>
#include <map>
#include <utility>

#include "affinity/cli/allocate/allocation.hpp"
#include "affinity/cli/allocate/batch.hpp"
#include "affinity/documents/topology.hpp"
#include "affinity/host/topology.hpp"
#include "base/json/json.hpp"

namespace ka::cli {
namespace {

/// The machines that lines have named so far: to prepare one takes longer than to answer a line.
class Machines {
 public:
  /// By what --topology takes.
  base::Result<const policy::allocate::Machine*> find(const std::string& name) {
    return remember(name, [&] { return host::load_topology(name); });
  }

  /// By a topology as JSON.
  base::Result<const policy::allocate::Machine*> find(const boost::json::object& document) {
    return remember(boost::json::serialize(document),
                    [&] { return documents::topology_from_json(document); });
  }

 private:
  template <typename Load>
  base::Result<const policy::allocate::Machine*> remember(const std::string& key,
                                                          const Load& load) {
    const auto known = machines_.find(key);
    if (known != machines_.end()) return &known->second;
    auto topology = load();
    if (!topology) return unexpected(std::move(topology.error()));
    return &machines_.emplace(key, policy::allocate::Machine(*std::move(topology))).first->second;
  }

  std::map<std::string, policy::allocate::Machine> machines_;
};

void read_optional(base::Fields& fields, const char* name, std::optional<std::string>& into) {
  std::string text;
  if (fields.read(name, text)) into = std::move(text);
}

/// What a line names in place of an option. "topology" is not read here.
base::Result<AllocateOptions> options_of(AllocateOptions options,
                                         const boost::json::value& document) {
  base::InputError input_error;
  base::Fields fields(document, "", input_error);
  fields.find("topology");
  fields.require({"cpus"});
  fields.read("cpus", options.cpus);
  fields.read("strategy", options.strategy);
  fields.read("group_size", options.group_size);
  fields.read("options", options.options);
  fields.read("kubelet_version", options.kubelet_version);
  fields.read("prefer_isolated", options.prefer_isolated);
  fields.read("explain", options.explain);
  read_optional(fields, "available", options.available);
  read_optional(fields, "reserved", options.reserved);
  read_optional(fields, "numa_affinity", options.numa_affinity);
  read_optional(fields, "class", options.cpu_class);
  read_optional(fields, "held", options.held);
  read_optional(fields, "promised", options.promised);
  fields.finish();
  if (!input_error.empty()) return unexpected(input_error.error());
  return options;
}

base::Result<const policy::allocate::Machine*> machine_of(const boost::json::value& document,
                                                          const std::string& otherwise,
                                                          Machines& machines) {
  const auto* object = document.if_object();
  const auto* topology = object == nullptr ? nullptr : object->if_contains("topology");
  if (topology == nullptr) return machines.find(otherwise);
  if (const auto* name = topology->if_string()) return machines.find(std::string(*name));
  if (const auto* machine = topology->if_object()) return machines.find(*machine);
  return base::fail(base::ErrorCode::kInvalid,
                    "topology: must be a string as for --topology, or an object");
}

}  // namespace

Exit run_allocate_batch(const AllocateOptions& options, Output& output) {
  Machines machines;
  return run_batch(*options.batch, output,
                   [&](const boost::json::value& document) -> base::Result<boost::json::object> {
                     const auto line = options_of(options, document);
                     if (!line) return unexpected(line.error());
                     const auto machine = machine_of(document, options.topology, machines);
                     if (!machine) return unexpected(machine.error());
                     return allocation(*line, **machine);
                   });
}

}  // namespace ka::cli
