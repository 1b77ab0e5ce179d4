// SPDX-License-Identifier: Apache-2.0
#include "affinity/cli/selftest/kubelet.hpp"

#include <algorithm>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <iterator>
#include <vector>

#include "affinity/cli/selftest/flags.hpp"
#include "base/files.hpp"
#include "base/json/json.hpp"
#include "base/process.hpp"
#include "shim-ext/watch/kubelet_state.hpp"

namespace ka::cli::selftest {
namespace {

namespace fs = std::filesystem;
using base::ErrorCode;
using base::Result;
using Scalars = std::map<std::string, std::string>;

std::string_view trim(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r";
  const auto begin = text.find_first_not_of(kBlank);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlank) + 1 - begin);
}

/// A YAML scalar on one line, without its quotes or the comment behind it.
std::string unquoted(std::string_view value) {
  const bool quoted = !value.empty() && (value.front() == '"' || value.front() == '\'');
  if (!quoted) return std::string(trim(value.substr(0, value.find(" #"))));
  const auto end = value.find(value.front(), 1);
  return std::string(value.substr(1, end == std::string_view::npos ? end : end - 1));
}

bool is_nested(std::string_view line) {
  return std::string_view(" \t#-").find(line.front()) != std::string_view::npos;
}

Scalars yaml_scalars(std::string_view text) {
  Scalars found;
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size() - 1);
    const std::string_view line = text.substr(0, end + 1);
    text.remove_prefix(end + 1);
    const auto colon = line.find(':');
    if (colon == std::string_view::npos || is_nested(line)) continue;
    const std::string_view value = trim(line.substr(colon + 1, line.find('\n') - colon - 1));
    if (!value.empty()) found[std::string(line.substr(0, colon))] = unquoted(value);
  }
  return found;
}

Scalars json_scalars(const boost::json::object& object) {
  Scalars found;
  for (const auto& [key, value] : object) {
    if (const auto* text = value.if_string()) found[key] = std::string(std::string_view(*text));
  }
  return found;
}

using Words = std::vector<std::string>;

fs::path below(const fs::path& root, const fs::path& path) { return root / path.relative_path(); }

void merge(Scalars& into, const Scalars& over) {
  for (const auto& [key, value] : over) into[key] = value;
}

/// The configuration file and, in name order, the files *.conf of --config-dir over it.
Result<Scalars> read_config(const fs::path& root, const Words& words) {
  Words files;
  if (const auto main = flag_value(words, "--config"); !main.empty()) files.push_back(main);
  const std::string folder = flag_value(words, "--config-dir");
  const auto names = base::list_directory(below(root, folder));
  for (const std::string& name : folder.empty() ? Words{} : names.value_or(Words{})) {
    if (name.ends_with(".conf")) files.push_back(folder + '/' + name);
  }
  Scalars scalars;
  for (const std::string& file : files) {
    const auto text = base::read_regular_file(below(root, file));
    if (!text) return unexpected(text.error());
    merge(scalars, top_level_scalars(*text));
  }
  return scalars;
}

/// A flag wins over the configuration file.
std::string setting(const Words& words, const Scalars& scalars, const std::string& name,
                    const std::string& key) {
  const std::string given = flag_value(words, name);
  const auto found = scalars.find(key);
  return !given.empty() || found == scalars.end() ? given : found->second;
}

Result<Kubelet> describe(const fs::path& root, int pid, const Words& words) {
  const auto scalars = read_config(root, words);
  if (!scalars) return unexpected(scalars.error());
  Kubelet kubelet;
  kubelet.pid = pid;
  const std::string manifests = setting(words, *scalars, "--pod-manifest-path", "staticPodPath");
  if (!manifests.empty()) kubelet.manifests = below(root, manifests);
  const std::string folder = flag_value(words, "--root-dir");
  kubelet.state = below(root, folder.empty() ? "/var/lib/kubelet" : folder) / "cpu_manager_state";
  const auto reserved = policy::parse_list<policy::CpuTag>(
      setting(words, *scalars, "--reserved-cpus", "reservedSystemCPUs"));
  if (reserved) kubelet.reserved = *reserved;
  kubelet.has_api_server = !flag_value(words, "--kubeconfig").empty();
  return kubelet;
}

}  // namespace

Scalars top_level_scalars(std::string_view text) {
  const auto begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos || text[begin] != '{') return yaml_scalars(text);
  const auto document = base::parse_json(text, "kubelet's configuration");
  return document && document->is_object() ? json_scalars(document->get_object()) : Scalars{};
}

Result<Kubelet> find_kubelet(const fs::path& root) {
  const base::ProcFs procfs(root / "proc");
  const auto pids = procfs.processes();
  if (!pids) return unexpected(pids.error());
  for (const int pid : *pids) {
    const auto stat = procfs.stat(pid);
    if (!stat || stat->comm != "kubelet") continue;
    if (const auto words = procfs.cmdline(pid)) return describe(root, pid, *words);
  }
  return base::fail(ErrorCode::kNotFound, "no kubelet runs on this node");
}

Result<Assignments> read_assignments(const fs::path& state) {
  const auto text = base::read_regular_file(state, watch::kMaxKubeletState);
  if (!text) return unexpected(text.error());
  const auto parsed = watch::parse_kubelet_state(*text);
  if (!parsed) return unexpected(parsed.error());
  if (parsed->policy != "static" || !parsed->seen.claims) {
    return base::fail(ErrorCode::kConflict, "kubelet's CPU manager policy is \"" + parsed->policy +
                                                "\", not static: no container owns CPUs");
  }
  return Assignments{parsed->seen.shared_pool.value_or(policy::CpuSet{}), *parsed->seen.claims};
}

}  // namespace ka::cli::selftest
