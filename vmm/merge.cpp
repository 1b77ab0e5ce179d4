// SPDX-License-Identifier: Apache-2.0
#include "vmm/merge.hpp"

#include <algorithm>

namespace ka::vmm {
namespace {

using policy::Role;

constexpr std::string_view kByApicId = "APIC id";

std::string quote_thread(int tid) { return "thread " + std::to_string(tid); }

std::string describe(const Claim& claim) {
  if (claim.role == Role::kIothread) return "iothread \"" + claim.iothread + '"';
  std::string text(policy::role_term(claim.role));
  if (claim.role != Role::kVcpu) return text;
  if (claim.index) text += ' ' + std::to_string(*claim.index);
  if (claim.apic_id) text += " (APIC id " + std::to_string(*claim.apic_id) + ')';
  return text;
}

template <typename T>
bool differ(const std::optional<T>& a, const std::optional<T>& b) {
  return a && b && *a != *b;
}

template <typename T>
bool same(const std::optional<T>& a, const std::optional<T>& b) {
  return a && b && *a == *b;
}

std::string join(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : "+") + word;
  return text;
}

void add_once(std::vector<std::string>& words, const std::string& word) {
  if (!word.empty() && std::ranges::find(words, word) == words.end()) words.push_back(word);
}

}  // namespace

Merge::Merge(const std::vector<SeenThread>& threads) {
  for (const SeenThread& thread : threads) tids_.insert(thread.key.tid);
}

void Merge::add(const Claims& claims) {
  for (const Claim& claim : claims.list) {
    if (auto against = contradiction(claim)) {
      conflicts_.push_back(quote_thread(claim.tid) + ": " + claims.source + " says " +
                           describe(claim) + ", but " + *against);
      continue;
    }
    const auto [entry, is_new] = by_tid_.try_emplace(claim.tid);
    if (is_new) {
      entry->second.claim.tid = claim.tid;
      entry->second.claim.role = claim.role;
      entry->second.role_source = claims.source;
    }
    fill(entry->second, claim, claims.source);
  }
}

std::optional<std::string> Merge::contradiction(const Claim& claim) const {
  if (!tids_.contains(claim.tid)) return "it is not a thread of the VMM";
  for (const auto& [tid, known] : by_tid_) {
    if (auto against = contradiction(claim, known)) return against;
  }
  return std::nullopt;
}

/// In one thread role, numbers and name must agree; between two, vCPU numbers must differ.
std::optional<std::string> Merge::contradiction(const Claim& claim, const Known& known) const {
  const Claim& other = known.claim;
  if (other.tid != claim.tid) {
    if (same(claim.index, other.index)) {
      return known.index_source + " says that is " + quote_thread(other.tid);
    }
    if (same(claim.apic_id, other.apic_id)) {
      return known.apic_source + " says that is " + quote_thread(other.tid);
    }
    return std::nullopt;
  }
  const bool iothread_differs =
      !claim.iothread.empty() && !other.iothread.empty() && claim.iothread != other.iothread;
  if (claim.role != other.role || iothread_differs) {
    return known.role_source + " says " + describe(other);
  }
  if (differ(claim.index, other.index)) return known.index_source + " says " + describe(other);
  if (differ(claim.apic_id, other.apic_id)) return known.apic_source + " says " + describe(other);
  return std::nullopt;
}

void Merge::fill(Known& known, const Claim& claim, const std::string& source) {
  Claim& target = known.claim;
  if (claim.index && !target.index) {
    target.index = claim.index;
    known.index_source = source;
  }
  if (claim.apic_id && !target.apic_id) {
    target.apic_id = claim.apic_id;
    known.apic_source = source;
  }
  if (target.iothread.empty()) target.iothread = claim.iothread;
}

int Merge::free_index(int wanted) const {
  const auto taken = [this](int index) {
    return std::ranges::any_of(
        by_tid_, [index](const auto& entry) { return entry.second.claim.index == index; });
  };
  if (!taken(wanted)) return wanted;
  int index = 0;
  while (taken(index)) ++index;
  return index;
}

void Merge::complete_indices() {
  std::vector<Known*> without;
  for (auto& [tid, known] : by_tid_) {
    if (known.claim.role == Role::kVcpu && !known.claim.index) without.push_back(&known);
  }
  std::ranges::stable_sort(without, {}, [](const Known* known) { return known->claim.apic_id; });
  for (Known* known : without) {
    known->claim.index = free_index(known->claim.apic_id.value_or(0));
    known->index_source = kByApicId;
  }
}

const Claim* Merge::find(int tid) const {
  const auto entry = by_tid_.find(tid);
  return entry == by_tid_.end() ? nullptr : &entry->second.claim;
}

std::string Merge::vcpu_source() const {
  std::vector<std::string> role;
  std::vector<std::string> index;
  for (const auto& [tid, known] : by_tid_) {
    if (known.claim.role != Role::kVcpu) continue;
    add_once(role, known.role_source);
    add_once(index, known.index_source);
  }
  if (role == index) return join(role);
  return join(role) + ", index by " + join(index);
}

}  // namespace ka::vmm
