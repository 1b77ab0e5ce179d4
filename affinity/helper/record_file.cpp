// SPDX-License-Identifier: Apache-2.0
#include "affinity/helper/record_file.hpp"

#include <system_error>

#include "base/boot_id.hpp"
#include "base/json/checksum.hpp"

namespace ka::helper {

using base::ErrorCode;

constexpr int kVersion = 1;

std::string record_text(boost::json::object document, const std::string& boot_id) {
  document["version"] = kVersion;
  document["boot_id"] = boot_id;
  return base::with_checksum(document);
}

base::Result<void> read_record_text(
    std::string_view text, const std::string& name, const std::string& boot_id,
    const std::function<void(base::Fields&, base::InputError&)>& read) {
  const auto document = base::parse_json(text, name);
  if (!document) return unexpected(document.error());
  base::InputError errors;
  base::Fields fields(*document, "", errors);
  fields.require({"version", "boot_id"});
  int version = 0;
  fields.read("version", version);
  if (version != kVersion) return base::fail(ErrorCode::kInvalid, "unknown version");
  std::string boot;
  fields.read("boot_id", boot);
  base::check_checksum(fields, text);
  read(fields, errors);
  fields.finish();
  if (!errors.empty()) return unexpected(errors.error());
  return base::check_boot(boot, boot_id);
}

base::Result<void> remove_record(const std::filesystem::path& path) {
  std::error_code failed;
  std::filesystem::remove(path, failed);
  if (!failed) return {};
  return base::fail_errno(failed.value(), "cannot remove " + path.string());
}

}  // namespace ka::helper
