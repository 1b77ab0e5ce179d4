#include "affinity/daemon/guests.hpp"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <utility>

#include "affinity/engine/engine.hpp"
#include "policy/plan/guest.hpp"

namespace ka::daemon {
namespace {

using boost::system::error_code;

/// For a guest that is let go to give its containers back.
constexpr std::chrono::seconds kFarewell{1};

guest::Patience patience() { return {}; }

}  // namespace

Guests::Guests(boost::asio::io_context& io, engine::Engine& engine, const vmm::Roots& roots,
               std::filesystem::path run, const log::Log& log)
    : io_(io), engine_(engine), proc_(roots.proc), run_(std::move(run)), log_(log) {
  engine_.on_planned([this](const std::string& sandbox) { notice(sandbox); });
  for (const std::string& id : engine_.sandbox_ids()) notice(id);
}

/// The engine is in the middle of something: what follows from it is done later, once.
void Guests::notice(const std::string& sandbox) {
  if (noticed_.empty()) boost::asio::post(io_, [this] { follow_noticed(); });
  noticed_.insert(sandbox);
}

void Guests::follow_noticed() {
  for (const std::string& sandbox : std::exchange(noticed_, {})) follow(sandbox);
}

void Guests::follow(const std::string& sandbox) {
  const auto view = engine_.view(sandbox);
  const auto through = view ? view->settings.guest.agent : policy::GuestAgent::kNone;
  if (through == policy::GuestAgent::kNone || through == policy::GuestAgent::kKataAgent) {
    return forget(sandbox);
  }
  const auto [entry, is_new] = guests_.try_emplace(sandbox);
  Guest& guest = entry->second;
  if (is_new || guest.told_address != view->pod.agent) look_for(sandbox, guest, *view);
  wish(sandbox, guest, *view);
}

/// By what the sources said, by the VMM's command line, by Kata's shim: in this order.
void Guests::look_for(const std::string& sandbox, Guest& guest, const engine::SandboxView& view) {
  guest.told_address = view.pod.agent;
  guest.link.reset();
  guest.view = {};
  if (!guest.told_address.empty()) {
    const auto address = guest::parse_address(guest.told_address);
    if (address) use(sandbox, guest, *address);
    return;
  }
  const auto command_line = proc_.cmdline(view.pod.vmm_pid.value_or(0));
  if (const auto address = command_line ? guest::address_of(*command_line) : std::nullopt) {
    return use(sandbox, guest, *address);
  }
  guest.looking = std::make_unique<guest::AgentUrl>(
      io_, guest::management_sockets(sandbox, run_), [this, sandbox](const std::string& url) {
        const auto found = guests_.find(sandbox);
        const auto address = guest::address_beside(url);
        if (found == guests_.end() || !address) return;
        use(sandbox, found->second, *address);
        notice(sandbox);
      });
}

void Guests::use(const std::string& sandbox, Guest& guest, const guest::Address& address) {
  guest.view.address = guest::to_string(address);
  guest.view.text = "not connected yet";
  guest.wished = false;
  guest.link = std::make_unique<guest::Link>(
      io_, address,
      guest::Link::Events{[this, sandbox](const std::string& program) {
                            Guest& known = guests_.at(sandbox);
                            known.view.connected = true;
                            known.view.text = program;
                            known.missed_a_start = false;
                            engine_.set_guest(sandbox, known.view);
                          },
                          [this, sandbox](const guest::News& news) { take(sandbox, news); },
                          [this, sandbox](const std::string& reason) { lost(sandbox, reason); }},
      patience());
}

void Guests::wish(const std::string& sandbox, Guest& guest, const engine::SandboxView& view) {
  if (!guest.link || view.observed || view.plan.vcpus.empty()) return;
  auto wishes =
      policy::guest_wishes(view.plan, view.vcpus, engine_.topology(), view.settings.guest);
  // Who cannot be named cannot be placed, and to guess would be worse than to wait.
  if (wishes.vcpus.size() != view.plan.vcpus.size()) return;
  if (view.released) wishes = {.move_interrupts = false, .release = true};
  if (std::exchange(guest.wished, true) && wishes == guest.view.wishes) return;
  guest.view.wishes = std::move(wishes);
  guest.view.current = false;
  guest.link->wish(guest.view.wishes);
  engine_.set_guest(sandbox, guest.view);
}

void Guests::take(const std::string& sandbox, const guest::News& news) {
  Guest& guest = guests_.at(sandbox);
  guest.view.report = news.report;
  guest.view.current |= news.answers_wishes;
  engine_.set_guest(sandbox, guest.view);
  let_starts_go_on(sandbox);
}

void Guests::lost(const std::string& sandbox, const std::string& reason) {
  Guest& guest = guests_.at(sandbox);
  const bool was_there = std::exchange(guest.view.connected, false);
  guest.view.text = reason;
  guest.view.report.reset();
  guest.view.current = false;
  engine_.set_guest(sandbox, guest.view);
  if (was_there)
    log_.warning("a guest's agent is lost", {{"sandbox", sandbox}, {"reason", reason}});
  let_starts_go_on(sandbox);
}

/// A VM that lives on without us is given its containers' CPUs back.
void Guests::forget(const std::string& sandbox) {
  auto gone = guests_.extract(sandbox);
  if (gone.empty()) return;
  let_starts_go_on(sandbox);
  Guest& guest = gone.mapped();
  if (!guest.link || !guest.view.connected || !guest.wished) return;
  Leaving& leaving = leaving_.emplace_back();
  // Whoever is told of it is not there any more.
  leaving.link =
      std::make_unique<guest::Link>(io_, guest.link->address(), guest::Link::Events{}, patience());
  leaving.link->wish({.move_interrupts = false, .release = true});
  leaving.timer = std::make_unique<boost::asio::steady_timer>(io_, kFarewell);
  leaving.timer->async_wait([this](const error_code& error) {
    if (!error) leaving_.pop_front();
  });
}

bool Guests::is_placed(const Guest& guest, const std::string& container) const {
  if (!guest.view.current || !guest.view.report) return false;
  const auto& containers = guest.view.report->containers;
  const auto state = std::ranges::find(containers, container, &policy::GuestContainerState::id);
  return state != containers.end() && state->problem != policy::GuestProblem::kNotFound;
}

void Guests::await(const std::string& sandbox, const std::string& container,
                   std::function<void()> go_on) {
  follow(sandbox);
  const auto found = guests_.find(sandbox);
  if (found == guests_.end() || !found->second.view.connected || !found->second.wished ||
      found->second.missed_a_start || is_placed(found->second, container)) {
    return go_on();
  }
  Waiting& waiting = waiting_.emplace_back(io_);
  waiting.sandbox = sandbox;
  waiting.container = container;
  waiting.go_on = std::move(go_on);
  waiting.timer.expires_after(kStartBudget);
  waiting.timer.async_wait([this, sandbox](const error_code& error) {
    if (error) return;
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
