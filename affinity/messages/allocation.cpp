// SPDX-License-Identifier: Apache-2.0
#include "affinity/messages/allocation.hpp"

#include <fmt/core.h>

#include "affinity/messages/terms.hpp"

namespace ka::messages {
namespace {

std::string shares_text(const policy::allocate::Finding& finding,
                        const policy::allocate::Machine& machine) {
  std::string text;
  for (const policy::allocate::Share& share : finding.shares) {
    if (share.cpus == 0) continue;
    text += fmt::format("{}{} of node {}", text.empty() ? "" : ", ", share.cpus,
                        machine.group(policy::allocate::CpuLevel::kNode, share.node).id);
  }
  return text.empty() ? "" : " (" + text + ")";
}

}  // namespace

std::string sentence(const policy::allocate::Finding& finding,
                     const policy::allocate::Machine& machine) {
  using What = policy::allocate::Finding::What;
  const std::string cpus = cpus_text(finding.cpus);
  const std::string stage(policy::allocate::stage_name(finding.stage));
  switch (finding.what) {
    case What::kOrdered:
      return "will consider " + stage;
    case What::kRemoved:
      return "removed " + cpus;
    case What::kPreferred:
      return "put " + cpus + " first";
    case What::kSpilled:
      return "took " + cpus + ", too few, and continued with the rest";
    case What::kKept:
      return "kept " + cpus;
    case What::kListed:
      return fmt::format("{}: {} candidates", stage, finding.number);
    case What::kScored:
      return fmt::format("score {:g}", finding.score) + shares_text(finding, machine);
    case What::kChosen:
      return fmt::format("{}: took {} with score {:g}", stage, cpus, finding.score) +
             shares_text(finding, machine);
  }
  return {};
}

}  // namespace ka::messages
