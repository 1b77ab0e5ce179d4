// SPDX-License-Identifier: Apache-2.0
#include "shim-ext/kubelet/kubelet_watch.hpp"

#include <utility>

#include "base/files.hpp"
#include "shim-ext/watch/kubelet_state.hpp"

namespace ka::kubelet {
namespace {

using base::ErrorCode;
using policy::ledger::KubeletSeen;

base::Result<watch::KubeletState> read_state(const std::filesystem::path& file) {
  const auto text = base::read_regular_file(file, watch::kMaxKubeletState);
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

KubeletWatch::KubeletWatch(boost::asio::io_context& io, std::filesystem::path file,
                           Handlers handlers, const log::Log& log)
    : file_(std::move(file)),
      handlers_(std::move(handlers)),
      log_(log),
      inotify_(io, [this] { handlers_.changed(); }) {}

/// The directory is watched, not the file: that is another one after each change. The directory may
/// be another one, too.
std::optional<KubeletSeen> KubeletWatch::poll() {
  inotify_.begin();
  (void)inotify_.watch(file_.parent_path());
  const auto now = watch::stamp_of(file_);
  if (!now) {
    handlers_.status({false, file_.native() + " cannot be read" + instead()});
    return outdated();
  }
  const auto before = std::exchange(stamp_, now);
  if (before == now && !unread_) return std::nullopt;
  if (now != watch::Stamp{}) return read();
  unread_ = false;
  // kubelet never removes it: an operator does, before another policy, and containers run on.
  if (last_.claims && !last_.claims->empty()) {
    handlers_.status({false, file_.native() + " was removed" + instead()});
    return outdated();
  }
  last_ = {};
  handlers_.status({false, file_.native() + " does not exist", true});
  return before ? std::optional(KubeletSeen{}) : std::nullopt;
}

std::optional<KubeletSeen> KubeletWatch::read() {
  const auto state = read_state(file_);
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
  return last_;
}

/// What is in force in place of a file that cannot be read.
std::string KubeletWatch::instead() const {
  return last_.claims ? "; keeping the last good state" : "; not used";
}

/// The last good state, once, marked outdated: what it omits proves nothing any more.
std::optional<KubeletSeen> KubeletWatch::outdated() {
  if (!last_.claims || std::exchange(last_.outdated, true)) return std::nullopt;
  return last_;
}

}  // namespace ka::kubelet
