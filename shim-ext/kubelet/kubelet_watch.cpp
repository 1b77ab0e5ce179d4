// SPDX-License-Identifier: Apache-2.0
#include "shim-ext/kubelet/kubelet_watch.hpp"

#include <utility>

#include "base/files.hpp"
#include "shim-ext/watch/kubelet_state.hpp"

namespace ka::kubelet {
namespace {

using base::ErrorCode;
using policy::ledger::KubeletSeen;

base::Result<watch::KubeletState> parse(const base::Result<std::string>& text) {
  if (!text) return unexpected(text.error());
  return watch::parse_kubelet_state(*text);
}

std::string describe(const watch::KubeletState& state) {
  std::string text = "CPU manager policy \"" + state.policy + '"';
  if (!state.seen.claims) text += ": no container owns CPUs";
  if (!state.checksum_fits) text += "; checksum mismatch";
  return text;
}

}  // namespace

KubeletWatch::KubeletWatch(boost::asio::io_context& io, std::filesystem::path file, LastState last,
                           Handlers handlers, const log::Log& log)
    : file_(std::move(file)),
      saved_(std::move(last)),
      handlers_(std::move(handlers)),
      log_(log),
      inotify_(io, [this] { handlers_.changed(); }) {}

bool KubeletWatch::is_current() const {
  return is_watched_ && !late() && !unread_ && stamp_ && watch::stamp_of(file_) == stamp_;
}

/// The directory is watched, not the file: that is another one after each change. The directory may
/// be another one, too.
std::optional<KubeletSeen> KubeletWatch::poll() {
  if (!std::exchange(recalled_, true)) recall();
  inotify_.begin();
  is_watched_ = inotify_.watch(file_.parent_path()).has_value();
  const auto now = watch::stamp_of(file_);
  if (!now) {
    unread_ = true;
    handlers_.status({false, file_.native() + " cannot be read" + instead()});
    return outdated();
  }
  const auto before = std::exchange(stamp_, now);
  if (before == now && !unread_) return std::nullopt;
  if (now != watch::Stamp{}) return read();
  unread_ = false;
  // kubelet never removes it: an operator does, before another policy, and containers run on.
  if (lost_ || (last_.claims && !last_.claims->empty())) {
    handlers_.status({false, file_.native() + " was removed" + instead()});
    return outdated();
  }
  last_ = {};
  handlers_.status({false, file_.native() + " does not exist", true});
  return before ? std::optional(KubeletSeen{}) : std::nullopt;
}

/// It counts until the file can be read.
void KubeletWatch::recall() {
  const auto state = parse(saved_.load());
  lost_ = !state && !is_gone(state);
  if (state) last_ = state->seen;
  if (!lost_) return;
  log_.warning("cannot read what cpu_manager_state was before the start",
               {{"file", saved_.path().native()}, {"reason", state.error().message}});
}

std::optional<KubeletSeen> KubeletWatch::read() {
  auto text = base::read_regular_file(file_, watch::kMaxKubeletState);
  const auto state = parse(text);
  const bool again = std::exchange(unread_, !state && state.error().code != ErrorCode::kInvalid);
  if (!state) {
    if (!again) {
      log_.warning("cannot read cpu_manager_state" + instead(),
                   {{"file", file_.native()}, {"reason", state.error().message}});
    }
    handlers_.status({false, state.error().message + instead()});
    return outdated();
  }
  if (!state->checksum_fits) {
    log_.warning("cpu_manager_state has an unexpected checksum", {{"file", file_.native()}});
  }
  handlers_.status({true, describe(*state)});
  last_ = state->seen;
  lost_ = false;
  unsaved_ = std::move(*text);
  return last_;
}

void KubeletWatch::keep() {
  if (!unsaved_) return;
  const auto saved = saved_.save(*unsaved_);
  if (saved) unsaved_.reset();
  if (std::exchange(save_fails_, !saved) || saved) return;
  log_.warning("cannot save cpu_manager_state for the next start",
               {{"file", saved_.path().native()}, {"reason", saved.error().message}});
}

/// What is in force in place of a file that cannot be read.
std::string KubeletWatch::instead() const {
  if (last_.claims) return "; keeping the last good state";
  return lost_ ? "; its last content cannot be read" : "; not used";
}

/// The last good state, once, marked outdated: what it omits proves nothing any more.
std::optional<KubeletSeen> KubeletWatch::outdated() {
  if (!last_.claims || std::exchange(last_.outdated, true)) return std::nullopt;
  return last_;
}

}  // namespace ka::kubelet
