// SPDX-License-Identifier: Apache-2.0
#include "affinity/daemon/guests.hpp"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <utility>

#include "affinity/board/board.hpp"
#include "affinity/engine/engine.hpp"
#include "base/runtime_socket.hpp"
#include "guest-agent/host/boot.hpp"
#include "policy/plan/guest.hpp"
#include "policy/plan/kata_sets.hpp"
#include "vmm/threads.hpp"

namespace ka::daemon {
namespace {

using boost::system::error_code;

/// For a guest that is let go to give its containers back.
constexpr std::chrono::seconds kFarewell{1};

/// What ours is asked, by hardware id. Nothing where it is to give everything back.
policy::GuestSets told_by(const policy::GuestWishes& wishes) {
  policy::GuestSets told;
  for (const policy::GuestContainer& container : wishes.containers) {
    for (const std::uint64_t id : container.hardware_ids) {
      told[container.id].add(static_cast<int>(id));
    }
  }
  return told;
}

}  // namespace

Guests::Guests(boost::asio::io_context& io, engine::Engine& engine, board::Board& board,
               const vmm::Roots& roots, std::filesystem::path run, const log::Log& log,
               const base::Clock& clock)
    : io_(io),
      engine_(engine),
      board_(board),
      roots_(roots),
      run_(std::move(run)),
      log_(log),
      clock_(clock) {
  plans_ = board_.feed().subscribe(
      board::NotificationKind::kSandboxPlanned,
      [this](const board::Notification& planned) { notice(planned.sandbox); });
  for (const std::string& id : engine_.sandbox_ids()) notice(id);
}

/// The engine is in the middle of something: what follows from it is done later, once.
void Guests::notice(const std::string& sandbox) {
  if (noticed_.empty()) boost::asio::post(io_, [this] { follow_noticed(); });
  noticed_.try_emplace(sandbox, clock_.now());
}

void Guests::follow_noticed() {
  for (const auto& [sandbox, planned] : std::exchange(noticed_, {})) follow(sandbox, planned);
}

/// With "none" a guest is left alone, once nothing of ours is in it.
void Guests::follow(const std::string& sandbox, Time planned) {
  const auto view = engine_.view(sandbox);
  if (!view) return forget(sandbox);
  const auto through = view->settings.guest.agent;
  Guest& guest = known(sandbox, *view);
  if (through == policy::plan::GuestAgent::kNone && guest.view.told.containers.empty()) {
    return drop(sandbox);
  }
  const bool is_other = std::exchange(guest.through, through) != through;
  // Before its VMM is there a sandbox's shim stands for it, which knows no guest.
  const bool is_other_vmm = std::exchange(guest.vmm, view->pod.vmm) != view->pod.vmm;
  if (is_other_vmm) guest.view = {};  // and another guest was told nothing
  if (is_other || is_other_vmm || guest.told_address != view->pod.agent) {
    look_for(sandbox, guest, *view);
  }
  policy::plan::record_vcpus(guest.view.plugged, view->vcpus, guest.boot);
  guest.numbers = policy::plan::guest_numbers(view->vcpus, guest.boot, guest.view.plugged);
  wish(sandbox, guest, *view, planned);
}

/// With what a daemon before this one knew of it.
Guests::Guest& Guests::known(const std::string& sandbox, const engine::SandboxView& view) {
  const auto [found, is_new] = guests_.try_emplace(sandbox);
  Guest& guest = found->second;
  if (!is_new) return guest;
  guest.vmm = view.pod.vmm;
  if (view.guest != nullptr) guest.view = *view.guest;
  return guest;
}

/// Where something is to be taken back and nothing else is wanted, at whom it was told; else by
/// what the sources said, by the VMM's command line, by Kata's shim: in this order.
void Guests::look_for(const std::string& sandbox, Guest& guest, const engine::SandboxView& view) {
  guest.told_address = view.pod.agent;
  guest.looking.reset();
  guest.link.reset();
  guest.kata.reset();
  guest.view = {.told = guest.view.told, .plugged = guest.view.plugged};
  const auto command_line = command_line_of(view.pod);
  guest.boot = guest::boot_facts(command_line);
  guest.kernel = guest::kernel_of(command_line);
  if (guest.through == policy::plan::GuestAgent::kNone) {
    const auto address = guest::parse_address(guest.view.told.address);
    if (address) use(sandbox, guest, *address);
    return;
  }
  if (!guest.told_address.empty()) {
    const auto address = guest::parse_address(guest.told_address);
    if (address) use(sandbox, guest, *address);
    return;
  }
  if (const auto address = address_by(command_line, view.pod)) return use(sandbox, guest, *address);
  guest.looking = std::make_unique<guest::AgentUrl>(
      io_, guest::management_sockets(sandbox, run_), [this, sandbox](const std::string& url) {
        const auto found = guests_.find(sandbox);
        const auto address = guest::address_beside(url);
        if (found == guests_.end() || !address) return;
        use(sandbox, found->second, *address);
        notice(sandbox);
      });
}

/// Nothing of a program in a container, whose owner chose it.
std::vector<std::string> Guests::command_line_of(const policy::ledger::PodRecord& pod) const {
  if (!pod.vmm || vmm::is_contained(roots_, pod.vmm->pid)) return {};
  return vmm::arguments_of(roots_, *pod.vmm).value_or(std::vector<std::string>{});
}

/// A socket is believed where an operator answers for the VMM, or a runtime put it.
std::optional<guest::Address> Guests::address_by(const std::vector<std::string>& command_line,
                                                 const policy::ledger::PodRecord& pod) const {
  auto address = guest::address_of(command_line);
  const bool is_believed = !address || address->kind == guest::Address::Kind::kVsock ||
                           pod.source == policy::ledger::Source::kApi;
  if (is_believed) return address;
  const auto socket = base::runtime_socket(run_, address->path);
  if (!socket) return std::nullopt;
  address->path = socket->string();
  return address;
}

void Guests::use(const std::string& sandbox, Guest& guest, const guest::Address& address) {
  const bool is_only_kata =
      guest.through == policy::plan::GuestAgent::kNone && guest.view.told.by_kata;
  if (guest.through == policy::plan::GuestAgent::kKataAgent || is_only_kata) {
    const bool is_ours = address.port == guest::kPort;
    const auto beside = is_ours ? guest::kata_agent_beside(address) : address;
    return use_kata(sandbox, guest, beside.value_or(address));
  }
  guest.view.address = guest::to_string(address);
  guest.view.text = "not connected yet";
  guest.wished = false;
  guest.link = std::make_unique<guest::Link>(
      io_, address,
      guest::Link::Events{[this, sandbox](const std::string& program) { met(sandbox, program); },
                          [this, sandbox](const guest::News& news) { take(sandbox, news); },
                          [this, sandbox](const std::string& reason) { lost(sandbox, reason); }});
}

/// Ours is there. Kata's, which may have taken its place, is not needed any more, and is not to
/// write again what it was told.
void Guests::met(const std::string& sandbox, const std::string& program) {
  Guest& guest = guests_.at(sandbox);
  if (guest.view.told.by_kata) {
    bid_farewell(guest);
    guest.view.told = {};
  }
  if (guest.kata) {
    guest.kata.reset();
    guest.view = {.address = guest::to_string(guest.link->address()),
                  .told = guest.view.told,
                  .plugged = guest.view.plugged};
    guest.wished = false;
    notice(sandbox);
  }
  guest.view.connected = true;
  guest.view.text = program;
  guest.missed_a_start = false;
  show(sandbox, guest);
}

void Guests::wish(const std::string& sandbox, Guest& guest, const engine::SandboxView& view,
                  Time planned) {
  if (view.plan.vcpus.empty()) return;
  const bool gives_back =
      view.released || view.observed || guest.through == policy::plan::GuestAgent::kNone;
  if (view.observed && guest.view.told.containers.empty()) return;
  auto wishes =
      policy::plan::guest_wishes(view.plan, view.vcpus, engine_.topology(), view.settings.guest,
                                 guest.boot.may_grow(static_cast<int>(view.vcpus.size())));
  // Who cannot be named cannot be placed, and to guess would be worse than to wait.
  if (wishes.vcpus.size() != view.plan.vcpus.size()) return;
  if (gives_back) wishes = {.move_interrupts = false, .release = true};
  const bool is_other = std::exchange(guest.view.wishes, std::move(wishes)) != guest.view.wishes;
  if (guest.kata) return wish_through_kata(sandbox, guest);
  if (!guest.link) {
    // Nobody who could be asked; worth a word where there is something to ask.
    if (view.guest != nullptr || policy::plan::keeps_vcpus_apart(guest.view.wishes))
      show(sandbox, guest);
    return;
  }
  if (std::exchange(guest.wished, true) && !is_other) return show(sandbox, guest);
  guest.view.current = false;
  if (guest.view.connected && !guest.asked) guest.asked = planned;
  // What it was told before holds until it answers.
  guest.view.told.address = guest::to_string(guest.link->address());
  for (auto& [container, ids] : told_by(guest.view.wishes)) {
    guest.view.told.containers[container] |= ids;
  }
  show(sandbox, guest);
  guest.link->wish(guest.view.wishes);
}

void Guests::take(const std::string& sandbox, const guest::News& news) {
  Guest& guest = guests_.at(sandbox);
  guest.view.report = news.report;
  guest.view.current |= news.answers_wishes;
  if (news.answers_wishes) {
    guest.view.told.containers = told_by(guest.view.wishes);
    // With "none" there is no more to be said.
    if (guest.view.wishes.release) notice(sandbox);
  }
  if (news.answers_wishes && guest.asked) {
    guest.view.reaction = clock_.now() - *std::exchange(guest.asked, std::nullopt);
    board_.counters().guest_reactions.add(guest.view.reaction);
  }
  show(sandbox, guest);
  let_starts_go_on(sandbox);
}

void Guests::lost(const std::string& sandbox, const std::string& reason) {
  Guest& guest = guests_.at(sandbox);
  if (guest.kata) return;  // it took the place of the one that is not there
  const bool was_there = std::exchange(guest.view.connected, false);
  guest.view.text = reason;
  guest.view.report.reset();
  guest.view.current = false;
  guest.asked.reset();
  show(sandbox, guest);
  if (was_there)
    log_.warning("lost connection to guest agent", {{"sandbox", sandbox}, {"reason", reason}});
  if (!was_there && guest.through == policy::plan::GuestAgent::kAuto) fall_back(sandbox, guest);
  let_starts_go_on(sandbox);
}

void Guests::fall_back(const std::string& sandbox, Guest& guest) {
  const auto address = guest::kata_agent_beside(guest.link->address());
  if (!address) return;
  use_kata(sandbox, guest, *address);
  notice(sandbox);
}

/// Nothing of ours is in the guest.
void Guests::drop(const std::string& sandbox) {
  guests_.erase(sandbox);
  board_.clear_guest(sandbox);
  let_starts_go_on(sandbox);
}

/// A VM that lives on without us is given its containers' CPUs back.
void Guests::forget(const std::string& sandbox) {
  auto gone = guests_.extract(sandbox);
  if (gone.empty()) return;
  let_starts_go_on(sandbox);
  if (gone.mapped().view.connected) bid_farewell(gone.mapped());
}

/// Whoever would be told of it is not there any more.
void Guests::bid_farewell(const Guest& guest) {
  const policy::GuestTold& told = guest.view.told;
  const auto address = guest::parse_address(told.address);
  if (told.containers.empty() || !address) return;
  Leaving& leaving = leaving_.emplace_back();
  if (told.by_kata) {
    leaving.kata =
        std::make_unique<guest::KataLink>(io_, *address, false, guest::KataLink::Events{});
    leaving.kata->place(
        policy::plan::sets_for_kata({.release = true}, guest.numbers, told.containers), false);
  } else {
    leaving.link = std::make_unique<guest::Link>(io_, *address, guest::Link::Events{});
    leaving.link->wish({.move_interrupts = false, .release = true});
  }
  leaving.timer = std::make_unique<boost::asio::steady_timer>(io_, kFarewell);
  leaving.timer->async_wait([this](const error_code& error) {
    if (!error) leaving_.pop_front();
  });
}

/// Enters how it stands, with what is in doubt.
void Guests::show(const std::string& sandbox, Guest& guest) {
  guest.view.doubts.clear();
  if (policy::plan::keeps_vcpus_apart(guest.view.wishes)) {
    for (const policy::GuestContainer& container : guest.view.wishes.containers) {
      const auto doubt = doubt_about(guest, container);
      if (doubt) guest.view.doubts[container.id] = *doubt;
    }
  }
  if (guest.view.address.empty()) guest.view.text = "no agent address is known";
  board_.set_guest(sandbox, guest.view);
}

/// A container that is not in the guest (yet) has nothing that could run elsewhere.
std::optional<policy::GuestDoubt> Guests::doubt_about(
    const Guest& guest, const policy::GuestContainer& container) const {
  if (!guest.view.connected) return policy::GuestDoubt::kAgentAway;
  if (guest.kata && !guest.wished) return policy::GuestDoubt::kNumbersUncertain;
  if (container.waiting) return policy::GuestDoubt::kVcpusMissing;
  if (guest.kata && !guest.kata_sets.contains(container.id)) return std::nullopt;
  if (!guest.view.report || (!guest.view.current && !guest.kata)) {
    return policy::GuestDoubt::kUnanswered;
  }
  const auto& states = guest.view.report->containers;
  const auto state = std::ranges::find(states, container.id, &policy::GuestContainerState::id);
  if (state == states.end()) {
    return guest.kata ? std::optional(policy::GuestDoubt::kUnanswered) : std::nullopt;
  }
  if (state->problem == policy::GuestProblem::kRefused) return policy::GuestDoubt::kRefused;
  if (guest.kata && state->wanted != guest.kata_sets.at(container.id)) {
    return policy::GuestDoubt::kUnanswered;
  }
  return std::nullopt;
}

bool Guests::is_placed(const Guest& guest, const std::string& container) const {
  if (guest.kata && guest.wished && !guest.kata_sets.contains(container)) return true;
  if (!guest.view.current || !guest.view.report) return false;
  const auto& containers = guest.view.report->containers;
  const auto state = std::ranges::find(containers, container, &policy::GuestContainerState::id);
  return state != containers.end() && state->problem != policy::GuestProblem::kNotFound;
}

/// Whose guest will not place it, or does not tell, is not waited for.
bool Guests::may_await(const Guest& guest, const std::string& container) const {
  return guest.view.connected && guest.wished && !guest.missed_a_start &&
         !is_placed(guest, container);
}

void Guests::await(const std::string& sandbox, const std::string& container,
                   std::function<void()> go_on) {
  follow(sandbox, clock_.now());
  const auto found = guests_.find(sandbox);
  if (found == guests_.end() || !may_await(found->second, container)) return go_on();
  Waiting& waiting = waiting_.emplace_back(io_);
  waiting.sandbox = sandbox;
  waiting.container = container;
  waiting.go_on = std::move(go_on);
  waiting.timer.in(kStartBudget, [this, sandbox] {
    const auto late = guests_.find(sandbox);
    if (late != guests_.end()) late->second.missed_a_start = true;
    log_.warning("container started before its guest placed it", {{"sandbox", sandbox}});
    let_starts_go_on(sandbox);
  });
}

/// Those of a sandbox whose guest is not there, was too late, or has placed them.
void Guests::let_starts_go_on(const std::string& sandbox) {
  const auto found = guests_.find(sandbox);
  std::list<Waiting> ready;
  for (auto at = waiting_.begin(); at != waiting_.end();) {
    const auto here = at++;
    if (here->sandbox != sandbox) continue;
    if (found == guests_.end() || !may_await(found->second, here->container)) {
      ready.splice(ready.end(), waiting_, here);
    }
  }
  for (const Waiting& waiting : ready) waiting.go_on();
}

}  // namespace ka::daemon
