// SPDX-License-Identifier: Apache-2.0
#include "affinity/documents/allocation.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include "affinity/messages/allocation.hpp"

namespace ka::documents {
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

boost::json::array shares_json(const policy::allocate::Finding& finding,
                               const policy::allocate::Machine& machine) {
  boost::json::array shares;
  for (const policy::allocate::Share& share : finding.shares) {
    shares.push_back(boost::json::object{
        {"numa", machine.group(policy::allocate::CpuLevel::kNode, share.node).id},
        {"cpus", share.cpus}});
  }
  return shares;
}

bool names_stage(What what) {
  return what == What::kOrdered || what == What::kListed || what == What::kScored ||
         what == What::kChosen;
}

}  // namespace

boost::json::object to_json(const policy::allocate::Finding& finding,
                            const policy::allocate::Machine& machine) {
  boost::json::object object{{"phase", policy::allocate::phase_name(finding.phase)},
                             {"step", finding.step},
                             {"what", what_name(finding.what)}};
  if (names_stage(finding.what)) object["stage"] = policy::allocate::stage_name(finding.stage);
  if (!finding.cpus.empty()) object["cpus"] = policy::format_list(finding.cpus);
  if (finding.what == What::kListed) object["candidates"] = finding.number;
  if (finding.what == What::kChosen || finding.what == What::kScored) {
    object["score"] = finding.score;
  }
  if (!finding.shares.empty()) object["shares"] = shares_json(finding, machine);
  object["text"] = messages::sentence(finding, machine);
  return object;
}

}  // namespace ka::documents
