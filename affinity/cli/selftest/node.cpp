// SPDX-License-Identifier: Apache-2.0
#include "affinity/cli/selftest/node.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/value.hpp>
#include <optional>
#include <sstream>
#include <variant>

#include "affinity/cli/kata/kata_config.hpp"
#include "affinity/cli/node/node.hpp"
#include "affinity/cli/selftest/flags.hpp"
#include "affinity/config/handlers.hpp"
#include "base/files.hpp"
#include "base/process.hpp"
#include "base/version/version.hpp"

namespace ka::cli::selftest {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;
using base::Result;

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

std::string line_in(const fs::path& file) {
  return first_line(base::read_regular_file(file).value_or(""));
}

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

/// The image of pods' pause processes: containerd 1's name of the setting, or 2's.
std::string configured_image(const fs::path& root) {
  const auto text = base::read_regular_file(root / "etc/containerd/config.toml");
  const auto entries = config::parse_whole(text.value_or(""), "config.toml");
  if (!entries) return {};
  std::string first = text_at(*entries, {"plugins", "io.containerd.grpc.v1.cri", "sandbox_image"});
  if (!first.empty()) return first;
  return text_at(*entries, {"plugins", "io.containerd.cri.v1.images", "pinned_images", "sandbox"});
}

/// Those that report their containers to the daemon are first: without NRI the shim proxy's.
std::vector<std::string> handler_names(const fs::path& root) {
  base::Trouble ignored;
  std::vector<config::Handler> handlers = config::read_handlers(root, ignored);
  const bool nri = has_nri_socket(root);
  std::ranges::stable_partition(handlers, [nri](const auto& one) { return one.is_proxy() != nri; });
  std::vector<std::string> names;
  for (const config::Handler& handler : handlers) names.push_back(handler.name);
  return names;
}

/// The value of a variable of /etc/os-release.
std::string distribution(const fs::path& root) {
  constexpr std::string_view kKey = "PRETTY_NAME=";
  for (std::string line : lines_of(base::read_regular_file(root / "etc/os-release").value_or(""))) {
    if (!line.starts_with(kKey)) continue;
    line.erase(0, kKey.size());
    std::erase(line, '"');
    return line;
  }
  return {};
}

json::array kata_versions(const fs::path& root, const RunProgram& run) {
  json::array found;
  const std::string deployed = line_in(root / "opt/kata/VERSION");
  if (!deployed.empty()) found.emplace_back("/opt/kata: " + deployed);
  const auto shim = run({"containerd-shim-kata-v2", "--version"});
  if (shim) found.emplace_back("containerd-shim-kata-v2: " + first_line(*shim));
  return found;
}

json::value to_json(const config::Value& value) {
  return std::visit(
      []<typename T>(const T& one) -> json::value {
        if constexpr (std::is_same_v<T, std::vector<std::string>>) {
          return json::array(one.begin(), one.end());
        } else if constexpr (std::is_same_v<T, config::Unfit>) {
          return json::value(one.what);
        } else {
          return json::value(one);
        }
      },
      value);
}

/// The file that the daemon was started with; absent: it searches one.
std::optional<fs::path> config_of(const fs::path& root, int daemon) {
  const auto words = base::ProcFs(root / "proc").cmdline(daemon);
  const std::string file = words ? flag_value(*words, "--config") : "";
  if (file.empty()) return std::nullopt;
  return root / fs::path(file).relative_path();
}

std::string key_text(const std::vector<std::string>& path) {
  std::string text;
  for (auto part = std::next(path.begin()); part != path.end(); ++part) {
    text += (text.empty() ? "" : ".") + *part;
  }
  return text;
}

/// The [affinity] table that the daemon obeys: of its --config, else of the first file with one.
json::object settings(const fs::path& root, int daemon) {
  std::vector<fs::path> files = find_kata(root);
  if (const auto given = config_of(root, daemon)) files = {*given};
  for (const fs::path& file : files) {
    json::object found;
    const auto entries = read_merged(file);
    for (const auto& [path, entry] : entries.value_or(config::Entries{})) {
      if (path.size() > 1 && path.front() == "affinity") {
        found[key_text(path)] = to_json(entry.value);
      }
    }
    if (found.empty()) continue;
    found["file"] = file.native();
    return found;
  }
  return {};
}

}  // namespace

NodeFacts gather_facts(const fs::path& root, const Kubelet& kubelet, const Assignments& assignments,
                       const std::vector<std::string>& images) {
  return {.kubelet = kubelet,
          .assignments = assignments,
          .in_use = {},
          .handlers = handler_names(root),
          .images = images,
          .sandbox_image = configured_image(root),
          .has_kvm_debugfs = is_there(root / "sys/kernel/debug/kvm")};
}

Result<NodeFacts> gather_facts_of_runtime(const fs::path& root, const CriPods& pods,
                                          const Assignments& assignments) {
  NodeFacts facts;
  facts.assignments = assignments;
  const auto bound = pods.bound_cpus();
  if (!bound) return unexpected(bound.error());
  facts.in_use = *bound;
  auto images = pods.images();
  if (!images) return unexpected(images.error());
  facts.images = std::move(*images);
  const auto image = pods.sandbox_image();
  facts.sandbox_image = image && !image->empty() ? *image : configured_image(root);
  facts.handlers = handler_names(root);
  facts.has_kvm_debugfs = is_there(root / "sys/kernel/debug/kvm");
  return facts;
}

json::object describe_node(const fs::path& root, const RunProgram& run, std::optional<int> daemon) {
  const auto version = [&run](const std::string& program) {
    const auto printed = run({program, "--version"});
    if (printed) return first_line(*printed);
    const base::Error& error = printed.error();
    return error.code == base::ErrorCode::kNotFound ? "not found" : first_line(error.message);
  };
  const auto kubelet = find_kubelet(root);
  const std::string program = fmt::format("/proc/{}/exe", kubelet ? kubelet->pid : 0);
  const auto handlers = handler_names(root);
  const bool v2 = is_there(root / "sys/fs/cgroup/cgroup.controllers");
  return {{"kata_affinity", version::text()},
          {"distribution", distribution(root)},
          {"kernel", line_in(root / "proc/sys/kernel/osrelease")},
          {"cpus", line_in(root / "sys/devices/system/cpu/online")},
          {"cgroup", v2 ? "v2" : "v1"},
          {"kubelet", kubelet ? version(program) : "not found"},
          {"containerd", version("containerd")},
          {"kata", kata_versions(root, run)},
          {"handlers", json::array(handlers.begin(), handlers.end())},
          {"settings", daemon ? settings(root, *daemon) : json::object()}};
}

}  // namespace ka::cli::selftest
