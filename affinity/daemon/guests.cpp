#include "affinity/daemon/guests.hpp"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <utility>

#include "affinity/base/runtime_socket.hpp"
#include "affinity/engine/engine.hpp"
#include "guest-agent/host/boot.hpp"
#include "policy/plan/guest.hpp"
#include "vmm/threads.hpp"

namespace ka::daemon {
namespace {

using boost::system::error_code;

/// For a guest that is let go to give its containers back.
constexpr std::chrono::seconds kFarewell{1};

}  // namespace

Guests::Guests(boost::asio::io_context& io, engine::Engine& engine, const vmm::Roots& roots,
               std::filesystem::path run, const log::Log& log, const base::Clock& clock)
    : io_(io), engine_(engine), roots_(roots), run_(std::move(run)), log_(log), clock_(clock) {
  engine_.on_planned([this](const std::string& sandbox) { notice(sandbox); });
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

void Guests::follow(const std::string& sandbox, Time planned) {
  const auto view = engine_.view(sandbox);
  const auto through = view ? view->settings.guest.agent : policy::GuestAgent::kNone;
  if (through == policy::GuestAgent::kNone) return forget(sandbox);
  Guest& guest = guests_[sandbox];
  const bool is_other = std::exchange(guest.through, through) != through;
  // Before its VMM is there a sandbox's shim stands for it, which knows no guest.
  const bool is_other_vmm = std::exchange(guest.vmm, view->pod.vmm) != view->pod.vmm;
  if (is_other || is_other_vmm || guest.told_address != view->pod.agent) {
    look_for(sandbox, guest, *view);
  }
  wish(sandbox, guest, *view, planned);
}

/// By what the sources said, by the VMM's command line, by Kata's shim: in this order.
void Guests::look_for(const std::string& sandbox, Guest& guest, const engine::SandboxView& view) {
  guest.told_address = view.pod.agent;
  guest.looking.reset();
  guest.link.reset();
  guest.kata.reset();
  guest.view = {};
  const auto command_line = command_line_of(view.pod);
  guest.boot = guest::boot_facts(command_line);
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
std::vector<std::string> Guests::command_line_of(const policy::PodRecord& pod) const {
  if (!pod.vmm || vmm::is_contained(roots_, pod.vmm->pid)) return {};
  return vmm::arguments_of(roots_, *pod.vmm).value_or(std::vector<std::string>{});
}

/// A socket is believed where an operator answers for the VMM, or a runtime put it.
std::optional<guest::Address> Guests::address_by(const std::vector<std::string>& command_line,
                                                 const policy::PodRecord& pod) const {
  auto address = guest::address_of(command_line);
  const bool is_believed = !address || address->kind == guest::Address::Kind::kVsock ||
                           pod.source == policy::Source::kApi;
  if (is_believed) return address;
  const auto socket = base::runtime_socket(run_, address->path);
  if (!socket) return std::nullopt;
  address->path = socket->string();
  return address;
}

void Guests::use(const std::string& sandbox, Guest& guest, const guest::Address& address) {
  if (guest.through == policy::GuestAgent::kKataAgent) {
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

/// Ours is there. Kata's, which may have taken its place, is not needed any more.
void Guests::met(const std::string& sandbox, const std::string& program) {
  Guest& guest = guests_.at(sandbox);
  if (guest.kata) {
    guest.kata.reset();
    guest.view = {.address = guest::to_string(guest.link->address())};
    guest.wished = false;
    notice(sandbox);
  }
  guest.view.connected = true;
  guest.view.text = program;
  guest.missed_a_start = false;
  engine_.set_guest(sandbox, guest.view);
}

void Guests::wish(const std::string& sandbox, Guest& guest, const engine::SandboxView& view,
                  Time planned) {
  if (view.observed || view.plan.vcpus.empty()) return;
  if (guest.kata) return wish_through_kata(sandbox, guest, view);
  if (!guest.link) return;
  auto wishes =
      policy::guest_wishes(view.plan, view.vcpus, engine_.topology(), view.settings.guest);
  // Who cannot be named cannot be placed, and to guess would be worse than to wait.
  if (wishes.vcpus.size() != view.plan.vcpus.size()) return;
  if (view.released) wishes = {.move_interrupts = false, .release = true};
  if (std::exchange(guest.wished, true) && wishes == guest.view.wishes) return;
  guest.view.wishes = std::move(wishes);
  guest.view.current = false;
  if (guest.view.connected && !guest.asked) guest.asked = planned;
  guest.link->wish(guest.view.wishes);
  engine_.set_guest(sandbox, guest.view);
}

void Guests::take(const std::string& sandbox, const guest::News& news) {
  Guest& guest = guests_.at(sandbox);
  guest.view.report = news.report;
  guest.view.current |= news.answers_wishes;
  if (news.answers_wishes && guest.asked) {
    guest.view.reaction = clock_.now() - *std::exchange(guest.asked, std::nullopt);
    engine_.count_guest_reaction(guest.view.reaction);
  }
  engine_.set_guest(sandbox, guest.view);
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
  engine_.set_guest(sandbox, guest.view);
  if (was_there)
    log_.warning("a guest's agent is lost", {{"sandbox", sandbox}, {"reason", reason}});
  if (!was_there && guest.through == policy::GuestAgent::kAuto) fall_back(sandbox, guest);
  let_starts_go_on(sandbox);
}

void Guests::fall_back(const std::string& sandbox, Guest& guest) {
  const auto address = guest::kata_agent_beside(guest.link->address());
  if (!address) return;
  use_kata(sandbox, guest, *address);
  notice(sandbox);
}

void Guests::use_kata(const std::string& sandbox, Guest& guest, const guest::Address& address) {
  const auto view = engine_.view(sandbox);
  // What is not known to be no systemd's is taken for one: that only ever does less.
  const bool has_systemd = !view || view->cgroup.empty() ||
                           view->cgroup.find(".slice") != std::string::npos ||
                           view->cgroup.find(".scope") != std::string::npos;
  guest.view = {.address = guest::to_string(address), .text = "kata-agent is not connected yet"};
  guest.cpus.clear();
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
          [this, sandbox](const std::string& reason) { lost_kata(sandbox, reason); }});
}

/// Where it was only tried, in place of ours, nobody expected it.
void Guests::lost_kata(const std::string& sandbox, const std::string& reason) {
  Guest& guest = guests_.at(sandbox);
  const bool was_there = std::exchange(guest.view.connected, false);
  guest.view.text = reason;
  guest.view.report.reset();
  guest.view.current = false;
  engine_.set_guest(sandbox, guest.view);
  if (was_there || guest.through == policy::GuestAgent::kKataAgent) {
    log_.warning("kata-agent does not place containers",
                 {{"sandbox", sandbox}, {"reason", reason}});
  }
  let_starts_go_on(sandbox);
}

/// A number that is wrong would put a container onto another one's vCPU.
void Guests::leave_alone(const std::string& sandbox, Guest& guest) {
  constexpr const char* kWhy =
      "the guest's numbers of its vCPUs are not certain without an agent in it (vCPUs were "
      "plugged): "
      "its containers are left alone";
  if (std::exchange(guest.view.text, kWhy) == kWhy) return;
  guest.view.report.reset();
  guest.view.current = false;
  guest.kata->place({}, false);
  log_.warning(kWhy, {{"sandbox", sandbox}});
  engine_.set_guest(sandbox, guest.view);
}

void Guests::wish_through_kata(const std::string& sandbox, Guest& guest,
                               const engine::SandboxView& view) {
  auto wishes =
      policy::guest_wishes(view.plan, view.vcpus, engine_.topology(), view.settings.guest);
  // Not all is known of the vCPUs yet.
  if (wishes.vcpus.size() != view.plan.vcpus.size()) return;
  auto cpus = policy::guest_cpus_without_agent(view.vcpus, guest.boot);
  if (!cpus) return leave_alone(sandbox, guest);
  if (guest.view.connected) guest.view.text = guest.kata_name;
  guest.view.wishes = std::move(wishes);
  auto placement = policy::place_in_guest(guest.view.wishes, *cpus);
  if (view.released) {
    // kata-agent cannot clear a cpuset.
    for (auto& [container, set] : placement.containers) set = placement.online;
    guest.view.wishes = {.move_interrupts = false, .release = true};
  }
  const bool is_other = std::exchange(guest.cpus, std::move(*cpus)) != guest.cpus;
  guest.wished = true;
  guest.kata->place(placement.containers, is_other);
  take_from_kata(sandbox);
}

void Guests::take_from_kata(const std::string& sandbox) {
  Guest& guest = guests_.at(sandbox);
  if (!guest.kata || guest.cpus.empty() || !guest.view.connected) {
    engine_.set_guest(sandbox, guest.view);
    return;
  }
  const auto placement = policy::place_in_guest(guest.view.wishes, guest.cpus);
  guest.view.report = policy::GuestReport{
      .cpus = guest.cpus, .common = placement.common, .containers = guest.kata->states()};
  guest.view.current = guest.kata->is_current();
  engine_.set_guest(sandbox, guest.view);
  let_starts_go_on(sandbox);
}

/// A VM that lives on without us is given its containers' CPUs back.
void Guests::forget(const std::string& sandbox) {
  auto gone = guests_.extract(sandbox);
  if (gone.empty()) return;
  let_starts_go_on(sandbox);
  Guest& guest = gone.mapped();
  if (!guest.view.connected || !guest.wished) return;
  Leaving& leaving = leaving_.emplace_back();
  bid_farewell(guest, leaving);
  leaving.timer = std::make_unique<boost::asio::steady_timer>(io_, kFarewell);
  leaving.timer->async_wait([this](const error_code& error) {
    if (!error) leaving_.pop_front();
  });
}

/// Whoever would be told of it is not there any more.
void Guests::bid_farewell(const Guest& guest, Leaving& leaving) {
  if (!guest.kata) {
    leaving.link = std::make_unique<guest::Link>(io_, guest.link->address(), guest::Link::Events{});
    leaving.link->wish({.move_interrupts = false, .release = true});
    return;
  }
  const auto placement = policy::place_in_guest(guest.view.wishes, guest.cpus);
  guest::KataLink::Sets everything;
  for (const auto& [container, set] : placement.containers)
    everything[container] = placement.online;
  leaving.kata = std::make_unique<guest::KataLink>(io_, guest.kata->address(), false,
                                                   guest::KataLink::Events{});
  leaving.kata->place(everything, false);
}

bool Guests::is_placed(const Guest& guest, const std::string& container) const {
  if (!guest.view.current || !guest.view.report) return false;
  const auto& containers = guest.view.report->containers;
  const auto state = std::ranges::find(containers, container, &policy::GuestContainerState::id);
  return state != containers.end() && state->problem != policy::GuestProblem::kNotFound;
}

void Guests::await(const std::string& sandbox, const std::string& container,
                   std::function<void()> go_on) {
  follow(sandbox, clock_.now());
  const auto found = guests_.find(sandbox);
  if (found == guests_.end() || !found->second.view.connected || !found->second.wished ||
      found->second.missed_a_start || is_placed(found->second, container)) {
    return go_on();
  }
  Waiting& waiting = waiting_.emplace_back(io_);
  waiting.sandbox = sandbox;
  waiting.container = container;
  waiting.go_on = std::move(go_on);
  waiting.timer.in(kStartBudget, [this, sandbox] {
    const auto late = guests_.find(sandbox);
    if (late != guests_.end()) late->second.missed_a_start = true;
    log_.warning("a container starts before its guest has placed it", {{"sandbox", sandbox}});
    let_starts_go_on(sandbox);
  });
}

/// Those of a sandbox whose guest is not there, was too late, or has placed them.
void Guests::let_starts_go_on(const std::string& sandbox) {
  const auto found = guests_.find(sandbox);
  const bool hopeless =
      found == guests_.end() || !found->second.view.connected || found->second.missed_a_start;
  std::list<Waiting> ready;
  for (auto at = waiting_.begin(); at != waiting_.end();) {
    const auto here = at++;
    if (here->sandbox != sandbox) continue;
    if (hopeless || is_placed(found->second, here->container)) {
      ready.splice(ready.end(), waiting_, here);
    }
  }
  for (const Waiting& waiting : ready) waiting.go_on();
}

}  // namespace ka::daemon
