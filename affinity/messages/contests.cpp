// SPDX-License-Identifier: Apache-2.0
#include "affinity/messages/contests.hpp"

#include "affinity/messages/terms.hpp"

namespace ka::messages {

std::string sentence(const policy::ledger::Contest& contest) {
  std::string text = cpus_text(contest.cpus) + (contest.cpus.size() == 1 ? " is" : " are") +
                     " assigned to more than one pod";
  const char* separator = ": ";
  for (const policy::ledger::Contender& contender : contest.contenders) {
    text += separator;
    if (!contender.container.empty()) text += "container " + contender.container + " of ";
    text += "pod " + contender.pod;
    separator = ", ";
  }
  return text;
}

}  // namespace ka::messages
