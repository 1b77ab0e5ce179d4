// SPDX-License-Identifier: Apache-2.0
// Guests that are not placed, and what of it is logged: what is so of all guests of an image or a
// kernel once for all of them, and the loss of an agent unless its VM has ended with it.
#include <chrono>
#include <utility>

#include "affinity/guests/guests.hpp"
#include "affinity/line/line.hpp"

namespace ka::guests {
namespace {

using policy::plan::GuestAgent;

/// A VM takes its agent along before its process ends, and one that boots has none yet.
constexpr std::chrono::seconds kLossTime{10};

}  // namespace

/// Whether it was there before.
bool Guests::record_lost(const std::string& sandbox, Guest& guest, const std::string& reason) {
  board::GuestView& view = guest.record.view;
  const bool was_there = std::exchange(view.connected, false);
  view.text = reason;
  view.report.reset();
  view.current = false;
  show(sandbox, guest);
  return was_there;
}

void Guests::ours_lost(const std::string& sandbox, const std::string& reason) {
  Guest& guest = guests_.at(sandbox);
  if (guest.state != State::kOurs) return;  // kata-agent serves, this one is only tried
  const bool was_there = record_lost(sandbox, guest, reason);
  if (was_there) {
    warn_later(sandbox, guest, {.text = "lost connection to guest agent", .reason = reason});
  } else if (guest.through == GuestAgent::kOurs) {
    warn_later(sandbox, guest,
               {.text = "no response from guest agent", .reason = reason, .is_of_kind = true});
  }
  if (!was_there && guest.through == GuestAgent::kAuto) fall_back(sandbox, guest);
  release_starts(sandbox);
}

/// Where kata-agent was only a fallback for our agent, its absence is no warning.
void Guests::kata_lost(const std::string& sandbox, const std::string& reason) {
  Guest& guest = guests_.at(sandbox);
  const bool was_there = record_lost(sandbox, guest, reason);
  if (guest.kata->is_forbidden()) {
    guest.loss.reset();
    warn_of_policy(sandbox, guest, reason);
  } else if (was_there || guest.through == GuestAgent::kKataAgent) {
    warn_later(sandbox, guest,
               {.text = "kata-agent does not place containers",
                .reason = reason,
                .is_of_kind = !was_there,
                .by_kata = true});
  }
  release_starts(sandbox);
}

void Guests::kata_answers(Guest& guest) {
  kinds_[guest.kind()].is_silent = false;
  if (guest.loss && guest.loss->what.by_kata) guest.loss.reset();
}

/// Its first reason counts: what follows is about the attempts to connect again.
void Guests::warn_later(const std::string& sandbox, Guest& guest, const Warning& what) {
  if (guest.loss && guest.loss->what.by_kata == what.by_kata) return;
  guest.loss = std::make_unique<Loss>(io_, clock_, what);
  guest.loss->timer.in(kLossTime, [this, sandbox] { warn_of_loss(sandbox, guests_.at(sandbox)); });
}

void Guests::warn_of_loss(const std::string& sandbox, const Guest& guest) {
  const auto view = line_.node().view(sandbox);
  if (!view || view->pod.vmm != guest.vmm) return;
  const Warning& what = guest.loss->what;
  const bool is_of_kind = what.is_of_kind && !guest.kernel.empty();
  if (is_of_kind && std::exchange(kinds_[guest.kind()].is_silent, true)) return;
  log_.warning(what.text, {{"sandbox", sandbox}, {"reason", what.reason}});
}

/// Guests of one image mostly have one policy; `status` has the reason of each.
void Guests::warn_of_policy(const std::string& sandbox, const Guest& guest,
                            const std::string& reason) {
  if (!guest.kernel.empty() && std::exchange(kinds_[guest.kind()].is_forbidden, true)) return;
  log_.warning(
      "containers are not placed inside guests with this image",
      {{"sandbox", sandbox}, {"reason", reason}, {"kernel", guest.kernel}, {"image", guest.image}});
}

/// Guests of the same kernel are all like this.
void Guests::warn_of_numbers(const std::string& sandbox) {
  const std::string& kernel = guests_.at(sandbox).kernel;
  if (!uncertain_kernels_.insert(kernel).second) return;
  log_.warning(
      "containers are not placed inside guests with this kernel: vCPUs were hotplugged, and "
      "neither the kernel's version nor the order of hotplug determines their numbers",
      {{"sandbox", sandbox}, {"kernel", kernel}});
}

}  // namespace ka::guests
