// SPDX-License-Identifier: Apache-2.0
#include "affinity/documents/topology.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>

#include "base/json/json.hpp"

namespace ka::documents {
namespace {

boost::json::object cpu_to_json(const policy::Cpu& cpu) {
  boost::json::object object{{"cpu", cpu.cpu},          {"core", cpu.core}, {"socket", cpu.socket},
                             {"numa", cpu.numa},        {"l3", cpu.l3},     {"kind", cpu.kind},
                             {"isolated", cpu.isolated}};
  if (!cpu.online) object["online"] = false;
  if (cpu.nohz_full) object["nohz_full"] = true;
  return object;
}

/// True when the rows of "distances" need names: some node has no CPU.
bool has_nodes_without_cpus(const policy::Topology& topology) {
  policy::NodeSet nodes;
  for (const policy::Cpu& cpu : topology.cpus()) nodes.add(cpu.numa);
  return nodes != topology.nodes();
}

policy::Cpu read_cpu(const boost::json::value& value, const std::string& path,
                     base::InputError& input_error) {
  policy::Cpu cpu;
  base::Fields fields(value, path, input_error);
  fields.require({"cpu", "core", "socket", "numa"});
  fields.read("cpu", cpu.cpu);
  fields.read("core", cpu.core);
  fields.read("socket", cpu.socket);
  fields.read("numa", cpu.numa);
  cpu.l3 = cpu.socket;  // as kubelet falls back
  fields.read("l3", cpu.l3);
  fields.read("kind", cpu.kind);
  fields.read("isolated", cpu.isolated);
  fields.read("online", cpu.online);
  fields.read("nohz_full", cpu.nohz_full);
  fields.finish();
  return cpu;
}

std::vector<int> read_numbers(const boost::json::value& value, const std::string& path,
                              base::InputError& input_error) {
  std::vector<int> numbers;
  const auto* array = value.if_array();
  if (array == nullptr) {
    input_error.add(path, "must be an array of whole numbers");
    return numbers;
  }
  for (const auto& element : *array) {
    const auto* number = element.if_int64();
    if (number == nullptr || *number < 0 || *number > policy::kMaxIds) {
      input_error.add(path, "must hold whole numbers from 0 to " + std::to_string(policy::kMaxIds));
      return numbers;
    }
    numbers.push_back(static_cast<int>(*number));
  }
  return numbers;
}

}  // namespace

boost::json::object to_json(const policy::Topology& topology) {
  boost::json::array cpus;
  for (const policy::Cpu& cpu : topology.cpus()) cpus.push_back(cpu_to_json(cpu));
  boost::json::array distances;
  for (const auto& row : topology.distances()) {
    distances.push_back(boost::json::array(row.begin(), row.end()));
  }
  boost::json::object object{{"cpus", std::move(cpus)}, {"distances", std::move(distances)}};
  if (has_nodes_without_cpus(topology)) {
    const auto nodes = topology.nodes().ids();
    object["nodes"] = boost::json::array(nodes.begin(), nodes.end());
  }
  return object;
}

base::Result<policy::Topology> topology_from_json(const boost::json::value& document) {
  base::InputError input_error;
  base::Fields fields(document, "", input_error);
  fields.require({"cpus"});
  std::vector<policy::Cpu> cpus;
  fields.each("cpus", [&](const auto& value, const std::string& path) {
    cpus.push_back(read_cpu(value, path, input_error));
  });
  std::vector<std::vector<int>> distances;
  fields.each("distances", [&](const auto& value, const std::string& path) {
    distances.push_back(read_numbers(value, path, input_error));
  });
  std::vector<int> nodes;
  if (const auto* value = fields.find("nodes")) nodes = read_numbers(*value, "nodes", input_error);
  fields.finish();
  if (!input_error.empty()) return unexpected(input_error.error());
  auto topology = policy::Topology::make(std::move(cpus), std::move(distances), std::move(nodes));
  if (!topology) return base::fail(base::ErrorCode::kInvalid, topology.error());
  return std::move(*topology);
}

}  // namespace ka::documents
