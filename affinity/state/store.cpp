#include "affinity/state/store.hpp"

#include <functional>
#include <system_error>

#include "affinity/base/files.hpp"

namespace ka::state {
namespace {

using base::ErrorCode;

constexpr std::string_view kSuffix = ".json";

/// Pod ids come from outside: whatever could be taken for a path becomes '_' and a hash keeps
/// names apart.
std::string file_name(const std::string& pod) {
  std::string name;
  for (const char c : pod.substr(0, 100)) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '_';
    name += plain ? c : '_';
  }
  if (name != pod) name += '-' + std::to_string(std::hash<std::string>{}(pod));
  return name + std::string(kSuffix);
}

}  // namespace

base::Result<base::Fd> Store::claim(const std::filesystem::path& directory) {
  std::error_code failed;
  std::filesystem::create_directories(directory, failed);
  if (failed) return base::fail_errno(failed.value(), "cannot make " + directory.string());
  auto lock = base::lock_file(directory / "lock");
  if (!lock && lock.error().code == ErrorCode::kConflict) {
    return base::fail(ErrorCode::kConflict,
                      "another daemon keeps its state in " + directory.string());
  }
  return lock;
}

Store::Store(std::filesystem::path directory, std::string boot_id, const log::Log& log)
    : directory_(std::move(directory)), boot_id_(std::move(boot_id)), log_(log) {}

std::vector<Saved> Store::load() {
  std::vector<Saved> all;
  const auto names = base::list_directory(directory_);
  if (!names) return all;
  for (const std::string& name : *names) {
    if (!name.ends_with(kSuffix)) continue;
    const auto path = directory_ / name;
    const auto text = base::read_regular_file(path, kMaxFile);
    auto saved = text ? from_text(*text, boot_id_) : unexpected(text.error());
    if (saved) {
      written_[saved->pod.id] = std::hash<std::string>{}(*text);
      all.push_back(std::move(*saved));
    } else if (saved.error().code == ErrorCode::kGone) {
      std::error_code ignored;
      std::filesystem::remove(path, ignored);
    } else {
      set_aside(path, saved.error().message);
    }
  }
  return all;
}

void Store::set_aside(const std::filesystem::path& path, const std::string& why) {
  const std::string first = path.string() + ".unreadable";
  std::string aside = first;
  std::error_code ignored;
  for (int i = 2; std::filesystem::exists(aside, ignored); ++i) {
    aside = first + '.' + std::to_string(i);
  }
  std::error_code failed;
  std::filesystem::rename(path, aside, failed);
  log_.warning("state file cannot be used and was set aside",
               {{"file", failed ? path.string() : aside}, {"reason", why}});
}

base::Result<void> Store::save(const Saved& saved) {
  const std::string text = to_text(saved, boot_id_);
  if (text.size() > kMaxFile) {
    return base::fail(ErrorCode::kInvalid, path_of(saved.pod.id).string() + ": larger than " +
                                               std::to_string(kMaxFile) + " bytes");
  }
  const std::size_t hash = std::hash<std::string>{}(text);
  const auto known = written_.find(saved.pod.id);
  if (known != written_.end() && known->second == hash) return {};
  auto done = base::write_atomically(path_of(saved.pod.id), text);
  if (done) written_[saved.pod.id] = hash;
  return done;
}

void Store::remove(const std::string& pod) {
  written_.erase(pod);
  std::error_code ignored;
  std::filesystem::remove(path_of(pod), ignored);
}

std::filesystem::path Store::path_of(const std::string& pod) const {
  return directory_ / file_name(pod);
}

}  // namespace ka::state
