// SPDX-License-Identifier: Apache-2.0
#include "affinity/helper/record_file.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>
#include <system_error>

#include "base/files.hpp"
#include "base/json/json.hpp"

namespace ka::helper {
namespace {

namespace json = boost::json;
using base::ErrorCode;
using base::Result;
using policy::format_list;
using policy::plan::HostRecord;

constexpr int kVersion = 1;

json::object to_json(const MaskKey& key, const HostRecord& record, bool is_begun) {
  json::array ours;
  for (const policy::CpuSet& cpus : record.ours) ours.emplace_back(format_list(cpus));
  return {{"kind", key.first},
          {"name", key.second},
          {"theirs", format_list(record.theirs)},
          {"ours", std::move(ours)},
          {"begun", is_begun}};
}

void read_record(const json::value& value, const std::string& path, base::InputError& errors,
                 Records& records) {
  MaskKey key;
  HostRecord record;
  std::vector<std::string> ours;
  base::Fields fields(value, path, errors);
  fields.require({"kind", "name", "theirs", "ours", "begun"});
  fields.read("kind", key.first);
  fields.read("name", key.second);
  fields.read("theirs", record.theirs);
  fields.read("ours", ours);
  for (const std::string& text : ours) {
    auto cpus = policy::parse_list<policy::CpuTag>(text);
    if (cpus)
      record.ours.push_back(*std::move(cpus));
    else
      fields.reject("ours", "not a set of CPUs");
  }
  bool is_begun = false;
  fields.read("begun", is_begun);
  fields.finish();
  if (is_begun) records.begun.insert(key);
  records.masks[std::move(key)] = std::move(record);
}

}  // namespace

std::string to_text(const Records& records, const std::string& boot_id) {
  json::array masks;
  for (const auto& [key, record] : records.masks) {
    masks.push_back(to_json(key, record, records.begun.contains(key)));
  }
  return json::serialize(json::object{{"version", kVersion},
                                      {"boot_id", boot_id},
                                      {"quiet", format_list(records.quiet)},
                                      {"masks", std::move(masks)}}) +
         '\n';
}

Result<Records> from_text(std::string_view text, const std::string& boot_id) {
  const auto document = base::parse_json(text, "quiet.json");
  if (!document) return unexpected(document.error());
  base::InputError errors;
  base::Fields fields(*document, "", errors);
  fields.require({"version", "boot_id", "quiet", "masks"});
  int version = 0;
  fields.read("version", version);
  if (version != kVersion) return base::fail(ErrorCode::kInvalid, "unknown version");
  std::string boot;
  fields.read("boot_id", boot);
  Records records;
  fields.read("quiet", records.quiet);
  fields.each("masks", [&](const json::value& value, const std::string& path) {
    read_record(value, path, errors, records);
  });
  fields.finish();
  if (!errors.empty()) return unexpected(errors.error());
  if (boot != boot_id) return base::fail(ErrorCode::kGone, "of another boot");
  return records;
}

Result<Records> RecordFile::load() const {
  const auto text = base::read_regular_file(path_, kMaxRecords);
  if (!text && text.error().code == ErrorCode::kGone) return Records{};
  auto records = text ? from_text(*text, boot_id_) : unexpected(text.error());
  if (!records && records.error().code == ErrorCode::kGone) return Records{};
  return records;
}

Result<void> RecordFile::save(const Records& records) const {
  if (records.masks.empty() && records.quiet.empty()) {
    std::error_code failed;
    std::filesystem::remove(path_, failed);
    if (!failed) return {};
    return base::fail_errno(failed.value(), "cannot remove " + path_.string());
  }
  return base::write_atomically(path_, to_text(records, boot_id_));
}

}  // namespace ka::helper
