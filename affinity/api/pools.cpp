// SPDX-License-Identifier: Apache-2.0
#include "affinity/api/pools.hpp"

#include <boost/json/array.hpp>
#include <boost/json/value.hpp>
#include <utility>

#include "affinity/api/encode.hpp"
#include "affinity/line/report.hpp"
#include "affinity/managed/allocations.hpp"
#include "base/json/json.hpp"
#include "base/text.hpp"

namespace ka::api {
namespace json = boost::json;
using policy::format_list;
using policy::managed::Entry;

base::Result<void> change_class(managed::Manager& manager, const std::string& sandbox,
                                std::string_view body) {
  const auto document = base::parse_json(body, "request");
  if (!document) return unexpected(document.error());
  base::InputError errors;
  base::Fields fields(*document, "", errors);
  std::string use;
  std::string container;
  fields.require({"class"});
  fields.read("class", use);
  const bool is_one = fields.read("container", container);
  fields.finish();
  const auto parsed = policy::managed::parse_class(use);
  if (!parsed) fields.reject("class", "must be \"none\", \"exclusive\" or \"share\"");
  if (!errors.empty()) return unexpected(errors.error());
  return manager.change(sandbox, is_one ? std::optional(container) : std::nullopt, *parsed);
}

base::Result<void> request_class(managed::Manager& manager, const std::string& sandbox,
                                 std::string_view body) {
  const auto document = base::parse_json(body, "request");
  if (!document) return unexpected(document.error());
  base::InputError errors;
  base::Fields fields(*document, "", errors);
  std::string container, requested;
  fields.require({"container"});
  fields.read("container", container);
  const bool is_any = fields.read("class", requested);
  fields.finish();
  if (!errors.empty()) return unexpected(errors.error());
  return manager.request(sandbox, container,
                         is_any ? std::optional(base::printable(requested)) : std::nullopt);
}

json::object to_json(const Entry& entry, const policy::CpuSet& cpus) {
  json::object object{{"id", entry.about.id},
                      {"pod", entry.about.sandbox},
                      {"pod_uid", entry.about.pod_uid},
                      {"pod_name", entry.about.pod_name},
                      {"name", entry.about.name},
                      {"pool", entry.infra                                        ? "infra"
                               : entry.use == policy::managed::CpuUse::kExclusive ? "exclusive"
                                                                                  : "shared"},
                      {"class", policy::managed::class_name(entry.use)},
                      {"cpus", format_list(cpus)},
                      {"adopted", entry.adopted}};
  if (entry.about.requested) object["requested"] = *entry.about.requested;
  if (!entry.mems.empty()) object["mems"] = format_list(entry.mems);
  if (entry.memory_unbound) object["memory_unbound"] = true;
  if (!entry.problem) return object;
  object["problem"] = policy::managed::problem_name(entry.problem->kind);
  object["reason"] = managed::sentence(*entry.problem);
  object["remedy"] = managed::remedy(*entry.problem);
  return object;
}

namespace {

std::string sets_text(const managed::AllowedSets& sets) {
  return '"' + format_list(sets.cpus) + "\", memory nodes \"" + format_list(sets.mems) + '"';
}

line::Finding unread(const std::string& id, const Entry& entry, const base::Error& error) {
  return {.severity = line::Severity::kUnknown,
          .invariant = "drift",
          .sandbox = entry.about.sandbox,
          .subject = "container " + id,
          .text = managed::title(entry) + ": its cgroup cannot be read: " + error.message,
          .reason = "cpuset-unread"};
}

line::Finding differing(const std::string& id, const Entry& entry,
                        const managed::Manager::Mismatch& found, bool settling) {
  const std::string text = managed::title(entry) + ": its cgroup has CPUs " +
                           sets_text(found.actual) + ", allocated are " + sets_text(found.wanted);
  line::Finding finding{.severity = settling ? line::Severity::kNote : line::Severity::kViolated,
                        .invariant = "drift",
                        .sandbox = entry.about.sandbox,
                        .subject = "container " + id,
                        .wanted = found.wanted.cpus,
                        .actual = found.actual.cpus,
                        .text = settling ? text + "; the runtime may be writing it" : text,
                        .reason = "cpuset-differs"};
  if (!settling) {
    finding.remedy =
        "it is written at the next drift_check; where it differs again, stop the program that "
        "writes it";
  }
  return finding;
}

void collect_cpusets(const managed::Manager& manager, line::VerifyReport& report) {
  for (const auto& [id, entry] : manager.books().entries()) {
    const auto found = manager.mismatch(id);
    if (!found) {
      report.findings.push_back(unread(id, entry, found.error()));
    } else if (*found) {
      report.findings.push_back(differing(id, entry, **found, manager.is_settling()));
    }
  }
}

}  // namespace

json::object verified(line::Verifier& verifier, const managed::Manager* manager) {
  auto report = verifier.verify();
  if (manager != nullptr) collect_cpusets(*manager, report);
  report.sort();
  return to_json(report);
}

json::object pools_to_json(const managed::Manager& manager) {
  const policy::managed::Books& books = manager.books();
  json::array containers;
  for (const auto& [id, entry] : books.entries()) {
    if (!entry.ended) containers.push_back(to_json(entry, books.cpus_of(id)));
  }
  json::object object{{"exclusive", format_list(books.exclusive())},
                      {"available", format_list(books.available())},
                      {"shared", format_list(books.shared_pool())},
                      {"kept_shared", format_list(books.kept_shared())},
                      {"infra", format_list(books.infra())},
                      {"outside", format_list(books.outside())},
                      {"containers", std::move(containers)}};
  if (!manager.unsaved().empty()) object["unsaved"] = manager.unsaved();
  return object;
}

}  // namespace ka::api
