// SPDX-License-Identifier: Apache-2.0
// Which values of CPUs' power were changed.
#pragma once

#include <boost/json/object.hpp>
#include <map>
#include <string>
#include <utility>

#include "affinity/helper/cpu_power.hpp"
#include "base/json/json.hpp"
#include "policy/facts/power.hpp"

namespace ka::helper {

struct PowerRecord {
  std::string theirs;  ///< what others last wanted
  std::string ours;

  bool operator==(const PowerRecord&) const = default;
};

struct PowerRecords {
  static constexpr const char* kFile = "power.json";

  std::map<std::pair<int, PowerSetting>, PowerRecord> values;  ///< by CPU
  policy::PowerRequests requested;  ///< by pods, beside those of partitions

  bool empty() const { return values.empty() && requested.empty(); }
  bool operator==(const PowerRecords&) const = default;

  void write(boost::json::object& document) const;
  static PowerRecords read(base::Fields& fields, base::InputError& errors);
};

}  // namespace ka::helper
