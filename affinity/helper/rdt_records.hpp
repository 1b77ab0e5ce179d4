// SPDX-License-Identifier: Apache-2.0
// The groups of resctrl that were made, and the threads that were moved into them.
#pragma once

#include <boost/json/object.hpp>
#include <map>
#include <string>

#include "affinity/helper/resctrl.hpp"
#include "base/json/json.hpp"
#include "policy/facts/rdt.hpp"
#include "policy/facts/sandbox.hpp"

namespace ka::helper {

struct RdtTask {
  std::string name;  ///< of its class
  RdtHome theirs;    ///< where it was before

  bool operator==(const RdtTask&) const = default;
};

struct RdtRecords {
  static constexpr const char* kFile = "resctrl.json";

  std::map<std::string, policy::RdtShares> groups;  ///< by name of the class
  std::map<policy::ThreadKey, RdtTask> tasks;       ///< each in a class of `groups`

  bool empty() const { return groups.empty() && tasks.empty(); }
  bool operator==(const RdtRecords&) const = default;

  void write(boost::json::object& document) const;
  static RdtRecords read(base::Fields& fields, base::InputError& errors);
};

}  // namespace ka::helper
