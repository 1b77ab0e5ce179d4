// SPDX-License-Identifier: Apache-2.0
// Guests that are placed through kata-agent: it takes guest CPU numbers, and tells no more than
// that it took them.
#include <algorithm>
#include <utility>

#include "affinity/daemon/guests.hpp"
#include "affinity/engine/engine.hpp"
#include "policy/plan/guest.hpp"
#include "policy/plan/kata_sets.hpp"

namespace ka::daemon {
namespace {

/// The order of plugging decides, and was seen from the boot on: kata-agent's count completes it.
bool is_counting(const policy::plan::BootFacts& boot, const policy::plan::PlugHistory& plugged) {
  return boot.numbering == policy::plan::Numbering::kByPlugging && plugged.from_boot &&
         !plugged.settled;
}

bool names(const policy::GuestWishes& wishes, const std::string& container) {
  return std::ranges::find(wishes.containers, container, &policy::GuestContainer::id) !=
         wishes.containers.end();
}

}  // namespace

void Guests::use_kata(const std::string& sandbox, Guest& guest, const guest::Address& address) {
  const auto view = engine_.view(sandbox);
  // What is not known to be no systemd's is taken for one: that only ever does less.
  const bool has_systemd = !view || view->cgroup.empty() ||
                           view->cgroup.find(".slice") != std::string::npos ||
                           view->cgroup.find(".scope") != std::string::npos;
  guest.view = {.address = guest::to_string(address),
                .text = "kata-agent is not connected yet",
                .wishes = guest.view.wishes,
                .told = guest.view.told,
                .plugged = guest.view.plugged};
  guest.asked_numbers = {};
  guest.kata_sets.clear();
  guest.wished = false;
  guest.kata = std::make_unique<guest::KataLink>(
      io_, address, has_systemd,
      guest::KataLink::Events{
          [this, sandbox](const std::string& version) {
            Guest& known = guests_.at(sandbox);
            known.view.connected = true;
            known.kata_name = known.view.text = "kata-agent " + version;
            take_from_kata(sandbox);
            notice(sandbox);
          },
          [this, sandbox] { take_from_kata(sandbox); },
          [this, sandbox] { take_count_from_kata(sandbox); },
          [this, sandbox](const std::string& reason) { lost_kata(sandbox, reason); }});
}

/// Where it was only tried, in place of ours, nobody expected it.
void Guests::lost_kata(const std::string& sandbox, const std::string& reason) {
  Guest& guest = guests_.at(sandbox);
  const bool was_there = std::exchange(guest.view.connected, false);
  guest.view.text = reason;
  guest.view.report.reset();
  guest.view.current = false;
  show(sandbox, guest);
  if (was_there || guest.through == policy::plan::GuestAgent::kKataAgent) {
    log_.warning("kata-agent does not place containers",
                 {{"sandbox", sandbox}, {"reason", reason}});
  }
  let_starts_go_on(sandbox);
}

/// What is asked is in the state file before it is sent.
void Guests::wish_through_kata(const std::string& sandbox, Guest& guest) {
  if (is_counting(guest.boot, guest.view.plugged)) {
    guest.kata->count_online(guest.view.plugged.size(guest.boot));
  }
  if (!guest.view.connected) return show(sandbox, guest);
  guest.wished = policy::plan::can_place_by_numbers(guest.view.wishes, guest.numbers);
  guest.view.text = guest.kata_name;
  if (!guest.wished && policy::plan::keeps_vcpus_apart(guest.view.wishes))
    note_doubt(sandbox, guest);
  guest.kata_sets =
      policy::plan::sets_for_kata(guest.view.wishes, guest.numbers, guest.view.told.containers);
  if (!guest.kata_sets.empty()) {
    guest.view.told = {guest::to_string(guest.kata->address()), true, guest.kata_sets};
  }
  // It has vCPUs brought online, and then writes the cpusets anew that it knew before.
  const bool again = std::exchange(guest.asked_numbers, guest.numbers) != guest.numbers;
  show(sandbox, guest);
  guest.kata->place(guest.kata_sets, again);
  take_from_kata(sandbox);
}

/// A number that is wrong would put a container onto another one's vCPU. Guests of the same kernel
/// are all like this, so it is a warning once.
void Guests::note_doubt(const std::string& sandbox, Guest& guest) {
  guest.view.text =
      "guest CPU numbers are not certain without kata-affinity-agent in the guest: containers may "
      "use all of its CPUs";
  if (is_counting(guest.boot, guest.view.plugged)) return;
  if (!said_.insert(guest.kernel).second) return;
  log_.warning(
      "containers are not placed inside guests with this kernel: vCPUs were hotplugged, and "
      "neither "
      "the kernel's version nor the order of hotplug determines their numbers",
      {{"sandbox", sandbox}, {"kernel", guest.kernel}});
}

void Guests::take_from_kata(const std::string& sandbox) {
  Guest& guest = guests_.at(sandbox);
  guest.view.report.reset();
  guest.view.current = false;
  if (guest.kata && guest.view.connected && (guest.wished || guest.view.wishes.release)) {
    const auto placement = policy::plan::place_in_guest(guest.view.wishes, guest.numbers.cpus);
    guest.view.report = policy::GuestReport{
        .cpus = guest.numbers.cpus, .common = placement.common, .containers = guest.kata->states()};
    guest.view.current = guest.kata->is_current();
  }
  if (guest.kata) forget_gone(guest);
  show(sandbox, guest);
  let_starts_go_on(sandbox);
}

/// What was written for a container that the guest does not have is gone with it.
void Guests::forget_gone(Guest& guest) {
  for (const auto& state : guest.kata->states()) {
    if (state.problem != policy::GuestProblem::kNotFound) continue;
    if (!names(guest.view.wishes, state.id)) guest.view.told.containers.erase(state.id);
  }
}

/// kata-agent's count says when all vCPUs that were plugged have their numbers, if none was plugged
/// meanwhile.
void Guests::take_count_from_kata(const std::string& sandbox) {
  engine_.look_again(sandbox);
  const auto view = engine_.view(sandbox);
  const auto found = guests_.find(sandbox);
  if (!view || found == guests_.end() || !found->second.kata) return;
  Guest& guest = found->second;
  policy::plan::record_vcpus(guest.view.plugged, view->vcpus, guest.boot);
  guest.view.plugged.settled |= guest.view.plugged.from_boot &&
                                guest.kata->most_online() == guest.view.plugged.size(guest.boot);
  notice(sandbox);
}

}  // namespace ka::daemon
