// SPDX-License-Identifier: Apache-2.0
#include "affinity/containers/container_files.hpp"

#include <algorithm>
#include <system_error>
#include <utility>
#include <vector>

#include "affinity/board/board.hpp"
#include "affinity/containers/container_texts.hpp"
#include "affinity/line/line.hpp"
#include "base/files.hpp"
#include "base/text.hpp"

namespace ka::containers {
namespace {

namespace fs = std::filesystem;

constexpr mode_t kForEveryone = 0644;  // a container's program may be any user's
constexpr fs::perms kOpen = fs::perms::owner_all | fs::perms::group_read | fs::perms::group_exec |
                            fs::perms::others_read | fs::perms::others_exec;

bool wants_files(const line::SandboxView& view, std::optional<bool> requested) {
  const policy::plan::GuestSettings& guest = view.settings.guest;
  if (view.observed || view.released || guest.agent == policy::plan::GuestAgent::kNone)
    return false;
  return guest.environment_by_annotation && requested ? *requested : guest.environment;
}

const policy::ContainerFacts* find(const policy::ledger::PodRecord& pod,
                                   const std::string& container) {
  const auto found = pod.containers.find(container);
  return found == pod.containers.end() ? nullptr : &found->second.facts;
}

}  // namespace

ContainerFiles::ContainerFiles(fs::path directory, line::Line& line, board::Board& board,
                               const log::Log& log)
    : directory_(std::move(directory)), line_(line), log_(log) {
  adopt();
  changes_ = board.feed().subscribe(
      [this](const board::Notification& notification) { handle(notification); });
  guests_ = board.feed().subscribe(
      board::NotificationKind::kGuestChanged,
      [this](const board::Notification& changed) { update(changed.sandbox); });
}

void ContainerFiles::adopt() {
  const std::vector<std::string> none;
  for (const std::string& sandbox : base::list_directory(directory_).value_or(none)) {
    Containers& containers = files_[sandbox];
    for (const std::string& container : base::list_directory(directory_ / sandbox).value_or(none)) {
      containers[container];
    }
  }
}

nri::Adjustment ContainerFiles::adjust(const nri::CreateRequest& request) {
  const std::string& sandbox = request.sandbox;
  const std::string& container = request.container;
  const auto view = line_.node().view(sandbox);
  if (!view || !wants_files(*view, request.wants_environment)) return {};
  const policy::ContainerFacts* facts = find(view->pod, container);
  if (facts == nullptr || !base::is_id(sandbox) || !base::is_id(container)) return {};
  const fs::path folder = folder_of(sandbox, container);
  if (const auto made = make_folder(folder); !made) {
    log_.warning(
        "cannot create the directory with a container's CPUs",
        {{"sandbox", sandbox}, {"container", container}, {"reason", made.error().message}});
    return {};
  }
  write(*view, container, files_[sandbox][container]);
  const std::string seen_at(kSeenAt);
  return {{{folder.string(), seen_at}},
          container_variables(*facts, line_.node().topology, seen_at)};
}

base::Result<void> ContainerFiles::make_folder(const fs::path& folder) const {
  std::error_code failed;
  fs::create_directories(folder, failed);
  if (!failed) fs::permissions(folder, kOpen, failed);
  return failed ? base::fail_errno(failed.value(), "cannot create " + folder.string())
                : base::Result<void>{};
}

/// While no agent answers in the guest, containers stay where they were.
void ContainerFiles::update(const std::string& sandbox) {
  const auto found = files_.find(sandbox);
  const auto view = line_.node().view(sandbox);
  if (found == files_.end() || !view || !view->guest || !view->guest->report) return;
  for (auto& [container, written] : found->second) write(*view, container, written);
}

void ContainerFiles::write(const line::SandboxView& view, const std::string& container,
                           Texts& written) const {
  const fs::path folder = folder_of(view.pod.id, container);
  for (auto& [name, text] : container_texts(view, container)) {
    if (written[name] == text) continue;
    if (const auto done = base::write_atomically(folder / name, text, kForEveryone); !done) {
      log_.warning("cannot update a container's CPU files",
                   {{"file", (folder / name).string()}, {"reason", done.error().message}});
      continue;
    }
    written[name] = std::move(text);
  }
}

/// What other sources do not know (any more) may run all the same.
void ContainerFiles::handle(const board::Notification& notification) {
  if (notification.kind == board::NotificationKind::kSandboxRemoved ||
      notification.kind == board::NotificationKind::kSandboxEnded) {
    forget(notification.sandbox, {});
  }
  if (notification.kind == board::NotificationKind::kContainerRemoved &&
      notification.source == policy::ledger::Source::kNri) {
    forget(notification.sandbox, notification.container);
  }
}

void ContainerFiles::forget_gone() {
  std::vector<std::pair<std::string, std::string>> gone;
  for (const auto& [sandbox, containers] : files_) {
    const policy::ledger::PodRecord* pod = line_.node().ledger().find(sandbox);
    if (pod == nullptr) gone.emplace_back(sandbox, "");
    for (const auto& [container, written] : containers) {
      if (pod != nullptr && find(*pod, container) == nullptr) gone.emplace_back(sandbox, container);
    }
  }
  for (const auto& [sandbox, container] : gone) forget(sandbox, container);
}

/// Without a container: all of the sandbox.
void ContainerFiles::forget(const std::string& sandbox, const std::string& container) {
  const auto found = files_.find(sandbox);
  if (found == files_.end()) return;
  if (!container.empty() && found->second.erase(container) == 0) return;
  std::error_code ignored;
  fs::remove_all(folder_of(sandbox, container), ignored);
  if (!container.empty()) return;
  files_.erase(found);
}

fs::path ContainerFiles::folder_of(const std::string& sandbox, const std::string& container) const {
  return directory_ / sandbox / container;
}

}  // namespace ka::containers
