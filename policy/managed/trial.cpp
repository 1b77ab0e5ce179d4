// SPDX-License-Identifier: Apache-2.0
#include "policy/managed/trial.hpp"

#include <algorithm>
#include <set>

namespace ka::policy::managed {
namespace {

/// What a container has, or why it would not be created.
Trial::Place place_of(const Books& books, const Candidate& candidate,
                      const std::optional<Problem>& refusal) {
  if (!refusal) return {books.entries().at(candidate.id), books.cpus_of(candidate.id)};
  Entry entry;
  entry.about = candidate;
  entry.problem = refusal;
  return {std::move(entry), {}};
}

std::vector<Trial::Move> moves_between(const Books& before, const Books& after) {
  std::vector<Trial::Move> moves;
  for (const auto& [id, entry] : before.entries()) {
    CpuSet from = before.cpus_of(id);
    CpuSet to = after.cpus_of(id);
    if (!entry.ended && from != to) moves.push_back({entry, std::move(from), std::move(to)});
  }
  return moves;
}

}  // namespace

bool Trial::fits() const {
  return std::ranges::none_of(containers,
                              [](const Place& place) { return place.entry.problem.has_value(); });
}

Trial try_pod(const Books& books, const std::vector<TrialContainer>& containers) {
  Books next = books;
  Trial trial;
  for (const TrialContainer& container : containers) {
    const Candidate& candidate = container.candidate;
    const auto refusal = next.create(candidate, container.locality);
    trial.refused |= refusal.has_value();
    trial.containers.push_back(place_of(next, candidate, refusal));
    if (container.ends && !refusal) next.end(candidate.id);
  }
  for (Trial::Place& place : trial.containers) {
    const auto known = next.entries().find(place.entry.about.id);
    if (known == next.entries().end() || known->second.ended) continue;
    place = {known->second, next.cpus_of(known->first)};
  }
  trial.moves = moves_between(books, next);
  return trial;
}

Trial try_takeover(Books books, const std::vector<Listed>& all) {
  const CpuSet online = books.shared_pool() | books.infra() | books.outside();
  std::set<std::string> sandboxes;
  for (const Listed& one : all) sandboxes.insert(one.candidate.sandbox);
  books.synchronize(all, sandboxes);
  Trial trial;
  for (const Listed& one : all) {
    const auto known = books.entries().find(one.candidate.id);
    if (known == books.entries().end()) continue;
    CpuSet to = books.cpus_of(known->first);
    const CpuSet& from = one.cpus.empty() ? online : one.cpus;
    if (from != to) trial.moves.push_back({known->second, from, to});
    trial.containers.push_back({known->second, std::move(to)});
  }
  return trial;
}

}  // namespace ka::policy::managed
