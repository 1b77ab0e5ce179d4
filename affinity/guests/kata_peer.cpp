// SPDX-License-Identifier: Apache-2.0
#include "affinity/guests/kata_peer.hpp"

#include <algorithm>
#include <utility>

#include "policy/plan/guest.hpp"
#include "policy/plan/kata_sets.hpp"

namespace ka::guests {
namespace {

/// The order of plugging decides, and was seen from the boot on: kata-agent's count completes it.
bool is_counting(const policy::plan::BootFacts& boot, const policy::plan::PlugHistory& plugged) {
  return boot.numbering == policy::plan::Numbering::kByPlugging && plugged.from_boot &&
         !plugged.complete;
}

bool names(const policy::GuestSpec& spec, const std::string& container) {
  return std::ranges::find(spec.containers, container, &policy::GuestContainer::id) !=
         spec.containers.end();
}

}  // namespace

KataPeer::KataPeer(boost::asio::io_context& io, const base::Clock& clock, GuestRecord& record,
                   const guest::Address& address, bool host_has_systemd, Events events)
    : record_(record),
      events_(std::move(events)),
      link_(io, clock, address, host_has_systemd,
            guest::KataLink::Events{[this](const std::string& version) { connect(version); },
                                    [this] { record_answers(); }, [this] { events_.counted(); },
                                    [this](const std::string& reason) { events_.lost(reason); }}) {}

void KataPeer::adopt() {
  record_.view = {.address = guest::to_string(address()),
                  .text = "kata-agent is not connected yet",
                  .spec = record_.view.spec,
                  .writes = record_.view.writes,
                  .plugged = record_.view.plugged};
}

void KataPeer::connect(const std::string& version) {
  events_.connected();
  record_.view.connected = true;
  name_ = record_.view.text = "kata-agent " + version;
  record_answers();
  events_.outdated();
}

/// What is asked is in the state file before it is sent.
void KataPeer::place(base::Clock::Time /*planned*/) {
  board::GuestView& view = record_.view;
  if (is_counting(record_.boot, view.plugged)) link_.count_online(view.plugged.size(record_.boot));
  if (!view.connected) return events_.changed();
  places_ = policy::plan::can_place_by_numbers(view.spec, record_.numbers);
  view.text = name_;
  if (!places_ && policy::plan::keeps_vcpus_apart(view.spec)) reject_numbers();
  sets_ = policy::plan::sets_for_kata(view.spec, record_.numbers, view.writes.containers);
  if (!sets_.empty()) view.writes = {guest::to_string(address()), true, sets_};
  // It has vCPUs brought online, and then rewrites the cpusets that it knew before.
  const bool again = std::exchange(sent_numbers_, record_.numbers) != record_.numbers;
  events_.changed();
  link_.place(sets_, again);
  record_answers();
}

/// A number that is wrong would put a container onto another one's vCPU.
void KataPeer::reject_numbers() {
  record_.view.text =
      "guest CPU numbers are not certain without kata-affinity-agent in the guest: containers may "
      "use all of its CPUs";
  if (!is_counting(record_.boot, record_.view.plugged)) events_.uncertain();
}

void KataPeer::record_answers() {
  board::GuestView& view = record_.view;
  view.report.reset();
  view.current = false;
  if (view.connected && (places_ || view.spec.release)) {
    const auto placement = policy::plan::place_in_guest(view.spec, record_.numbers.cpus);
    view.report = policy::GuestReport{.cpus = record_.numbers.cpus,
                                      .common = placement.common,
                                      .containers = link_.states(),
                                      .by_kata = true};
    view.current = link_.is_current();
  }
  forget_gone();
  events_.changed();
}

/// What was written for a container that the guest does not have is gone with it.
void KataPeer::forget_gone() {
  for (const auto& state : link_.states()) {
    if (state.problem != policy::GuestProblem::kNotFound) continue;
    if (!names(record_.view.spec, state.id)) record_.view.writes.containers.erase(state.id);
  }
}

void KataPeer::record_count() {
  policy::plan::PlugHistory& plugged = record_.view.plugged;
  plugged.complete |= plugged.from_boot && link_.most_online() == plugged.size(record_.boot);
}

std::optional<policy::GuestDoubt> KataPeer::doubt_about(
    const policy::GuestContainer& container) const {
  using enum policy::GuestDoubt;
  if (!places_) return kNumbersUncertain;
  if (container.waiting) return kVcpusMissing;
  const auto set = sets_.find(container.id);
  if (set == sets_.end()) return std::nullopt;
  const auto* state = find_state(record_, container.id);
  if (state == nullptr) return kUnanswered;
  if (state->problem == policy::GuestProblem::kRefused) return kRefused;
  return state->wanted == set->second ? std::nullopt : std::optional(kUnanswered);
}

bool KataPeer::is_placed(const std::string& container) const {
  if (places_ && !sets_.contains(container)) return true;
  const auto* state = find_state(record_, container);
  return record_.view.current && state != nullptr &&
         state->problem != policy::GuestProblem::kNotFound;
}

}  // namespace ka::guests
