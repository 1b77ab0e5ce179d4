// SPDX-License-Identifier: Apache-2.0
#include "affinity/daemon/sources.hpp"

#include <set>
#include <utility>

#include "affinity/board/board.hpp"
#include "affinity/engine/engine.hpp"
#include "vmm/threads.hpp"

namespace ka::daemon {
namespace {

using policy::ledger::Event;
using policy::ledger::Source;

constexpr std::chrono::nanoseconds kNoHurry = std::chrono::hours(1);

/// What the ledger has from the container runtime and the runtime no longer has.
std::vector<Event> find_gone(const policy::ledger::Ledger& ledger, const std::vector<Event>& all) {
  std::set<std::string> pods;
  std::set<std::pair<std::string, std::string>> containers;
  for (const Event& event : all) {
    if (const auto* pod = std::get_if<policy::ledger::PodSeen>(&event.body)) pods.insert(pod->id);
    if (const auto* seen = std::get_if<policy::ledger::ContainerSeen>(&event.body)) {
      containers.emplace(seen->sandbox, seen->container.id);
    }
  }
  std::vector<Event> gone;
  for (const auto& [id, pod] : ledger.pods()) {
    if (pod.source == Source::kNri && !pods.contains(id)) {
      gone.push_back({Source::kNri, policy::ledger::PodGone{id}});
      continue;
    }
    for (const auto& [container, record] : pod.containers) {
      if (record.source == Source::kNri && !containers.contains({id, container})) {
        gone.push_back({Source::kNri, policy::ledger::ContainerGone{id, container}});
      }
    }
  }
  return gone;
}

/// A file that cannot be seen is not absent.
bool is_absent(const std::filesystem::path& file) {
  std::error_code failed;
  return !std::filesystem::exists(file, failed) && !failed;
}

base::Result<nri::Process> look_at(const vmm::Roots& roots, int pid, nri::Of of) {
  const auto word = of == nri::Of::kPod ? vmm::Word::kRuntime : vmm::Word::kTenant;
  const auto examined = vmm::examine(roots, pid, word);
  if (!examined) return unexpected(examined.error());
  return nri::Process{examined->is_vmm, examined->id};
}

}  // namespace

Sources::Sources(boost::asio::io_context& io, engine::Engine& engine, board::Board& board,
                 const vmm::Roots& roots, const Paths& paths, const Inside& inside,
                 const log::Log& log, const base::Clock& clock)
    : io_(io),
      engine_(engine),
      board_(board),
      roots_(roots),
      nri_socket_(paths.nri_socket),
      inside_(inside),
      log_(log),
      clock_(clock),
      kata_(io, engine, board, roots, paths.kata, log) {
  engine_.expect(Source::kPersist);
  if (!nri_socket_.empty()) {
    engine_.expect(Source::kNri);
    board_.set_source(Source::kNri, {false, "not connected yet"});
  }
  if (paths.kubelet_state.empty()) return;
  if (!is_absent(paths.kubelet_state)) engine_.expect(Source::kKubelet);
  kubelet_.emplace(
      io, paths.kubelet_state, [this](const Event& event) { take(event); },
      [this](bool up, const std::string& text) { board_.set_source(Source::kKubelet, {up, text}); },
      log);
  kubelet_->refresh();
}

void Sources::start() {
  if (nri_socket_.empty()) {
    kata_.take_over();
  } else {
    runtime_.emplace(
        io_, nri_socket_, nri::Identity{},
        [roots = roots_](int pid, nri::Of of) { return look_at(roots, pid, of); },
        static_cast<nri::Listener&>(*this), log_, clock_);
  }
  kata_.refresh();
}

void Sources::refresh() {
  if (kubelet_) kubelet_->refresh();
  if (runtime_) runtime_->look_again();
  kata_.refresh();
}

/// kubelet wrote its state before it asked the runtime for anything.
void Sources::before(const std::vector<Event>& events) {
  answer_by_ = clock_.now() + kBudget;
  if (kubelet_) kubelet_->refresh();
  engine_.narrow(events, *answer_by_ - clock_.now());
  answer_by_.reset();
}

nri::Adjustment Sources::creating(const std::vector<Event>& events, const nri::Creation& creation) {
  before(events);
  return inside_.files.equip(creation);
}

/// The guest counts from what was planned when the container was made.
void Sources::starting(const std::vector<Event>& events, const std::string& sandbox,
                       const std::string& container, std::function<void()> go_on) {
  before(events);
  inside_.guests.await(sandbox, container, std::move(go_on));
}

void Sources::after(const std::vector<Event>& events, const std::string& sandbox) {
  engine_.narrow(events, kNoHurry);
  engine_.finish(sandbox);
}

/// Of a whole node, and nobody waits: the line runs once.
void Sources::synchronized(const std::vector<Event>& events) {
  if (kubelet_) kubelet_->refresh();
  std::vector<Event> all = events;
  for (Event& event : find_gone(engine_.ledger(), events)) all.push_back(std::move(event));
  engine_.handle(all);
  engine_.source_spoke(Source::kNri);
  engine_.finish({});
  inside_.files.sweep();
  kata_.follow_masks();
}

/// While a container runtime waits only what narrows is done.
void Sources::take(const Event& event) {
  if (answer_by_) {
    engine_.narrow({event}, *answer_by_ - clock_.now());
  } else {
    engine_.handle(event);
  }
}

std::optional<policy::ContainerFacts> Sources::known(std::string_view sandbox,
                                                     std::string_view container) const {
  const policy::ledger::PodRecord* pod = engine_.ledger().find(sandbox);
  if (pod == nullptr) return std::nullopt;
  const auto found = pod->containers.find(std::string(container));
  if (found == pod->containers.end()) return std::nullopt;
  return found->second.facts;
}

void Sources::answered(std::string_view method, std::chrono::nanoseconds took) {
  board_.counters().answers.add(took);
  if (took <= kBudget) return;
  const auto milliseconds = std::chrono::duration_cast<std::chrono::milliseconds>(took).count();
  log_.warning("NRI response exceeded its 50 ms budget",
               {{"call", std::string(method)}, {"milliseconds", std::to_string(milliseconds)}});
}

void Sources::connected(const std::string& runtime) {
  board_.set_source(Source::kNri, {true, runtime});
  kata_.rest(true);
}

void Sources::disconnected(const std::string& reason) {
  board_.set_source(Source::kNri, {false, reason + "; trying on"});
  kata_.rest(false);
}

}  // namespace ka::daemon
