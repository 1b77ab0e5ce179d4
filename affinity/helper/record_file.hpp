// SPDX-License-Identifier: Apache-2.0
// What the helper changed, on disk: whoever runs next puts it back. Records are a type with
//
//     static constexpr const char* kFile;       // the name of their file
//     bool empty() const;
//     void write(boost::json::object& document) const;
//     static Records read(base::Fields& fields, base::InputError& errors);
#pragma once

#include <boost/json/object.hpp>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "base/files.hpp"
#include "base/json/json.hpp"
#include "base/result.hpp"

namespace ka::helper {

inline constexpr std::size_t kMaxRecords = std::size_t{16} << 20;  ///< bytes

/// The text of a document, with its version and the boot that it belongs to.
std::string record_text(boost::json::object document, const std::string& boot_id);
/// Passes the fields of such a text to `read`. kInvalid where it is damaged or of a newer version;
/// kGone where it is of another boot.
base::Result<void> read_record_text(
    std::string_view text, const std::string& name, const std::string& boot_id,
    const std::function<void(base::Fields&, base::InputError&)>& read);
/// Succeeds where there is none, too.
base::Result<void> remove_record(const std::filesystem::path& path);

template <typename Records>
std::string to_text(const Records& records, const std::string& boot_id) {
  boost::json::object document;
  records.write(document);
  return record_text(std::move(document), boot_id);
}

/// Errors: see read_record_text().
template <typename Records>
base::Result<Records> from_text(std::string_view text, const std::string& boot_id) {
  Records records;
  const auto read = read_record_text(text, Records::kFile, boot_id,
                                     [&](base::Fields& fields, base::InputError& errors) {
                                       records = Records::read(fields, errors);
                                     });
  if (!read) return unexpected(read.error());
  return records;
}

template <typename Records>
class RecordFile {
 public:
  /// `directory` must exist.
  RecordFile(const std::filesystem::path& directory, std::string boot_id)
      : path_(directory / Records::kFile), boot_id_(std::move(boot_id)) {}

  const std::filesystem::path& path() const { return path_; }

  /// Empty where there is no file, or one of another boot, of which the kernel knows nothing.
  base::Result<Records> load() const {
    const auto text = base::read_regular_file(path_, kMaxRecords);
    auto records = text ? from_text<Records>(*text, boot_id_) : unexpected(text.error());
    if (is_gone(records)) return Records{};
    return records;
  }

  /// Removes the file where there is nothing to record.
  base::Result<void> save(const Records& records) const {
    if (records.empty()) return remove_record(path_);
    return base::write_atomically(path_, to_text(records, boot_id_));
  }

 private:
  std::filesystem::path path_;
  std::string boot_id_;
};

}  // namespace ka::helper
