// SPDX-License-Identifier: Apache-2.0
#include "affinity/words/allocation.hpp"

#include <fmt/core.h>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include "affinity/words/sentences.hpp"

namespace ka::words {
namespace {

using What = policy::allocate::Finding::What;

const char* what_name(What what) {
  switch (what) {
    case What::kOrdered:
      return "ordered";
    case What::kRemoved:
      return "removed";
    case What::kPreferred:
      return "preferred";
    case What::kSpilled:
      return "spilled";
    case What::kKept:
      return "kept";
    case What::kListed:
      return "listed";
    case What::kScored:
      return "scored";
    case What::kChosen:
      return "chosen";
  }
  return "unknown";
}

int node_id(const policy::allocate::Share& share, const policy::allocate::Machine& machine) {
  return machine.group(policy::allocate::CpuLevel::kNode, share.node).id;
}

std::string shares_text(const policy::allocate::Finding& finding,
                        const policy::allocate::Machine& machine) {
  std::string text;
  for (const policy::allocate::Share& share : finding.shares) {
    if (share.cpus == 0) continue;
    text += fmt::format("{}{} of node {}", text.empty() ? "" : ", ", share.cpus,
                        node_id(share, machine));
  }
  return text.empty() ? "" : " (" + text + ")";
}

boost::json::array shares_json(const policy::allocate::Finding& finding,
                               const policy::allocate::Machine& machine) {
  boost::json::array shares;
  for (const policy::allocate::Share& share : finding.shares) {
    shares.push_back(boost::json::object{{"numa", node_id(share, machine)}, {"cpus", share.cpus}});
  }
  return shares;
}

bool tells_stage(What what) {
  return what == What::kOrdered || what == What::kListed || what == What::kScored ||
         what == What::kChosen;
}

}  // namespace

std::string sentence(const policy::allocate::Finding& finding,
                     const policy::allocate::Machine& machine) {
  const std::string cpus = cpus_text(finding.cpus);
  const std::string stage(policy::allocate::stage_name(finding.stage));
  switch (finding.what) {
    case What::kOrdered:
      return "will look at " + stage;
    case What::kRemoved:
      return "removed " + cpus;
    case What::kPreferred:
      return "put " + cpus + " first";
    case What::kSpilled:
      return "took " + cpus + ", which were not enough, and went on with the others";
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

boost::json::object to_json(const policy::allocate::Finding& finding,
                            const policy::allocate::Machine& machine) {
  boost::json::object object{{"phase", policy::allocate::phase_name(finding.phase)},
                             {"step", finding.step},
                             {"what", what_name(finding.what)}};
  if (tells_stage(finding.what)) object["stage"] = policy::allocate::stage_name(finding.stage);
  if (!finding.cpus.empty()) object["cpus"] = policy::format_list(finding.cpus);
  if (finding.what == What::kListed) object["candidates"] = finding.number;
  if (finding.what == What::kChosen || finding.what == What::kScored) {
    object["score"] = finding.score;
  }
  if (!finding.shares.empty()) object["shares"] = shares_json(finding, machine);
  object["text"] = sentence(finding, machine);
  return object;
}

}  // namespace ka::words
