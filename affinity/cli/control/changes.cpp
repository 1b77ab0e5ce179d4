// SPDX-License-Identifier: Apache-2.0
// The commands that change something: reconcile, release, sandbox, container.
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>

#include "affinity/cli/client/daemon.hpp"
#include "affinity/cli/client/sandbox_name.hpp"
#include "affinity/cli/control/control.hpp"
#include "affinity/cli/control/outcome.hpp"

namespace ka::cli {
namespace {

/// A call about one sandbox, or about all where none is named.
Exit post_about(const Online& online, const std::string& call, const std::string& sandbox,
                Output& output) {
  const Daemon daemon(online.socket);
  const auto id = find_sandbox(daemon, sandbox);
  if (!id) return output.fail(id.error());
  return show_outcome(daemon.post(id->empty() ? call : call + "?id=" + encode(*id)), output);
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

Exit run(const ReconcileOptions& options, Output& output) {
  return post_about(options, "/v1/reconcile", options.sandbox, output);
}

Exit run(const ReleaseOptions& options, Output& output) {
  return post_about(options, "/v1/release", options.sandbox, output);
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
  const Daemon daemon(options.socket);
  const auto id = find_sandbox(daemon, options.sandbox);
  if (!id) return output.fail(id.error());
  return show_outcome(daemon.remove(sandbox_target(*id)), output);
}

Exit run(const ContainerUpdateOptions& options, Output& output) {
  boost::json::object body;
  set(body, "name", options.name);
  set(body, "cpus", options.cpus);
  set(body, "mems", options.mems);
  if (options.quota != 0) body["quota"] = options.quota;
  if (options.period != 0) body["period"] = options.period;
  if (options.exclusive) body["exclusive"] = *options.exclusive;
  const Daemon daemon(options.socket);
  const auto id = find_sandbox(daemon, options.sandbox);
  if (!id) return output.fail(id.error());
  return show_outcome(daemon.put(container_target(*id, options.container), body), output);
}

Exit run(const ContainerRemoveOptions& options, Output& output) {
  const Daemon daemon(options.socket);
  const auto id = find_sandbox(daemon, options.sandbox);
  if (!id) return output.fail(id.error());
  const auto container = find_container(daemon, *id, options.container);
  if (!container) return output.fail(container.error());
  return show_outcome(daemon.remove(container_target(*id, *container)), output);
}

}  // namespace ka::cli
