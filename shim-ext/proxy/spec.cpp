// SPDX-License-Identifier: Apache-2.0
#include "shim-ext/proxy/spec.hpp"

#include <boost/json/value.hpp>
#include <utility>

#include "base/files.hpp"
#include "base/json/json.hpp"
#include "base/json/lookup.hpp"
#include "base/text.hpp"

namespace ka::proxy {
namespace {

namespace json = boost::json;

std::string text(const json::value& object, std::string_view key) {
  return base::printable(base::text_in(base::member(object, key)), base::kMaxPath);
}

/// What others write of a container's CPUs, printable, is for the daemon to judge.
void update(std::string& list, const json::value& cpu, std::string_view pointer,
            base::InputError& wrong) {
  const std::string text = base::strict_text_at(cpu, pointer, wrong);
  if (!text.empty()) list = base::printable(text, base::kMaxSetText);
}

Resources merge(Resources now, const json::value& cpu, base::InputError& wrong) {
  update(now.cpus, cpu, "/cpus", wrong);
  update(now.mems, cpu, "/mems", wrong);
  now.quota = base::strict_number_at(cpu, "/quota", wrong, now.quota);
  now.period = base::strict_number_at(cpu, "/period", wrong, now.period);
  now.shares = base::strict_number_at(cpu, "/shares", wrong, now.shares);
  return now;
}

std::string pod_name(const json::value& annotations) {
  const std::string name = text(annotations, "io.kubernetes.cri.sandbox-name");
  const std::string space = text(annotations, "io.kubernetes.cri.sandbox-namespace");
  return space.empty() ? name : space + '/' + name;
}

Spec read(const json::value& document, const std::string& id, base::InputError& wrong) {
  const json::value& annotations = base::member(document, "annotations");
  Spec spec;
  spec.sandbox = text(annotations, "io.kubernetes.cri.sandbox-id");
  if (spec.sandbox.empty()) spec.sandbox = id;
  spec.is_pause = text(annotations, "io.kubernetes.cri.container-type") == "sandbox";
  spec.name = text(annotations, "io.kubernetes.cri.container-name");
  spec.pod_uid = text(annotations, "io.kubernetes.cri.sandbox-uid");
  spec.pod_name = pod_name(annotations);
  spec.handler = text(annotations, "io.containerd.cri.runtime-handler");
  spec.resources = merge({}, base::value_at(document, "/linux/resources/cpu"), wrong);
  return spec;
}

}  // namespace

base::Result<Spec> read_spec(const std::filesystem::path& bundle, const std::string& id) {
  if (!base::is_id(id)) return base::fail(base::ErrorCode::kInvalid, "not a container id");
  const auto file = bundle / "config.json";
  const auto content = base::read_regular_file(file, kLargestSpec);
  if (!content) return unexpected(content.error());
  const auto document = base::parse_json(*content, file.string());
  if (!document) return unexpected(document.error());
  base::InputError wrong;
  Spec spec = read(*document, id, wrong);
  if (!base::is_id(spec.sandbox)) wrong.add("", "not a sandbox id");
  if (wrong.empty()) return spec;
  return base::fail(base::ErrorCode::kInvalid, file.string() + ": " + wrong.error().message);
}

std::string pod_of_bundle(const std::filesystem::path& bundle) {
  const auto spec = read_spec(bundle, bundle.filename());
  return spec ? spec->pod_uid : std::string();
}

base::Result<Resources> updated(Resources now, std::string_view json) {
  const auto document = base::parse_json(json, "resources");
  if (!document) return unexpected(document.error());
  if (!document->is_object())
    return base::fail(base::ErrorCode::kInvalid, "resources: not an object");
  base::InputError wrong;
  Resources wanted = merge(std::move(now), base::member(*document, "cpu"), wrong);
  if (wrong.empty()) return wanted;
  return base::fail(base::ErrorCode::kInvalid, "resources: " + wrong.error().message);
}

}  // namespace ka::proxy
