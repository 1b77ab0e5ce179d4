// SPDX-License-Identifier: Apache-2.0
#include "affinity/messages/contests.hpp"

#include <algorithm>

#include "affinity/messages/terms.hpp"

namespace ka::messages {

namespace {

using policy::ledger::Contender;

std::string container_of(const Contender& contender) {
  return contender.container.empty() ? std::string() : "container " + contender.container + " of ";
}

bool is_within_a_pod(const policy::ledger::Contest& contest) {
  return std::ranges::all_of(contest.contenders, [&](const Contender& one) {
    return one.owner == contest.contenders.front().owner;
  });
}

}  // namespace

std::string contender_list(const std::vector<Contender>& contenders) {
  std::string text;
  for (const Contender& contender : contenders) {
    if (!text.empty()) text += ", ";
    text += contender.is_claim ? "ResourceClaim " + contender.pod
                               : container_of(contender) + "pod " + contender.pod;
  }
  return text;
}

std::string sentence(const policy::ledger::Contest& contest) {
  return cpus_are(contest.cpus) + " assigned to more than one " +
         (is_within_a_pod(contest) ? "container: " : "pod: ") + contender_list(contest.contenders);
}

}  // namespace ka::messages
