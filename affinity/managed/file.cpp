// SPDX-License-Identifier: Apache-2.0
#include "affinity/managed/file.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <system_error>
#include <utility>

#include "base/boot_id.hpp"
#include "base/files.hpp"
#include "base/json/checksum.hpp"
#include "base/json/json.hpp"
#include "base/private_directory.hpp"
#include "base/text.hpp"

namespace ka::managed {
namespace {

namespace json = boost::json;
using base::ErrorCode;
using base::fail;
using policy::format_list;
using policy::managed::Candidate;
using policy::managed::CpuUse;
using policy::managed::Entry;
using policy::managed::Problem;
using policy::managed::Saved;

constexpr int kVersion = 1;

json::object to_json(const Problem& problem) {
  return {{"kind", policy::managed::problem_name(problem.kind)},
          {"requested", problem.requested},
          {"available", problem.available}};
}

json::object to_json(const Saved& saved) {
  const Entry& entry = saved.entry;
  const Candidate& about = entry.about;
  json::object object{{"id", about.id},
                      {"sandbox", about.sandbox},
                      {"pod_uid", about.pod_uid},
                      {"pod_name", about.pod_name},
                      {"name", about.name},
                      {"guaranteed", about.guaranteed},
                      {"quota", about.quota},
                      {"period", about.period},
                      {"class", policy::managed::class_name(entry.use)},
                      {"infra", entry.infra},
                      {"adopted", entry.adopted},
                      {"ended", entry.ended},
                      {"former", format_list(entry.former)},
                      {"cpus_requested", saved.cpus_requested},
                      {"cpus", format_list(saved.cpus)},
                      {"promised", format_list(saved.promised)}};
  if (!saved.nodes.empty()) object["nodes"] = format_list(saved.nodes);
  if (!entry.mems.empty()) object["mems"] = format_list(entry.mems);
  if (entry.memory_unbound) object["memory_unbound"] = true;
  if (!about.cgroup.empty()) object["cgroup"] = about.cgroup;
  if (about.requested) object["requested_class"] = *about.requested;
  if (entry.problem) object["problem"] = to_json(*entry.problem);
  return object;
}

Problem read_problem(const json::value& value, const std::string& path, base::InputError& errors) {
  Problem problem;
  std::string kind;
  base::Fields fields(value, path, errors);
  fields.require({"kind"});
  fields.read("kind", kind);
  fields.read("requested", problem.requested);
  fields.read("available", problem.available);
  fields.finish();
  const auto parsed = policy::managed::parse_problem(kind);
  if (!parsed) fields.reject("kind", "unknown");
  problem.kind = parsed.value_or(problem.kind);
  return problem;
}

void read_candidate(base::Fields& fields, Candidate& about) {
  fields.read("id", about.id);
  fields.read("sandbox", about.sandbox);
  fields.read("pod_uid", about.pod_uid);
  fields.read("pod_name", about.pod_name);
  fields.read("name", about.name);
  fields.read("guaranteed", about.guaranteed);
  fields.read("quota", about.quota);
  fields.read("period", about.period);
  fields.read("cgroup", about.cgroup);
  std::string requested;
  if (fields.read("requested_class", requested)) about.requested = requested;
}

/// What no daemon writes.
void check(const Saved& saved, base::Fields& fields) {
  const Candidate& about = saved.entry.about;
  if (!base::is_id(about.id)) fields.reject("id", "not an id");
  if (!base::is_id(about.sandbox)) fields.reject("sandbox", "not an id");
  const bool has_cpus = saved.entry.use != CpuUse::kNone && !saved.entry.ended;
  if (saved.cpus_requested < (has_cpus ? 1 : 0) || saved.cpus_requested > policy::kMaxIds) {
    fields.reject("cpus_requested", "out of range");
  }
  if (has_cpus && saved.entry.infra) fields.reject("class", "not of the infra pool");
}

Saved read_saved(const json::value& value, const std::string& path, base::InputError& errors) {
  Saved saved;
  Entry& entry = saved.entry;
  base::Fields fields(value, path, errors);
  fields.require({"id", "sandbox", "class"});
  read_candidate(fields, entry.about);
  std::string use;
  fields.read("class", use);
  const auto parsed = policy::managed::parse_class(use);
  if (!parsed) fields.reject("class", "unknown");
  entry.use = parsed.value_or(entry.use);
  fields.read("infra", entry.infra);
  fields.read("adopted", entry.adopted);
  fields.read("ended", entry.ended);
  fields.read("former", entry.former);
  fields.read("cpus_requested", saved.cpus_requested);
  fields.read("cpus", saved.cpus);
  fields.read("promised", saved.promised);
  fields.read("nodes", saved.nodes);
  fields.read("mems", entry.mems);
  fields.read("memory_unbound", entry.memory_unbound);
  if (const json::value* problem = fields.find("problem")) {
    entry.problem = read_problem(*problem, fields.path("problem"), errors);
  }
  fields.finish();
  check(saved, fields);
  return saved;
}

/// Also a link that leads nowhere: allocations may be behind it.
bool is_there(const std::filesystem::path& path) {
  std::error_code failed;
  return std::filesystem::symlink_status(path, failed).type() !=
         std::filesystem::file_type::not_found;
}

}  // namespace

std::string to_text(const std::vector<Saved>& saved, const std::string& boot_id) {
  json::array containers;
  for (const Saved& one : saved) containers.push_back(to_json(one));
  return base::with_checksum(
      {{"version", kVersion}, {"boot_id", boot_id}, {"containers", std::move(containers)}});
}

base::Result<std::vector<Saved>> from_text(std::string_view text, const std::string& boot_id) {
  const auto document = base::parse_json(text, std::string(kFile));
  if (!document) return unexpected(document.error());
  base::InputError errors;
  base::Fields fields(*document, "", errors);
  fields.require({"version", "boot_id", "containers"});
  int version = 0;
  fields.read("version", version);
  if (version != kVersion) return fail(ErrorCode::kInvalid, "unknown version");
  base::check_checksum(fields, text);
  std::string boot;
  fields.read("boot_id", boot);
  if (!errors.empty()) return unexpected(errors.error());
  if (auto present = base::check_boot(boot, boot_id); !present) {
    return unexpected(std::move(present.error()));
  }
  std::vector<Saved> saved;
  fields.each("containers", [&](const json::value& value, const std::string& path) {
    saved.push_back(read_saved(value, path, errors));
  });
  fields.finish();
  if (!errors.empty()) return unexpected(errors.error());
  return saved;
}

base::Result<std::vector<Saved>> AllocationFile::load() {
  const auto text = base::make_private_file(path_).and_then(
      [this](bool) { return base::read_regular_file(path_, kMaxFile); });
  if (is_gone(text) && !is_there(path_)) return std::vector<Saved>{};
  auto saved = text ? from_text(*text, boot_id_) : unexpected(text.error());
  if (text && is_gone(saved)) return std::vector<Saved>{};
  if (!saved && saved.error().code == ErrorCode::kInvalid) {
    std::error_code ignored;
    std::filesystem::rename(path_, path_.string() + ".unreadable", ignored);
  }
  unread_ = !saved && saved.error().code != ErrorCode::kInvalid;
  return saved;
}

void AllocationFile::remove() {
  std::error_code ignored;
  std::filesystem::remove(path_, ignored);
  written_.reset();
}

base::Result<void> AllocationFile::save(const std::vector<Saved>& saved) {
  if (unread_) {
    return fail(ErrorCode::kUnavailable,
                path_.string() + " could not be read, and is not overwritten: restart the daemon");
  }
  std::string text = to_text(saved, boot_id_);
  if (written_ == text) return {};
  if (text.size() > kMaxFile) {
    return fail(ErrorCode::kInvalid, std::to_string(text.size()) + " bytes exceed the limit of " +
                                         std::to_string(kMaxFile));
  }
  auto done = base::write_atomically(path_, text);
  if (done) written_ = std::move(text);
  return done;
}

}  // namespace ka::managed
