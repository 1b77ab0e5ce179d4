// SPDX-License-Identifier: Apache-2.0
#include "affinity/state/store.hpp"

#include <algorithm>
#include <functional>
#include <system_error>
#include <utility>

#include "base/files.hpp"
#include "base/private_directory.hpp"

namespace ka::state {
namespace {

using base::ErrorCode;
using policy::ledger::LostState;

constexpr std::string_view kSuffix = ".json";
constexpr std::string_view kUnreadable = ".unreadable";
constexpr std::string_view kObsolete = ".obsolete";
constexpr std::string_view kHex = "0123456789ABCDEF";

constexpr std::string_view kMarks = "-_.";       ///< in names as they are
constexpr std::string_view kFormerMarks = "-_";  ///< in those of earlier versions

bool is_plain(char c, std::string_view marks) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         marks.find(c) != std::string_view::npos;
}

/// Letters, digits and `marks` as they are, all else as %XX.
std::string coded(const std::string& pod, std::string_view marks) {
  std::string name;
  for (const char c : pod) {
    if (is_plain(c, marks)) {
      name += c;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    name += {'%', kHex[byte >> 4U], kHex[byte & 15U]};
  }
  return name;
}

/// "<pod>.json" of "<pod>.json", "<pod>.json.unreadable", "<pod>.json.unreadable.2".
std::string_view without_marks(std::string_view name) {
  return name.substr(
      0, name.rfind(kSuffix) == std::string_view::npos ? 0 : name.rfind(kSuffix) + kSuffix.size());
}

/// Also of files that are no pod's: "allocations.unreadable".
bool is_set_aside(std::string_view name) {
  const std::string_view pods = without_marks(name);
  const std::string_view marks = name.substr(pods.size());
  return pods.empty() ? marks.ends_with(kUnreadable) : marks.starts_with(kUnreadable);
}

/// `file`, or where that is there already "<file>.2" and so on.
std::string free_name(const std::string& file) {
  std::string name = file;
  std::error_code ignored;
  for (int i = 2; std::filesystem::exists(name, ignored); ++i) {
    name = file + '.' + std::to_string(i);
  }
  return name;
}

/// The name that the first version gave: a hash told those apart whose characters it replaced.
std::string first_name(const std::string& pod) {
  constexpr std::size_t kKept = 100;
  std::string name = pod.substr(0, kKept);
  std::ranges::replace_if(name, [](char c) { return !is_plain(c, kFormerMarks); }, '_');
  if (name != pod) name += '-' + std::to_string(std::hash<std::string>{}(pod));
  return name + std::string(kSuffix);
}

/// The name that the versions after the first gave.
std::string second_name(const std::string& pod) {
  return coded(pod, kFormerMarks) + std::string(kSuffix);
}

/// The file that was written last first.
std::vector<std::string> by_time(const std::filesystem::path& directory,
                                 const std::vector<std::string>& names) {
  using Time = std::filesystem::file_time_type;
  std::vector<std::pair<Time, std::string>> files;
  for (const std::string& name : names) {
    std::error_code failed;
    const Time time = std::filesystem::last_write_time(directory / name, failed);
    files.emplace_back(failed ? Time::min() : time, name);
  }
  std::ranges::stable_sort(files, std::ranges::greater(), &std::pair<Time, std::string>::first);
  std::vector<std::string> sorted;
  for (auto& [time, name] : files) sorted.push_back(std::move(name));
  return sorted;
}

base::Result<void> rename(const std::string& from, const std::string& to) {
  std::error_code failed;
  std::filesystem::rename(from, to, failed);
  if (failed) return base::fail_errno(failed.value(), "cannot rename " + from);
  return {};
}

/// What another user wrote is no state of ours.
base::Result<std::string> read_trusted(const std::string& path, const log::Log& log) {
  const auto closed = base::make_private_file(path);
  if (!closed) return unexpected(closed.error());
  if (*closed) {
    log.warning("state file was writable by other users; permissions corrected", {{"file", path}});
  }
  return base::read_regular_file(path, kMaxFile);
}

}  // namespace

std::string file_name(const std::string& pod) { return coded(pod, kMarks) + std::string(kSuffix); }

std::string pod_of_file(std::string_view name) {
  std::string_view rest = name.substr(0, name.size() - std::min(name.size(), kSuffix.size()));
  std::string pod;
  while (!rest.empty()) {
    const auto high = rest.size() < 3 ? std::string_view::npos : kHex.find(rest[1]);
    const auto low = rest.size() < 3 ? std::string_view::npos : kHex.find(rest[2]);
    const bool coded =
        rest.front() == '%' && high != std::string_view::npos && low != std::string_view::npos;
    pod += coded ? static_cast<char>(high * 16 + low) : rest.front();
    rest.remove_prefix(coded ? 3 : 1);
  }
  return file_name(pod) == name || second_name(pod) == name ? pod : std::string();
}

Store::Store(std::filesystem::path directory, std::string boot_id, const log::Log& log,
             base::Fd lock)
    : directory_(std::move(directory), std::move(lock), log),
      boot_id_(std::move(boot_id)),
      log_(log) {}

/// What others have put in its place has none of our files.
base::Result<void> Store::ensure_directory() {
  const auto is_another = directory_.ensure();
  if (!is_another) return unexpected(is_another.error());
  if (*is_another) {
    for (auto& [pod, hash] : written_) hash = 0;
  }
  return {};
}

Loaded Store::load() {
  Found found;
  const auto names =
      ensure_directory().and_then([this] { return base::list_directory(directory_.path()); });
  if (names) {
    std::erase_if(lost_, [&](const auto& entry) {  // the directory itself, and what was removed
      const std::string name = std::filesystem::path(entry.first).filename().string();
      return entry.first == directory_.path().string() || !std::ranges::binary_search(*names, name);
    });
    for (const std::string& name : by_time(directory_.path(), *names)) load_one(name, found);
    for (Former& former : found.former) accept_former(std::move(former), found.loaded);
  } else {
    lose({directory_.path().string(), "", names.error().message, false});
  }
  for (const auto& [file, lost] : lost_) found.loaded.lost.push_back(lost);
  return std::move(found.loaded);
}

void Store::load_one(const std::string& name, Found& found) {
  const std::string path = (directory_.path() / name).string();
  const std::string pod = pod_of_file(without_marks(name));
  if (is_set_aside(name)) {
    if (!lost_.contains(path)) lose({path, pod, "set aside as unreadable", true});
    return;
  }
  if (!name.ends_with(kSuffix) || (written_.contains(pod) && name == file_name(pod))) return;
  const auto text = read_trusted(path, log_);
  auto saved = text ? from_text(*text, boot_id_) : unexpected(text.error());
  if (saved) return accept(name, *text, std::move(*saved), found);
  if (text && is_gone(saved)) return drop(name, saved.error().message);
  if (saved.error().code == ErrorCode::kInvalid) return set_aside(name, saved.error().message);
  // It is listed, and nobody else removes files: what is not found is a link that leads nowhere.
  lose({path, pod, saved.error().message, false});
}

/// A file with the name of another pod is no evidence of either.
void Store::accept(const std::string& name, const std::string& text, Saved saved, Found& found) {
  const std::string& pod = saved.pod.id;
  const std::string own = file_name(pod);
  if (name == own) {
    lost_.erase((directory_.path() / name).string());
    written_[pod] = std::hash<std::string>{}(text);
    found.loaded.pods.push_back(std::move(saved));
  } else if (name == first_name(pod) || name == second_name(pod)) {
    found.former.push_back({name, std::move(saved)});
  } else {
    set_aside(name, "holds the state of sandbox " + pod + ", whose file is " + own);
  }
}

/// What there is under its own name is newer.
void Store::accept_former(Former former, Loaded& loaded) {
  auto& [name, saved] = former;
  const std::string own = file_name(saved.pod.id);
  if (lost_.contains((directory_.path() / own).string())) return;
  if (written_.contains(saved.pod.id)) return drop(name, "replaced by " + own);
  lost_.erase((directory_.path() / name).string());
  written_[saved.pod.id] = 0;  // to be written again
  move_to_own_name(name, own);
  loaded.pods.push_back(std::move(saved));
}

void Store::drop(const std::string& name, const std::string& why) {
  const std::filesystem::path path = directory_.path() / name;
  std::error_code ignored;
  std::filesystem::remove(path, ignored);
  log_.warning("state file removed", {{"file", path.string()}, {"reason", why}});
}

void Store::move_to_own_name(const std::string& name, const std::string& own) {
  if (const auto done =
          rename((directory_.path() / name).string(), (directory_.path() / own).string());
      !done) {
    log_.warning("state file keeps its old name",
                 {{"file", name}, {"reason", done.error().message}});
  }
}

void Store::set_aside(const std::string& name, const std::string& why) {
  const std::string path = (directory_.path() / name).string();
  const std::string aside = free_name(path + std::string(kUnreadable));
  const auto moved = rename(path, aside);
  lost_.erase(path);
  lose({moved ? aside : path, pod_of_file(name), why, true});
}

void Store::lose(LostState lost) {
  const auto known = lost_.find(lost.file);
  if (known == lost_.end() || known->second.reason != lost.reason) {
    log_.error("cannot read state from before the start",
               {{"file", lost.file},
                {"reason", lost.reason},
                {"next", lost.damaged ? "set aside" : "retrying"}});
  }
  lost_[lost.file] = std::move(lost);
}

void Store::dismiss_damaged() {
  std::erase_if(lost_, [&](const auto& entry) {
    const auto& [file, lost] = entry;
    if (!lost.damaged) return false;
    const std::string plain = file.substr(0, file.rfind(kUnreadable));
    if (const auto done = rename(file, free_name(plain + std::string(kObsolete))); !done) {
      log_.warning("cannot set aside a damaged state file", {{"reason", done.error().message}});
    }
    return true;
  });
}

void Store::give_up_unread() {
  std::erase_if(lost_, [](const auto& entry) { return !entry.second.damaged; });
}

/// Its own file, or any file where they cannot be listed.
bool Store::is_unread(const std::string& pod) const {
  const bool own = std::ranges::any_of(lost_, [&](const auto& entry) {
    return !entry.second.damaged && !pod.empty() && entry.second.pod == pod;
  });
  return own || (lost_.contains(directory_.path().string()) && !written_.contains(pod));
}

base::Result<void> Store::save(const Saved& saved) {
  const std::string& pod = saved.pod.id;
  if (is_unread(pod)) {
    return base::fail(ErrorCode::kUnavailable,
                      "its state file is temporarily unreadable and is not overwritten");
  }
  const std::string text = to_text(saved, boot_id_);
  if (text.size() > kMaxFile) {
    return base::fail(ErrorCode::kInvalid, "its state of " + std::to_string(text.size()) +
                                               " bytes exceeds the limit of " +
                                               std::to_string(kMaxFile));
  }
  if (auto usable = ensure_directory(); !usable) return usable;
  const std::size_t hash = std::hash<std::string>{}(text);
  const auto known = written_.find(pod);
  if (known != written_.end() && known->second == hash) return {};
  auto done = base::write_atomically(directory_.path() / file_name(pod), text);
  if (done) written_[pod] = hash;
  return done;
}

base::Result<void> Store::remove(const std::string& pod) {
  const auto path = directory_.path() / file_name(pod);
  written_.erase(pod);
  lost_.erase(path.string());
  if (auto usable = ensure_directory(); !usable) return usable;
  std::error_code failed;
  std::filesystem::remove(path, failed);
  if (failed) return base::fail_errno(failed.value(), "cannot remove the state of " + pod);
  return {};
}

std::vector<std::string> Store::pods() const {
  std::vector<std::string> pods;
  for (const auto& [pod, hash] : written_) pods.push_back(pod);
  return pods;
}

base::Result<std::vector<std::string>> Store::find_missing() {
  if (auto usable = ensure_directory(); !usable) return unexpected(usable.error());
  const auto has_changed = directory_.has_changed();
  if (!has_changed) return unexpected(has_changed.error());
  if (*has_changed) {
    const auto names = base::list_directory(directory_.path());
    if (!names) return unexpected(names.error());
    record_missing(*names);
  }
  std::vector<std::string> missing;
  for (const auto& [pod, hash] : written_) {
    if (hash == 0) missing.push_back(pod);
  }
  return missing;
}

void Store::record_missing(const std::vector<std::string>& names) {
  for (auto& [pod, hash] : written_) {
    if (hash == 0 || std::ranges::binary_search(names, file_name(pod))) continue;
    hash = 0;
    log_.warning("state file was removed by another program; it is written again",
                 {{"file", (directory_.path() / file_name(pod)).string()}});
  }
}

}  // namespace ka::state
