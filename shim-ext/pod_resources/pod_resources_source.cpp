// SPDX-License-Identifier: Apache-2.0
#include "shim-ext/pod_resources/pod_resources_source.hpp"

#include <algorithm>
#include <set>
#include <utility>

namespace ka::pod_resources {
namespace {

using base::ErrorCode;
using policy::ledger::Basis;
using policy::ledger::Ledger;
using policy::ledger::ResourcesSeen;

constexpr auto kSource = policy::ledger::Source::kPodResources;

/// kubelet may know who owns its CPUs, and no source of its rank has reported it.
bool is_undecided(const Ledger& ledger, const policy::ledger::PodRecord& pod) {
  if (pod.pod_name.empty()) return false;
  return std::ranges::any_of(pod.containers, [&](const auto& entry) {
    const policy::ledger::ContainerRecord& container = entry.second;
    if (container.facts.cpus.empty() || container.facts.exited) return false;
    return ledger.ownership_of(pod, container).basis > Basis::kPodResources;
  });
}

bool has_undecided(const Ledger& ledger) {
  return ledger.lacks_claims() && std::ranges::any_of(ledger.pods(), [&](const auto& entry) {
           return is_undecided(ledger, entry.second);
         });
}

std::string describe(const ResourcesSeen& seen) {
  if (seen.allocatable.empty()) return "no static CPU manager policy: no container owns CPUs";
  std::set<std::string> owners;
  for (const auto& one : seen.assignments) {
    if (!one.cpus.empty()) owners.insert(one.pod);
  }
  return std::to_string(owners.size()) + (owners.size() == 1 ? " pod owns" : " pods own") +
         " CPUs, of " + policy::format_list(seen.allocatable);
}

}  // namespace

PodResourcesSource::PodResourcesSource(boost::asio::io_context& io, const base::Clock& clock,
                                       std::filesystem::path socket, source::Node& node,
                                       source::Peers& peers, const log::Log& log)
    : io_(io),
      clock_(clock),
      socket_(std::move(socket)),
      node_(node),
      peers_(peers),
      log_(log),
      next_(io, clock) {}

/// kubelet's state is watched, this is not: while it decides, it is asked again.
void PodResourcesSource::refresh() {
  const bool is_old = !queried_ || clock_.now() - *queried_ >= kLongestPause;
  if (is_old && node_.ledger().lacks_claims()) query();
}

void PodResourcesSource::notify(source::Notice notice) {
  if (notice != source::Notice::kLineRan || waits_ || client_) return;
  if (!node_.ledger().lacks_claims()) return;
  waits_ = true;
  const auto now = clock_.now();
  next_.at(queried_ ? std::max(now, *queried_ + backoff_.pause()) : now,
           [this] { query_in_doubt(); });
}

void PodResourcesSource::query_in_doubt() {
  waits_ = false;
  if (!has_undecided(node_.ledger())) return backoff_.reset();
  backoff_.next();
  query();
}

/// An answer of less than kPause ago is as good.
void PodResourcesSource::query_for_verify(const std::function<void()>& answered) {
  const bool is_recent = queried_ && clock_.now() - *queried_ < kPause;
  if (is_recent && !client_) return answered();
  waiting_.push_back(answered);
  query();
}

void PodResourcesSource::query() {
  if (client_) return;
  queried_ = clock_.now();
  client_.emplace(io_, clock_, socket_,
                  [this](base::Result<ResourcesSeen> seen) { record(std::move(seen)); });
}

void PodResourcesSource::record(base::Result<ResourcesSeen> seen) {
  client_.reset();
  if (seen) {
    report(std::move(*seen));
  } else {
    record_error(seen.error());
  }
  for (const auto& answered : std::exchange(waiting_, {})) answered();
}

/// A node without kubelet has no such socket: that is not reported. What was answered before
/// holds.
void PodResourcesSource::record_error(const base::Error& error) {
  if (error.code == ErrorCode::kTransient && up_) return;
  if (is_gone(error) && !up_) return;
  node_.set_status(kSource, {false, error.message});
  if (std::exchange(logged_, error.message) == error.message) return;
  log_.warning("cannot ask kubelet for its assignments", {{"reason", error.message}});
}

/// kubelet wrote its state before it answered: it is read first.
void PodResourcesSource::report(ResourcesSeen seen) {
  peers_.catch_up(base::Deadline::none());
  up_ = true;
  logged_.clear();
  node_.set_status(kSource, {true, describe(seen)});
  if (seen != node_.ledger().assignments().seen()) {
    node_.narrow({{kSource, std::move(seen)}}, base::Deadline::none());
  }
  node_.synced(kSource);
  node_.finish({});
}

}  // namespace ka::pod_resources
