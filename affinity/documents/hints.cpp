// SPDX-License-Identifier: Apache-2.0
#include "affinity/documents/hints.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <charconv>

#include "base/json/json.hpp"

namespace ka::documents {
namespace {

std::optional<int> small_number(const boost::json::value& value, int below) {
  const auto* number = value.if_int64();
  if (number == nullptr || *number < 0 || *number >= below) return std::nullopt;
  return static_cast<int>(*number);
}

policy::NodeSet read_nodes(const boost::json::value& value, const std::string& path,
                           base::InputError& input_error) {
  policy::NodeSet nodes;
  const auto* array = value.if_array();
  if (array == nullptr) input_error.add(path, "must be an array of node numbers");
  for (const auto& element : array == nullptr ? boost::json::array() : *array) {
    const auto node = small_number(element, policy::kMaxIds);
    if (node) {
      nodes.add(*node);
    } else {
      input_error.add(path,
                      "must hold node numbers from 0 to " + std::to_string(policy::kMaxIds - 1));
    }
  }
  return nodes;
}

policy::allocate::Hint read_hint(const boost::json::value& value, const std::string& path,
                                 base::InputError& input_error) {
  policy::allocate::Hint hint;
  base::Fields fields(value, path, input_error);
  fields.require({"affinity", "preferred"});
  const auto* affinity = fields.find("affinity");
  if (affinity != nullptr && !affinity->is_null()) {
    hint.affinity = read_nodes(*affinity, fields.path("affinity"), input_error);
  }
  fields.read("preferred", hint.preferred);
  fields.finish();
  return hint;
}

policy::allocate::ResourceHints read_resource(std::string name, const boost::json::value& value,
                                              const std::string& path,
                                              base::InputError& input_error) {
  policy::allocate::ResourceHints resource{std::move(name), std::nullopt};
  if (value.is_null()) return resource;
  const auto* array = value.if_array();
  if (array == nullptr) {
    input_error.add(path, "must be an array of hints, or null");
    return resource;
  }
  resource.hints.emplace();
  for (std::size_t i = 0; i < array->size(); ++i) {
    const std::string at = path + '[' + std::to_string(i) + ']';
    resource.hints->push_back(read_hint((*array)[i], at, input_error));
  }
  return resource;
}

policy::allocate::ProviderHints read_provider(const boost::json::value& value,
                                              const std::string& path,
                                              base::InputError& input_error) {
  policy::allocate::ProviderHints provider;
  if (value.is_null()) return provider;
  const auto* object = value.if_object();
  if (object == nullptr) {
    input_error.add(path, "must be an object of resources, or null");
    return provider;
  }
  for (const auto& [key, hints] : *object) {
    const std::string name(key);
    provider.push_back(read_resource(name, hints, path + '.' + name, input_error));
  }
  return provider;
}

void read_max_nodes(const std::string& text, policy::allocate::HintProblem& problem,
                    base::InputError& input_error) {
  int number = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc{} || stop != end) {
    input_error.add("options", "max-allowable-numa-nodes: \"" + text + "\" is not a number");
  }
  problem.max_nodes = number;
}

void read_option(const std::string& option, policy::allocate::HintProblem& problem,
                 base::InputError& input_error) {
  const std::string max_nodes = "max-allowable-numa-nodes=";
  if (option == "prefer-closest-numa-nodes") {
    problem.prefer_closest = true;
  } else if (option == "prefer-cpu-alignment") {
    problem.prefer_cpu_alignment = true;
  } else if (option.starts_with(max_nodes)) {
    read_max_nodes(option.substr(max_nodes.size()), problem, input_error);
  } else {
    input_error.add("options", "unknown option \"" + option + '"');
  }
}

std::vector<int> read_row(const boost::json::value& value, const std::string& path,
                          base::InputError& input_error) {
  std::vector<int> row;
  const auto* array = value.if_array();
  if (array == nullptr) input_error.add(path, "must be an array of distances");
  for (const auto& element : array == nullptr ? boost::json::array() : *array) {
    const auto distance = small_number(element, 1 << 16);
    if (!distance) input_error.add(path, "must hold whole numbers from 0 to 65535");
    row.push_back(distance.value_or(0));
  }
  return row;
}

void read_policy(base::Fields& fields, policy::allocate::HintProblem& problem) {
  std::string name;
  if (!fields.read("policy", name)) return;
  if (const auto policy = policy::allocate::parse_hint_policy(name)) {
    problem.policy = *policy;
  } else {
    fields.reject("policy", "must be none, best-effort, restricted or single-numa-node");
  }
}

boost::json::value affinity_to_json(const std::optional<policy::NodeSet>& affinity) {
  boost::json::value value;
  if (!affinity) return value;
  boost::json::array& nodes = value.emplace_array();
  for (const int node : *affinity) nodes.push_back(node);
  return value;
}

}  // namespace

base::Result<policy::allocate::HintProblem> hint_problem_from_json(
    const boost::json::value& document) {
  policy::allocate::HintProblem problem;
  base::InputError input_error;
  base::Fields fields(document, "", input_error);
  fields.require({"policy", "numaNodes", "providers"});
  read_policy(fields, problem);
  if (const auto* nodes = fields.find("numaNodes")) {
    problem.nodes = read_nodes(*nodes, "numaNodes", input_error);
  }
  std::vector<std::string> options;
  fields.read("options", options);
  for (const std::string& option : options) read_option(option, problem, input_error);
  fields.each("distances", [&](const boost::json::value& row, const std::string& path) {
    problem.distances.push_back(read_row(row, path, input_error));
  });
  fields.each("providers", [&](const boost::json::value& provider, const std::string& path) {
    problem.providers.push_back(read_provider(provider, path, input_error));
  });
  fields.finish();
  if (!input_error.empty()) return unexpected(input_error.error());
  return problem;
}

boost::json::object to_json(const policy::allocate::Hint& hint) {
  return {{"affinity", affinity_to_json(hint.affinity)}, {"preferred", hint.preferred}};
}

boost::json::object to_json(const policy::allocate::MergedHint& hint) {
  return {{"affinity", affinity_to_json(hint.affinity)},
          {"preferred", hint.preferred},
          {"admit", hint.admit}};
}

}  // namespace ka::documents
