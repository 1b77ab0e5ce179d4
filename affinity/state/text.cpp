// SPDX-License-Identifier: Apache-2.0
// The text form of a state file.
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>

#include "affinity/documents/plan.hpp"
#include "affinity/documents/specs.hpp"
#include "affinity/state/classes.hpp"
#include "affinity/state/guest.hpp"
#include "affinity/state/store.hpp"
#include "base/boot_id.hpp"
#include "base/json/checksum.hpp"
#include "base/json/json.hpp"

namespace ka::state {
namespace {

namespace json = boost::json;
using base::ErrorCode;
using base::fail;
using policy::format_list;

constexpr int kVersion = 1;

json::array to_json(const std::vector<policy::ledger::PreparedClaim>& claims) {
  json::array array;
  for (const auto& claim : claims) {
    array.push_back(json::object{{"uid", claim.uid}, {"cpus", format_list(claim.cpus)}});
  }
  return array;
}

json::object to_json(const policy::ledger::ContainerRecord& container) {
  const policy::ContainerFacts& facts = container.facts;
  json::object object{{"id", facts.id},
                      {"name", facts.name},
                      {"cpus", format_list(facts.cpus)},
                      {"mems", format_list(facts.mems)},
                      {"exclusive", facts.exclusive},
                      {"in_doubt", container.in_doubt},
                      {"quota", facts.quota},
                      {"period", facts.period},
                      {"shares", facts.shares},
                      {"exited", facts.exited},
                      {"source", policy::ledger::source_name(container.source)}};
  if (container.stated_exclusive) object["told_exclusive"] = *container.stated_exclusive;
  if (!container.claims.empty()) object["claims"] = to_json(container.claims);
  return object;
}

json::object to_json(const policy::ledger::Pin& by_hand) {
  json::object object{{"role", policy::role_name(by_hand.role)},
                      {"vcpu", by_hand.vcpu_index},
                      {"iothread", by_hand.iothread},
                      {"cpus", format_list(by_hand.cpus)},
                      {"pid", by_hand.pid},
                      {"since", by_hand.since}};
  if (by_hand.uid) object["uid"] = *by_hand.uid;
  if (by_hand.until) object["until"] = *by_hand.until;
  return object;
}

json::object to_json(const policy::ledger::PodRecord& pod) {
  json::array containers;
  for (const auto& [id, container] : pod.containers) containers.push_back(to_json(container));
  json::array overrides;
  for (const auto& by_hand : pod.overrides) overrides.push_back(to_json(by_hand));
  json::object object{{"id", pod.id},
                      {"pod_uid", pod.pod_uid},
                      {"pod_name", pod.pod_name},
                      {"handler", pod.handler},
                      {"cgroup", pod.cgroup},
                      {"qmp_socket", pod.qmp_socket},
                      {"agent", pod.agent},
                      {"domain", pod.domain},
                      {"source", policy::ledger::source_name(pod.source)},
                      {"containers", std::move(containers)},
                      {"overrides", std::move(overrides)}};
  if (pod.vmm) {
    object["vmm_pid"] = pod.vmm->pid;
    object["vmm_start_time"] = pod.vmm->start_time;
  }
  if (pod.proxy) {
    object["proxy_pid"] = pod.proxy->pid;
    object["proxy_start_time"] = pod.proxy->start_time;
  }
  auto annotations = documents::to_json(pod.annotations, pod.requested_grade);
  if (!annotations.empty()) object["annotations"] = std::move(annotations);
  if (pod.original_cpus) object["original_cpus"] = format_list(*pod.original_cpus);
  if (pod.domain_pinned) object["domain_pinned"] = true;
  return object;
}

json::object to_json(const policy::ProcessId& process) {
  return {{"pid", process.pid}, {"start_time", process.start_time}};
}

json::array to_json(const std::map<int, Original>& originals) {
  json::array array;
  for (const auto& [pid, original] : originals) {
    array.push_back(json::object{{"pid", pid},
                                 {"start_time", original.start_time},
                                 {"everywhere", original.everywhere},
                                 {"cpus", format_list(original.cpus)}});
  }
  return array;
}

json::object to_json(const SavedCgroup& cgroup) {
  json::object object{{"directory", cgroup.directory},
                      {"theirs", format_list(cgroup.theirs)},
                      {"ours", format_list(cgroup.ours)}};
  if (cgroup.next != cgroup.ours) object["next"] = format_list(cgroup.next);
  return object;
}

SavedCgroup read_cgroup(const json::value& value, base::InputError& input_error) {
  SavedCgroup cgroup;
  base::Fields fields(value, "cgroup", input_error);
  fields.require({"directory"});
  fields.read("directory", cgroup.directory);
  fields.read("theirs", cgroup.theirs);
  fields.read("ours", cgroup.ours);
  cgroup.next = cgroup.ours;
  fields.read("next", cgroup.next);
  fields.finish();
  return cgroup;
}

json::array to_json(const std::vector<SavedInterrupt>& interrupts) {
  json::array array;
  for (const SavedInterrupt& interrupt : interrupts) {
    array.push_back(json::object{{"number", interrupt.number},
                                 {"name", interrupt.name},
                                 {"theirs", format_list(interrupt.theirs)},
                                 {"ours", format_list(interrupt.ours)},
                                 {"next", format_list(interrupt.next)}});
  }
  return array;
}

SavedInterrupt read_interrupt(const json::value& value, const std::string& path,
                              base::InputError& input_error) {
  SavedInterrupt interrupt;
  base::Fields fields(value, path, input_error);
  fields.require({"number", "name"});
  fields.read("number", interrupt.number);
  fields.read("name", interrupt.name);
  fields.read("theirs", interrupt.theirs);
  fields.read("ours", interrupt.ours);
  fields.read("next", interrupt.next);
  fields.finish();
  return interrupt;
}

policy::ledger::Source read_source(base::Fields& fields) {
  std::string name = "state";
  fields.read("source", name);
  const auto source = policy::ledger::parse_source(name);
  if (!source) fields.reject("source", "unknown source");
  return source.value_or(policy::ledger::Source::kState);
}

policy::ledger::ContainerRecord read_container(const json::value& value, const std::string& path,
                                               base::InputError& input_error) {
  policy::ledger::ContainerRecord container;
  policy::ContainerFacts& facts = container.facts;
  base::Fields fields(value, path, input_error);
  fields.require({"id", "cpus", "exclusive", "exited"});
  fields.read("id", facts.id);
  documents::read_spec_fields(fields, facts);
  fields.read("exclusive", facts.exclusive);
  fields.read("in_doubt", container.in_doubt);
  fields.read("exited", facts.exited);
  bool writes = false;
  if (fields.read("told_exclusive", writes)) container.stated_exclusive = writes;
  container.source = read_source(fields);
  fields.each("claims", [&](const json::value& element, const std::string& at) {
    policy::ledger::PreparedClaim& claim = container.claims.emplace_back();
    base::Fields entry(element, at, input_error);
    entry.require({"uid", "cpus"});
    entry.read("uid", claim.uid);
    entry.read("cpus", claim.cpus);
    entry.finish();
  });
  fields.finish();
  return container;
}

policy::ledger::Pin read_override(const json::value& value, const std::string& path,
                                  base::InputError& input_error) {
  policy::ledger::Pin by_hand;
  std::string role;
  std::int64_t vcpu = -1, uid = 0, until = 0;
  base::Fields fields(value, path, input_error);
  fields.read("role", role);
  fields.read("vcpu", vcpu);
  fields.read("iothread", by_hand.iothread);
  fields.read("cpus", by_hand.cpus);
  fields.read("pid", by_hand.pid);
  fields.read("since", by_hand.since);
  if (fields.read("uid", uid)) by_hand.uid = static_cast<std::uint32_t>(uid);
  if (fields.read("until", until)) by_hand.until = until;
  fields.finish();
  const auto known = policy::parse_role(role);
  if (!known) fields.reject("role", "unknown role");
  by_hand.role = known.value_or(policy::Role::kEmulator);
  by_hand.vcpu_index = static_cast<int>(vcpu);
  return by_hand;
}

/// A pid without its start time identifies no process: pids are reused.
std::uint64_t read_start_time(base::Fields& fields, std::string_view name) {
  std::int64_t time = 0;
  fields.require({name});
  fields.read(name, time);
  return static_cast<std::uint64_t>(time);
}

/// Earlier versions did not write it: the proxy reports itself again.
void read_proxy_start_time(base::Fields& fields, policy::ledger::PodRecord& pod) {
  std::int64_t time = 0;
  fields.read("proxy_start_time", time);
  if (time <= 0) pod.proxy.reset();
  if (pod.proxy) pod.proxy->start_time = static_cast<std::uint64_t>(time);
}

policy::ledger::PodRecord read_pod(const json::value& value, base::InputError& input_error) {
  policy::ledger::PodRecord pod;
  base::Fields fields(value, "pod", input_error);
  fields.require({"id", "containers", "overrides"});
  fields.read("id", pod.id);
  documents::read_pod_fields(fields, pod);
  documents::read_proxy_fields(fields, pod);
  if (pod.vmm) pod.vmm->start_time = read_start_time(fields, "vmm_start_time");
  read_proxy_start_time(fields, pod);
  fields.read("domain_pinned", pod.domain_pinned);
  pod.source = read_source(fields);
  fields.each("containers", [&](const json::value& element, const std::string& path) {
    auto container = read_container(element, path, input_error);
    const std::string id = container.facts.id;
    pod.containers[id] = std::move(container);
  });
  fields.each("overrides", [&](const json::value& element, const std::string& path) {
    pod.overrides.push_back(read_override(element, path, input_error));
  });
  fields.finish();
  return pod;
}

policy::ProcessId read_ended(const json::value& value, base::InputError& input_error) {
  policy::ProcessId ended;
  base::Fields fields(value, "ended", input_error);
  fields.require({"pid"});
  documents::read_pid(fields, "pid", ended.pid);
  ended.start_time = read_start_time(fields, "start_time");
  fields.finish();
  return ended;
}

void read_original(const json::value& value, const std::string& path, base::InputError& input_error,
                   std::map<int, Original>& originals) {
  int pid = 0;
  Original original;
  base::Fields fields(value, path, input_error);
  fields.require({"pid"});
  documents::read_pid(fields, "pid", pid);
  original.start_time = read_start_time(fields, "start_time");
  fields.read("everywhere", original.everywhere);
  fields.read("cpus", original.cpus);
  fields.finish();
  originals[pid] = original;
}

}  // namespace

std::string to_text(const Saved& saved, const std::string& boot_id) {
  json::object document{{"version", kVersion},
                        {"boot_id", boot_id},
                        {"pod", to_json(saved.pod)},
                        {"originals", to_json(saved.originals)},
                        {"released", saved.released}};
  if (saved.left_alone) document["left_alone"] = true;
  if (saved.cgroup) document["cgroup"] = to_json(*saved.cgroup);
  if (!saved.interrupts.empty()) document["interrupts"] = to_json(saved.interrupts);
  if (!saved.classes.empty()) document["classes"] = to_json(saved.classes);
  if (!(saved.guest == SavedGuest())) document["guest"] = to_json(saved.guest);
  if (saved.ended) document["ended"] = to_json(*saved.ended);
  if (saved.plan) document["plan"] = documents::placements_to_json(*saved.plan);
  return base::with_checksum(document);
}

base::Result<Saved> from_text(std::string_view text, const std::string& boot_id) {
  const auto document = base::parse_json(text, "state");
  if (!document) return unexpected(document.error());
  base::InputError input_error;
  Saved saved;
  int version = 0;
  std::string boot;
  base::Fields fields(*document, "", input_error);
  fields.require({"version", "boot_id", "pod"});
  fields.read("version", version);
  fields.read("boot_id", boot);
  if (!input_error.empty()) return unexpected(input_error.error());
  if (version != kVersion) {
    return fail(ErrorCode::kInvalid, "version " + std::to_string(version) +
                                         ", but this program reads " + std::to_string(kVersion));
  }
  base::check_checksum(fields, text);  // first: the boot is among what may be damaged
  if (!input_error.empty()) return unexpected(input_error.error());
  if (auto present = base::check_boot(boot, boot_id); !present) {
    return unexpected(std::move(present.error()));
  }
  if (const json::value* pod = fields.find("pod")) saved.pod = read_pod(*pod, input_error);
  fields.each("originals", [&](const json::value& element, const std::string& path) {
    read_original(element, path, input_error, saved.originals);
  });
  fields.read("released", saved.released);
  fields.read("left_alone", saved.left_alone);
  if (const json::value* cgroup = fields.find("cgroup")) {
    saved.cgroup = read_cgroup(*cgroup, input_error);
  }
  fields.each("interrupts", [&](const json::value& element, const std::string& path) {
    saved.interrupts.push_back(read_interrupt(element, path, input_error));
  });
  if (const json::value* classes = fields.find("classes")) {
    saved.classes = read_classes(*classes, input_error);
  }
  if (const json::value* guest = fields.find("guest"))
    saved.guest = read_guest(*guest, input_error);
  if (const json::value* ended = fields.find("ended")) {
    saved.ended = read_ended(*ended, input_error);
  }
  if (const json::value* plan = fields.find("plan")) {
    auto read = documents::sandbox_plan_from_json(*plan);
    if (!read) return unexpected(std::move(read.error()));
    saved.plan = std::move(*read);
  }
  fields.finish();
  if (!input_error.empty()) return unexpected(input_error.error());
  return saved;
}

}  // namespace ka::state
