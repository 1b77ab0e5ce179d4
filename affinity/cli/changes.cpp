// SPDX-License-Identifier: Apache-2.0
// The commands that change something: reconcile, release, sandbox, container.
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>

#include "affinity/cli/commands.hpp"
#include "affinity/cli/daemon.hpp"
#include "affinity/cli/describe.hpp"

namespace ka::cli {
namespace {

std::string for_one_or_all(const std::string& call, const std::string& sandbox) {
  return sandbox.empty() ? call : call + "?id=" + encode(sandbox);
}

std::string sandbox_target(const std::string& sandbox) {
  return "/v1/sandboxes/" + encode(sandbox);
}

std::string container_target(const std::string& sandbox, const std::string& container) {
  return sandbox_target(sandbox) + "/containers/" + encode(container);
}

void set(boost::json::object& body, std::string_view key, const std::string& value) {
  if (!value.empty()) body[key] = value;
}

}  // namespace

Exit show_outcome(const base::Result<boost::json::object>& answer, Output& output) {
  if (!answer) return output.fail(answer.error());
  const boost::json::value outcome(*answer);
  output.show(outcome, [&outcome] { return describe_outcome(outcome); });
  return number_of(outcome, "failed") > 0 ? Exit::kNo : Exit::kDone;
}

Exit run(const ReconcileOptions& options, Output& output) {
  const Daemon daemon(options.socket);
  return show_outcome(daemon.post(for_one_or_all("/v1/reconcile", options.sandbox)), output);
}

Exit run(const ReleaseOptions& options, Output& output) {
  const Daemon daemon(options.socket);
  return show_outcome(daemon.post(for_one_or_all("/v1/release", options.sandbox)), output);
}

Exit run(const SandboxAddOptions& options, Output& output) {
  boost::json::object body;
  if (options.domain.empty()) body["vmm_pid"] = options.vmm_pid;
  set(body, "domain", options.domain);
  set(body, "qmp_socket", options.qmp);
  set(body, "agent", options.agent);
  set(body, "cgroup", options.cgroup);
  set(body, "pod_uid", options.pod_uid);
  set(body, "pod_name", options.pod_name);
  set(body, "handler", options.handler);
  return show_outcome(Daemon(options.socket).put(sandbox_target(options.sandbox), body), output);
}

Exit run(const SandboxRemoveOptions& options, Output& output) {
  return show_outcome(Daemon(options.socket).remove(sandbox_target(options.sandbox)), output);
}

Exit run(const ContainerUpdateOptions& options, Output& output) {
  boost::json::object body;
  set(body, "name", options.name);
  set(body, "cpus", options.cpus);
  set(body, "mems", options.mems);
  if (options.quota != 0) body["quota"] = options.quota;
  if (options.period != 0) body["period"] = options.period;
  if (options.exclusive) body["exclusive"] = *options.exclusive;
  const std::string target = container_target(options.sandbox, options.container);
  return show_outcome(Daemon(options.socket).put(target, body), output);
}

Exit run(const ContainerRemoveOptions& options, Output& output) {
  const std::string target = container_target(options.sandbox, options.container);
  return show_outcome(Daemon(options.socket).remove(target), output);
}

}  // namespace ka::cli
