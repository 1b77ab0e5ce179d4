// SPDX-License-Identifier: Apache-2.0
#include "shim-ext/watch/kubelet_watch.hpp"

#include <utility>

#include "base/files.hpp"
#include "shim-ext/watch/kubelet_state.hpp"

namespace ka::watch {
namespace {

using base::ErrorCode;

base::Result<KubeletState> read_state(const std::filesystem::path& file) {
  const auto text = base::read_regular_file(file, kMaxKubeletState);
  if (!text) return unexpected(text.error());
  return parse_kubelet_state(*text);
}

std::string describe(const KubeletState& state) {
  std::string text = "CPU manager policy \"" + state.policy + '"';
  if (!state.seen.claims) text += ": it does not say who owns which CPU";
  if (!state.checksum_fits) text += "; the file's checksum does not fit";
  return text;
}

}  // namespace

KubeletWatch::KubeletWatch(boost::asio::io_context& io, std::filesystem::path file, Tell tell,
                           Stand stand, const log::Log& log)
    : file_(std::move(file)),
      tell_(std::move(tell)),
      stand_(std::move(stand)),
      log_(log),
      inotify_(io, [this] { notice(); }) {}

/// The directory is watched, not the file: that is another one after each change.
void KubeletWatch::refresh() {
  if (!watched_) watched_ = inotify_.watch(file_.parent_path()).has_value();
  const auto now = stamp_of(file_);
  if (!now) return stand_(false, file_.native() + " cannot be seen; keeping the last good state");
  const auto before = std::exchange(stamp_, now);
  if (before == now && !unread_) return;
  if (now == Stamp{}) {
    unread_ = false;
    stand_(false, "there is no " + file_.native());
    if (before) tell_({policy::ledger::Source::kKubelet, policy::ledger::KubeletSeen{}});
  } else {
    read();
  }
}

void KubeletWatch::read() {
  const auto state = read_state(file_);
  const bool again = std::exchange(unread_, !state && state.error().code != ErrorCode::kInvalid);
  if (!state) {
    if (!again) {
      log_.warning("cannot read cpu_manager_state; keeping the last good state",
                   {{"file", file_.native()}, {"reason", state.error().message}});
    }
    stand_(false, state.error().message + "; keeping the last good state");
    return;
  }
  if (!state->checksum_fits) {
    log_.warning("kubelet's state does not have the checksum that it should have",
                 {{"file", file_.native()}});
  }
  stand_(true, describe(*state));
  tell_({policy::ledger::Source::kKubelet, state->seen});
}

/// The directory may be gone with the file, and come back as another.
void KubeletWatch::notice() {
  if (stamp_of(file_) == Stamp{}) watched_ = false;
  refresh();
}

}  // namespace ka::watch
