// SPDX-License-Identifier: Apache-2.0
#include "affinity/cli/selftest/record.hpp"

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>
#include <optional>
#include <utility>

#include "affinity/cli/client/daemon.hpp"
#include "base/files.hpp"
#include "base/json/json.hpp"
#include "base/json/lookup.hpp"

namespace ka::cli::selftest {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;
using base::Result;

/// kubelet reads no file whose name begins with a dot.
fs::path hidden(const fs::path& manifest) {
  return manifest.parent_path() / ('.' + manifest.filename().native());
}

bool has_our_name(std::string_view name) {
  if (name.starts_with('.')) name.remove_prefix(1);
  return name.starts_with(kNamePrefix);
}

/// The uid of the pod that a manifest of ours describes.
std::optional<std::string> uid_in(const fs::path& file) {
  const auto text = base::read_regular_file(file);
  const auto manifest = base::parse_json(text.value_or(""), file.native());
  if (!manifest) return std::nullopt;
  const json::value& metadata = base::member(*manifest, "metadata");
  if (text_of(base::member(metadata, "labels"), kLabel) != "true") return std::nullopt;
  return text_of(metadata, "uid");
}

Result<void> remove_file(const fs::path& file) {
  std::error_code wrong;
  fs::remove(file, wrong);
  if (wrong) return base::fail_errno(wrong.value(), file.native());
  return {};
}

}  // namespace

Record::Record(fs::path file) : file_(std::move(file)) {
  const auto text = base::read_regular_file(file_);
  const auto document = base::parse_json(text.value_or(""), file_.native());
  if (!document) return;
  for (const json::value& one : array_of(*document, "placed")) {
    placed_.push_back({text_of(one, "manifest"), text_of(one, "uid")});
  }
}

void Record::add_leftovers(const fs::path& directory) {
  for (const std::string& name :
       base::list_directory(directory).value_or(std::vector<std::string>{})) {
    if (!has_our_name(name)) continue;
    const auto uid = uid_in(directory / name);
    if (!uid) continue;
    const Placed found{directory / name, *uid};
    if (std::ranges::find(placed_, found) == placed_.end()) placed_.push_back(found);
  }
}

Result<void> Record::place(const fs::path& directory, const Pod& pod) {
  const fs::path manifest = directory / (pod.name + ".json");
  placed_.push_back({manifest, pod.uid});
  if (auto saved = save(); !saved) return saved;
  if (auto written = base::write_atomically(hidden(manifest), manifest_of(pod)); !written) {
    return written;
  }
  std::error_code wrong;
  fs::rename(hidden(manifest), manifest, wrong);
  if (wrong) return base::fail_errno(wrong.value(), manifest.native());
  return {};
}

Result<void> Record::remove_manifests() const {
  for (const Placed& one : placed_) {
    const fs::path fresh = hidden(one.manifest);
    for (const fs::path& file : {one.manifest, fresh, fs::path(fresh.native() + ".new")}) {
      if (auto removed = remove_file(file); !removed) return removed;
    }
  }
  return {};
}

Result<void> Record::clear() {
  placed_.clear();
  return remove_file(file_);
}

Result<void> Record::save() const {
  std::error_code wrong;
  fs::create_directories(file_.parent_path(), wrong);
  if (wrong) return base::fail_errno(wrong.value(), file_.parent_path().native());
  json::array placed;
  for (const Placed& one : placed_) {
    placed.push_back({{"manifest", one.manifest.native()}, {"uid", one.uid}});
  }
  return base::write_atomically(file_,
                                json::serialize(json::object{{"placed", std::move(placed)}}));
}

}  // namespace ka::cli::selftest
