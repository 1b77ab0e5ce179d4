// SPDX-License-Identifier: Apache-2.0
#include "affinity/cli/kubectl/readers.hpp"

#include <algorithm>
#include <array>

namespace ka::cli::kubectl {
namespace {

/// Up to the next `separator`, which goes as well.
std::string_view next_field(std::string_view& text, char separator) {
  const std::size_t end = std::min(text.find(separator), text.size());
  const std::string_view part = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return part;
}

/// A name of Kubernetes, which kubectl cannot take for an option.
bool is_name(std::string_view text) {
  const auto good = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.';
  };
  constexpr std::size_t kLongest = 253;
  return !text.empty() && text.size() <= kLongest && text.front() != '-' &&
         std::ranges::all_of(text, good);
}

bool is_one_of(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::ranges::find(words, word) != words.end();
}

/// explain and status are about a pod where they can be; the others are about its node.
bool is_about_pod(const PluginOptions& options) {
  return options.command == "status" || options.command == "noise" ||
         (options.command == "explain" && !options.cpu);
}

}  // namespace

std::vector<Reader> parse_readers(std::string_view lines) {
  std::vector<Reader> readers;
  while (!lines.empty()) {
    std::string_view line = next_field(lines, '\n');
    Reader reader;
    reader.node = next_field(line, '\t');
    reader.pod = next_field(line, '\t');
    reader.phase = line;
    if (!reader.node.empty()) readers.push_back(std::move(reader));
  }
  std::ranges::stable_sort(readers, {}, &Reader::node);
  return readers;
}

base::Result<Target> parse_target(const std::string& text) {
  std::string_view rest = text;
  Target target;
  if (text.find('/') != std::string::npos) {
    const std::string_view prefix = next_field(rest, '/');
    if (is_one_of(prefix, {"node", "nodes", "no"})) {
      target.kind = Target::Kind::kNode;
    } else {
      target.kind = Target::Kind::kPod;
      if (!is_one_of(prefix, {"pod", "pods", "po"})) target.pod_namespace = prefix;
      if (prefix.empty()) rest = {};
    }
  }
  target.name = rest;
  const bool good_namespace = target.pod_namespace.empty() || is_name(target.pod_namespace);
  if (is_name(target.name) && good_namespace) return target;
  return base::fail(base::ErrorCode::kInvalid,
                    '"' + text + "\" is not the name of a pod or a node");
}

std::vector<std::string> command_in_reader(const PluginOptions& options, const std::string& pod) {
  std::vector<std::string> words = {"kata-affinityctl", options.command};
  if (is_about_pod(options) && !pod.empty()) words.push_back(pod);
  if (options.command == "noise") words.emplace_back("--counters");
  if (options.cpu) words.insert(words.end(), {"--cpu", std::to_string(*options.cpu)});
  if (options.strict) words.emplace_back("--strict");
  if (options.json) words.emplace_back("--json");
  return words;
}

}  // namespace ka::cli::kubectl
