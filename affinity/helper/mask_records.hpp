// SPDX-License-Identifier: Apache-2.0
// The masks of the host that were changed.
#pragma once

#include <boost/json/object.hpp>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "base/json/json.hpp"
#include "policy/facts/id_set.hpp"
#include "policy/plan/host_masks.hpp"

namespace ka::helper {

/// Kind and name of a mask.
using MaskKey = std::pair<std::string, std::string>;

struct MaskRecords {
  static constexpr const char* kFile = "quiet.json";

  policy::CpuSet quiet;  ///< the CPUs that the host was kept off
  std::map<MaskKey, policy::plan::HostRecord> masks;
  /// Those of `masks` whose write was begun, and is not known to be done: it may have several
  /// steps.
  std::set<MaskKey> begun;
  policy::CpuSet interrupts = {};  ///< CPUs that its interrupts alone were kept off
  /// By kind, of those whose masks another kind gives them (HostMasks::born_by()): the names of all
  /// that were there at the last look. What came since was born with a mask of ours.
  std::map<std::string, std::set<std::string>> seen = {};

  bool empty() const { return masks.empty() && quiet.empty() && interrupts.empty(); }
  bool operator==(const MaskRecords&) const = default;

  void write(boost::json::object& document) const;
  static MaskRecords read(base::Fields& fields, base::InputError& errors);
};

}  // namespace ka::helper
