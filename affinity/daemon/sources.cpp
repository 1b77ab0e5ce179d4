#include "affinity/daemon/sources.hpp"

#include <set>
#include <utility>

#include "affinity/engine/engine.hpp"
#include "vmm/threads.hpp"

namespace ka::daemon {
namespace {

using policy::Event;
using policy::Source;

constexpr std::chrono::nanoseconds kNoHurry = std::chrono::hours(1);

/// What the ledger has from the container runtime and the runtime no longer has.
std::vector<Event> find_gone(const policy::Ledger& ledger, const std::vector<Event>& all) {
  std::set<std::string> pods;
  std::set<std::pair<std::string, std::string>> containers;
  for (const Event& event : all) {
    if (const auto* pod = std::get_if<policy::PodSeen>(&event.body)) pods.insert(pod->id);
    if (const auto* seen = std::get_if<policy::ContainerSeen>(&event.body)) {
      containers.emplace(seen->sandbox, seen->container.id);
    }
  }
  std::vector<Event> gone;
  for (const auto& [id, pod] : ledger.pods()) {
    if (pod.source == Source::kNri && !pods.contains(id)) {
      gone.push_back({Source::kNri, policy::PodGone{id}});
      continue;
    }
    for (const auto& [container, record] : pod.containers) {
      if (record.source == Source::kNri && !containers.contains({id, container})) {
        gone.push_back({Source::kNri, policy::ContainerGone{id, container}});
      }
    }
  }
  return gone;
}

}  // namespace

Sources::Sources(boost::asio::io_context& io, engine::Engine& engine, const vmm::Roots& roots,
                 const Paths& paths, const base::Log& log, const base::Clock& clock)
    : engine_(engine), log_(log), clock_(clock) {
  if (!paths.kubelet_state.empty()) {
    kubelet_.emplace(
        io, paths.kubelet_state, [this](const Event& event) { engine_.handle(event); }, log);
    kubelet_->refresh();
  }
  if (!paths.nri_socket.empty()) {
    runtime_.emplace(
        io, paths.nri_socket, nri::Identity{}, [roots](int pid) { return vmm::is_vmm(roots, pid); },
        static_cast<nri::Listener&>(*this), log, clock);
  }
}

void Sources::refresh() {
  if (kubelet_) kubelet_->refresh();
  if (runtime_) runtime_->collect();
}

/// kubelet wrote its state before it asked the runtime for anything.
void Sources::before(const std::vector<Event>& events) {
  if (kubelet_) kubelet_->refresh();
  narrow(events, kBudget);
}

void Sources::after(const std::vector<Event>& events, const std::string& sandbox) {
  narrow(events, kNoHurry);
  engine_.finish(sandbox);
}

void Sources::synchronized(const std::vector<Event>& events) {
  if (kubelet_) kubelet_->refresh();
  narrow(events, kNoHurry);
  narrow(find_gone(engine_.ledger(), events), kNoHurry);
  engine_.finish({});
}

void Sources::narrow(const std::vector<Event>& events, std::chrono::nanoseconds budget) {
  const auto end = clock_.now() + budget;
  for (const Event& event : events) engine_.narrow(event, end - clock_.now());
}

std::optional<policy::ContainerFacts> Sources::known(std::string_view sandbox,
                                                     std::string_view container) const {
  const policy::PodRecord* pod = engine_.ledger().find(sandbox);
  if (pod == nullptr) return std::nullopt;
  const auto found = pod->containers.find(std::string(container));
  if (found == pod->containers.end()) return std::nullopt;
  return found->second.facts;
}

void Sources::answered(std::string_view method, std::chrono::nanoseconds took) {
  if (took <= kBudget) return;
  const auto milliseconds = std::chrono::duration_cast<std::chrono::milliseconds>(took).count();
  log_.warning("the container runtime had to wait",
               {{"call", std::string(method)}, {"milliseconds", std::to_string(milliseconds)}});
}

void Sources::connected(const std::string& runtime) {
  log_.info("connected to the container runtime", {{"runtime", runtime}});
}

void Sources::disconnected(const std::string&) {}  // the plugin logs it and tries on

}  // namespace ka::daemon
