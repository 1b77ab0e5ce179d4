// SPDX-License-Identifier: Apache-2.0
#include "affinity/guests/guests.hpp"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <utility>

#include "affinity/board/board.hpp"
#include "affinity/guests/guest_quotas.hpp"
#include "affinity/host/cgroup_names.hpp"
#include "affinity/line/line.hpp"
#include "base/runtime_socket.hpp"
#include "guest-agent/host/boot.hpp"
#include "policy/plan/guest.hpp"
#include "policy/plan/kata_sets.hpp"
#include "vmm/threads.hpp"

namespace ka::guests {
namespace {

using policy::plan::GuestAgent;

/// For a guest that is being released, to restore its containers.
constexpr std::chrono::seconds kReleaseTime{1};

/// What is not known to be no systemd's is taken for one: that only ever does less.
bool is_systemds(const std::string& cgroup) {
  return cgroup.empty() || host::is_systemd_unit(cgroup);
}

/// A container of the guest is where it is to be.
bool has_placed(const board::GuestView& view) {
  return view.current && view.report &&
         std::ranges::any_of(view.report->containers, [](const auto& state) {
           return state.problem == policy::GuestProblem::kNone;
         });
}

}  // namespace

std::string Guests::Guest::kind() const { return kernel + '\n' + image; }

GuestPeer* Guests::Guest::peer() const {
  if (state == State::kOurs) return ours.get();
  return kata.get();
}

Guests::Guests(boost::asio::io_context& io, line::Line& line, board::Board& board,
               const vmm::Roots& roots, const log::Log& log, const base::Clock& clock)
    : io_(io),
      line_(line),
      board_(board),
      roots_(roots),
      log_(log),
      clock_(clock),
      starts_(io, clock) {
  plans_ = board_.feed().subscribe(
      board::NotificationKind::kSandboxPlanned,
      [this](const board::Notification& planned) { queue(planned.sandbox); });
  for (const std::string& id : line_.node().sandbox_ids()) queue(id);
}

/// The line is in the middle of a run: what follows from it is done later, once.
void Guests::queue(const std::string& sandbox) {
  if (queued_.empty()) boost::asio::post(io_, [this] { update_queued(); });
  queued_.try_emplace(sandbox, clock_.now());
}

void Guests::update_queued() {
  for (const auto& [sandbox, planned] : std::exchange(queued_, {})) update(sandbox, planned);
}

/// With "none" a guest is left alone, once nothing of ours is in it.
void Guests::update(const std::string& sandbox, Time planned) {
  const auto view = line_.node().view(sandbox);
  if (!view) return forget(sandbox);
  const auto through = view->settings.guest.agent;
  Guest& guest = known(sandbox, *view);
  GuestRecord& record = guest.record;
  if (through == GuestAgent::kNone && record.view.writes.containers.empty()) return drop(sandbox);
  const bool is_other = std::exchange(guest.through, through) != through;
  // Until its VMM exists a sandbox's shim is treated as the VMM, and has no guest.
  const bool is_other_vmm = std::exchange(guest.vmm, view->pod.vmm) != view->pod.vmm;
  if (is_other_vmm) record.view = {};  // and another guest got nothing
  if (is_other || is_other_vmm || guest.named_address != view->pod.agent) {
    find_agent(sandbox, guest, *view);
  }
  record_boot(guest, view->boot);
  policy::plan::record_vcpus(record.view.plugged, view->vcpus, record.boot);
  record.numbers = policy::plan::guest_numbers(view->vcpus, record.boot, record.view.plugged);
  place(sandbox, guest, *view, planned);
}

/// With the state of an earlier daemon.
Guests::Guest& Guests::known(const std::string& sandbox, const line::SandboxView& view) {
  const auto [found, is_new] = guests_.try_emplace(sandbox);
  Guest& guest = found->second;
  if (!is_new) return guest;
  guest.vmm = view.pod.vmm;
  if (view.guest != nullptr) guest.record.view = *view.guest;
  return guest;
}

void Guests::find_agent(const std::string& sandbox, Guest& guest, const line::SandboxView& view) {
  guest.named_address = view.pod.agent;
  guest.search.reset();
  guest.ours.reset();
  guest.kata.reset();
  guest.state = State::kNone;
  GuestRecord& record = guest.record;
  record.view = {.writes = record.view.writes, .plugged = record.view.plugged};
  const auto command_line = command_line_of(view.pod);
  record.boot = guest::boot_facts(command_line);
  guest.kernel = guest::kernel_of(command_line);
  guest.image = guest::image_of(command_line);
  guest.loss.reset();
  guest.reported = {};
  const bool is_named = guest.through == GuestAgent::kNone || !guest.named_address.empty();
  if (const auto address = known_address(guest, command_line, view.pod)) {
    use(sandbox, guest, *address);
  } else if (!is_named) {
    search(sandbox, guest);
  }
}

/// For an undo the agent that got the request, else as a source or the VMM's command line has it.
std::optional<guest::Address> Guests::known_address(const Guest& guest,
                                                    const std::vector<std::string>& command_line,
                                                    const policy::ledger::PodRecord& pod) const {
  const bool gives_back = guest.through == GuestAgent::kNone;
  const std::string& named = gives_back ? guest.record.view.writes.address : guest.named_address;
  if (!gives_back && named.empty()) return address_by(command_line, pod);
  const auto address = guest::parse_address(named);
  return address ? std::optional(*address) : std::nullopt;
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
  const auto socket = base::runtime_socket(roots_.run, address->path);
  if (!socket) return std::nullopt;
  address->path = socket->string();
  return address;
}

/// What the command line says stays: it was there before the guest.
void Guests::record_boot(Guest& guest, const vmm::GuestBoot& reported) {
  if (std::exchange(guest.reported, reported) == reported) return;
  policy::plan::BootFacts& boot = guest.record.boot;
  if (!boot.max_vcpus) boot.max_vcpus = reported.max_vcpus;
  boot.plugs_in_order = reported.plugs_in_order;
  if (guest.kernel.empty()) guest.kernel = reported.kernel;
}

/// Kata's shim is asked.
void Guests::search(const std::string& sandbox, Guest& guest) {
  guest.state = State::kSearching;
  guest.search =
      std::make_unique<guest::AgentUrl>(io_, clock_, guest::management_sockets(sandbox, roots_.run),
                                        [this, sandbox](const std::string& url) {
                                          const auto found = guests_.find(sandbox);
                                          const auto address = guest::address_beside(url);
                                          if (found == guests_.end() || !address) return;
                                          use(sandbox, found->second, *address);
                                          queue(sandbox);
                                        });
}

void Guests::use(const std::string& sandbox, Guest& guest, const guest::Address& address) {
  const bool is_only_kata = guest.through == GuestAgent::kNone && guest.record.view.writes.by_kata;
  if (guest.through != GuestAgent::kKataAgent && !is_only_kata) {
    guest.state = State::kOurs;
    return use_ours(sandbox, guest, address);
  }
  guest.state = State::kKata;
  const bool is_ours = address.port == guest::kPort;
  const auto beside = is_ours ? guest::kata_agent_beside(address) : address;
  use_kata(sandbox, guest, beside.value_or(address));
}

PeerEvents Guests::peer_events(const std::string& sandbox) {
  return {.connected = [] {},
          .changed = [this, sandbox] { changed(sandbox); },
          .outdated = [this, sandbox] { queue(sandbox); },
          .lost = {}};
}

void Guests::use_ours(const std::string& sandbox, Guest& guest, const guest::Address& address) {
  PeerEvents events = peer_events(sandbox);
  events.connected = [this, sandbox] { ours_answers(sandbox); };
  events.lost = [this, sandbox](const std::string& reason) { ours_lost(sandbox, reason); };
  guest.ours = std::make_unique<OurPeer>(
      io_, clock_, guest.record, address, std::move(events),
      [this](std::chrono::nanoseconds elapsed) { board_.counters().guest_reactions.add(elapsed); });
  guest.ours->adopt();
}

void Guests::use_kata(const std::string& sandbox, Guest& guest, const guest::Address& address) {
  const auto view = line_.node().view(sandbox);
  KataPeer::Events events{peer_events(sandbox), {}, {}};
  events.connected = [this, sandbox] { kata_answers(guests_.at(sandbox)); };
  events.lost = [this, sandbox](const std::string& reason) { kata_lost(sandbox, reason); };
  events.uncertain = [this, sandbox] { warn_of_numbers(sandbox); };
  events.counted = [this, sandbox] { record_count(sandbox); };
  guest.kata = std::make_unique<KataPeer>(io_, clock_, guest.record, address,
                                          !view || is_systemds(view->cgroup), std::move(events));
  guest.kata->adopt();
}

void Guests::place(const std::string& sandbox, Guest& guest, const line::SandboxView& view,
                   Time planned) {
  if (view.plan.vcpus.empty()) return;
  board::GuestView& guest_view = guest.record.view;
  const bool gives_back = view.released || view.observed || guest.through == GuestAgent::kNone;
  if (view.observed && guest_view.writes.containers.empty()) return;
  auto spec =
      policy::plan::guest_spec(view.plan, view.vcpus, line_.node().topology, view.settings.guest,
                               guest.record.boot.may_grow(static_cast<int>(view.vcpus.size())));
  // A vCPU without a known id cannot be placed, and guessing would be worse than waiting.
  if (spec.vcpus.size() != view.plan.vcpus.size()) return;
  spec.halt_poll = view.grade && view.grade->in_force() == policy::plan::Grade::kRealtime;
  lift_requested_quotas(line_.node(), view.pod, spec);
  if (gives_back) spec = {.move_interrupts = false, .release = true};
  guest_view.spec = std::move(spec);
  if (GuestPeer* peer = guest.peer()) return peer->place(planned);
  // No agent is connected; report it if there is something to request.
  if (view.guest != nullptr || policy::plan::keeps_vcpus_apart(guest_view.spec)) {
    show(sandbox, guest);
  }
}

/// Kata's, which may have taken its place, is not needed any more, and is not to write again what
/// it got.
void Guests::ours_answers(const std::string& sandbox) {
  Guest& guest = guests_.at(sandbox);
  if (guest.record.view.writes.by_kata) {
    release_guest(guest.record);
    guest.record.view.writes = {};
  }
  guest.missed_a_start = false;
  guest.loss.reset();
  kinds_[guest.kind()].is_silent = false;
  if (std::exchange(guest.state, State::kOurs) == State::kOurs) return;
  guest.kata.reset();
  guest.ours->adopt();
  queue(sandbox);
}

void Guests::fall_back(const std::string& sandbox, Guest& guest) {
  const auto address = guest::kata_agent_beside(guest.ours->address());
  if (!address) return;
  guest.state = State::kFallback;
  use_kata(sandbox, guest, *address);
  queue(sandbox);
}

void Guests::record_count(const std::string& sandbox) {
  line_.refresh(sandbox);
  const auto view = line_.node().view(sandbox);
  const auto found = guests_.find(sandbox);
  if (!view || found == guests_.end() || !found->second.kata) return;
  GuestRecord& record = found->second.record;
  policy::plan::record_vcpus(record.view.plugged, view->vcpus, record.boot);
  found->second.kata->record_count();
  queue(sandbox);
}

void Guests::changed(const std::string& sandbox) {
  show(sandbox, guests_.at(sandbox));
  release_starts(sandbox);
}

/// Records the guest's status, with what is unconfirmed. A container that is not in the guest (yet)
/// has nothing that could run elsewhere.
void Guests::show(const std::string& sandbox, Guest& guest) {
  board::GuestView& view = guest.record.view;
  const GuestPeer* peer = guest.peer();
  if (has_placed(view)) kinds_[guest.kind()].places = true;
  view.doubts.clear();
  if (policy::plan::keeps_vcpus_apart(view.spec)) {
    for (const policy::GuestContainer& container : view.spec.containers) {
      const auto doubt = peer != nullptr && view.connected
                             ? peer->doubt_about(container)
                             : std::optional(policy::GuestDoubt::kAgentAway);
      if (doubt) view.doubts[container.id] = *doubt;
    }
  }
  if (view.address.empty()) view.text = "no agent address is known";
  board_.set_guest(sandbox, view);
}

void Guests::measure(const std::string& sandbox, const guest::LatencyRequest& request,
                     guest::Measurement::Done done) {
  using base::ErrorCode, base::fail;
  const auto found = guests_.find(sandbox);
  const bool has_ours = found != guests_.end() && found->second.state == State::kOurs &&
                        found->second.record.view.connected;
  if (!has_ours) {
    return done(fail(ErrorCode::kUnavailable, "no kata-affinity-agent responds in its guest"));
  }
  const guest::Address& address = found->second.ours->address();
  if (address.kind == guest::Address::Kind::kSerial) {
    return done(
        fail(ErrorCode::kUnavailable,
             "its agent is behind a serial port, which carries one connection; vsock is needed"));
  }
  if (measurements_.contains(sandbox)) {
    return done(fail(ErrorCode::kConflict, "a measurement of this sandbox is in progress"));
  }
  measurements_[sandbox] = std::make_unique<guest::Measurement>(
      io_, clock_, address, request, [this, sandbox, done = std::move(done)](auto result) {
        const auto ended = measurements_.extract(sandbox);
        done(std::move(result));
      });
}

/// Nothing of ours is in the guest.
void Guests::drop(const std::string& sandbox) {
  guests_.erase(sandbox);
  board_.clear_guest(sandbox);
  release_starts(sandbox);
}

/// A VM that lives on without us, as no other pod's, is given its containers' CPUs back.
void Guests::forget(const std::string& sandbox) {
  const auto gone = guests_.extract(sandbox);
  if (gone.empty()) return;
  release_starts(sandbox);
  const auto& [record, vmm] = std::tie(gone.mapped().record, gone.mapped().vmm);
  const bool is_anothers = vmm && line_.node().ledger().find_holder(*vmm, sandbox) != nullptr;
  if (record.view.connected && !is_anothers) release_guest(record);
}

/// The sandbox is gone, so nothing reports the result.
void Guests::release_guest(const GuestRecord& record) {
  const policy::GuestWrites& writes = record.view.writes;
  const auto address = guest::parse_address(writes.address);
  if (writes.containers.empty() || !address) return;
  Leaving& leaving = leaving_.emplace_back(io_, clock_);
  if (writes.by_kata) {
    auto& kata = leaving.link.emplace<guest::KataLink>(io_, clock_, *address, false,
                                                       guest::KataLink::Events{});
    kata.place(policy::plan::sets_for_kata({.release = true}, record.numbers, writes.containers),
               false);
  } else {
    auto& ours = leaving.link.emplace<guest::Link>(io_, clock_, *address, guest::Link::Events{});
    ours.apply({.move_interrupts = false, .release = true});
  }
  leaving.timer.in(kReleaseTime, [this] { leaving_.pop_front(); });
}

}  // namespace ka::guests
