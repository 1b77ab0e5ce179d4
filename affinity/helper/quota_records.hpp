// SPDX-License-Identifier: Apache-2.0
// Which CFS quotas were taken away.
#pragma once

#include <boost/json/object.hpp>
#include <map>
#include <string>

#include "base/json/json.hpp"

namespace ka::helper {

struct QuotaRecords {
  static constexpr const char* kFile = "quotas.json";

  std::map<std::string, std::string> quotas;  ///< by cgroup: the cpu.max that others last wanted

  bool empty() const { return quotas.empty(); }
  bool operator==(const QuotaRecords&) const = default;

  void write(boost::json::object& document) const;
  /// An error for what is no path of a cgroup, and for what is no quota.
  static QuotaRecords read(base::Fields& fields, base::InputError& errors);
};

}  // namespace ka::helper
