// SPDX-License-Identifier: Apache-2.0
#include "affinity/api/requests.hpp"

#include <algorithm>
#include <boost/json/value.hpp>

#include "affinity/documents/specs.hpp"
#include "base/files.hpp"
#include "base/json/json.hpp"
#include "base/unix_socket.hpp"
#include "guest-agent/address/address.hpp"
#include "vmm/address/qmp_socket.hpp"

namespace ka::api {
namespace {

/// A pin with an end has it within a year; what is to hold longer has none.
constexpr std::int64_t kMaxPinSeconds = 365LL * 24 * 60 * 60;

/// `"vcpu", "emulator", ...`
std::string pinnable_roles() {
  std::string text;
  for (const policy::RoleInfo& info : policy::kRoles) {
    if (info.is_pinnable) text += (text.empty() ? "\"" : ", \"") + std::string(info.name) + '"';
  }
  return text;
}

/// The threads that a path names, without CPUs.
base::Result<policy::ledger::Pin> read_threads(const std::string& role, const std::string& thread) {
  policy::ledger::Pin given;
  const auto* known = std::ranges::find(policy::kRoles, role, &policy::RoleInfo::name);
  if (known == std::end(policy::kRoles) || !known->is_pinnable) {
    return base::fail(base::ErrorCode::kNotFound,
                      '"' + role + "\" is not one of " + pinnable_roles());
  }
  given.role = known->role;
  if (given.role == policy::Role::kIothread) {
    given.iothread = thread;
  } else if (given.role == policy::Role::kVcpu) {
    const auto index = base::parse_number(thread);
    if (!index || *index < 0 || *index >= policy::kMaxIds) {
      return base::fail(base::ErrorCode::kInvalid, '"' + thread + "\" is not a vCPU index");
    }
    given.vcpu_index = static_cast<int>(*index);
  } else if (!thread.empty()) {
    return base::fail(base::ErrorCode::kInvalid, role + " threads cannot be pinned one by one");
  }
  return given;
}

}  // namespace

base::Result<policy::ledger::Event> read_pin(const std::string& sandbox, const std::string& role,
                                             const std::string& thread, std::string_view body,
                                             const std::optional<http::Peer>& peer) {
  auto given = read_threads(role, thread);
  if (!given) return unexpected(std::move(given.error()));
  const auto document = base::parse_json(body, "body");
  if (!document) return unexpected(document.error());
  base::InputError input_error;
  base::Fields fields(*document, "", input_error);
  policy::ledger::OverrideSet event{
      .sandbox = sandbox, .value = {}, .force = false, .lasts_for = {}};
  fields.require({"cpus"});
  fields.read("cpus", given->cpus);
  fields.read("force", event.force);
  std::int64_t seconds = 0;
  if (fields.read("for", seconds)) event.lasts_for = seconds;
  if (event.lasts_for && (seconds < 1 || seconds > kMaxPinSeconds)) {
    fields.reject("for", "must be 1 to " + std::to_string(kMaxPinSeconds) + " seconds");
  }
  fields.finish();
  if (!input_error.empty()) return unexpected(input_error.error());
  if (given->cpus.empty()) {
    return base::fail(base::ErrorCode::kInvalid, "cpus: must not be empty");
  }
  event.value = std::move(*given);
  if (peer) {
    event.value.uid = peer->uid;
    event.value.pid = peer->pid;
  }
  return policy::ledger::Event{policy::ledger::Source::kApi, std::move(event)};
}

base::Result<policy::ledger::Event> read_unpin(const std::string& sandbox, const std::string& role,
                                               const std::string& thread) {
  auto given = read_threads(role, thread);
  if (!given) return unexpected(std::move(given.error()));
  return policy::ledger::Event{
      policy::ledger::Source::kApi,
      policy::ledger::OverrideSet{.sandbox = sandbox, .value = std::move(*given)}};
}

base::Result<policy::ledger::Event> read_sandbox(policy::ledger::Source source,
                                                 const std::string& id, std::string_view body) {
  const auto document = base::parse_json(body, "body");
  if (!document) return unexpected(document.error());
  base::InputError input_error;
  base::Fields fields(*document, "", input_error);
  policy::ledger::PodSeen pod{.id = id};
  documents::read_pod_fields(fields, pod);
  if (source == policy::ledger::Source::kProxy) documents::read_proxy_fields(fields, pod);
  fields.finish();
  if (!input_error.empty()) return unexpected(input_error.error());
  if (!pod.qmp_socket.empty()) {
    // One that cannot be examined is refused, too: whoever names it can name another.
    if (const auto good = vmm::check_qmp_socket(pod.qmp_socket); !good) {
      return base::fail(base::ErrorCode::kInvalid, good.error().message);
    }
  }
  if (!pod.agent.empty()) {
    const auto address = guest::parse_address(pod.agent);
    if (!address) return unexpected(address.error());
    const auto good =
        address->path.empty() ? base::Result<void>{} : base::check_is_socket(address->path);
    if (!good) return base::fail(base::ErrorCode::kInvalid, "agent: " + good.error().message);
  }
  return policy::ledger::Event{source, std::move(pod)};
}

base::Result<policy::ledger::Event> read_container(policy::ledger::Source source,
                                                   const std::string& sandbox,
                                                   const std::string& id, std::string_view body) {
  const auto document = base::parse_json(body, "body");
  if (!document) return unexpected(document.error());
  base::InputError input_error;
  base::Fields fields(*document, "", input_error);
  policy::ContainerFacts facts{.id = id};
  documents::read_spec_fields(fields, facts);
  bool exclusive = false;
  const bool is_decided = fields.read("exclusive", exclusive);
  fields.finish();
  if (!input_error.empty()) return unexpected(input_error.error());
  auto report = policy::ledger::whole_report(sandbox, facts);
  if (is_decided) report.exclusive = exclusive;
  return policy::ledger::Event{source, std::move(report)};
}

}  // namespace ka::api
