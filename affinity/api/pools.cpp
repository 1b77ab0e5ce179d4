// SPDX-License-Identifier: Apache-2.0
#include "affinity/api/pools.hpp"

#include <boost/json/array.hpp>
#include <boost/json/value.hpp>
#include <utility>

#include "affinity/api/allocation_findings.hpp"
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

json::object verified(line::Verifier& verifier, const managed::Manager* manager) {
  auto report = verifier.verify();
  if (manager != nullptr) collect_allocations(*manager, report);
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
