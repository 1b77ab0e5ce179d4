// SPDX-License-Identifier: Apache-2.0
#include "affinity/documents/rdt.hpp"

#include <boost/json/value.hpp>
#include <string>

namespace ka::documents {
namespace {

using policy::RdtShares;
using policy::ThreadKey;

/// Leaves `into` as it is where the key is absent.
template <typename Value, typename Parse>
void read(base::Fields& fields, std::string_view name, std::optional<Value>& into, Parse parse) {
  std::string text;
  if (!fields.read(name, text)) return;
  into = parse(text);
  if (!into) fields.reject(name, "is not a share");
}

}  // namespace

boost::json::object to_json(const RdtShares& shares) {
  boost::json::object object;
  if (shares.l3) object["l3"] = policy::format_share(*shares.l3);
  if (shares.l2) object["l2"] = policy::format_share(*shares.l2);
  if (shares.mba) object["mba"] = policy::format_bandwidth(*shares.mba);
  return object;
}

RdtShares read_shares(base::Fields& fields) {
  RdtShares shares;
  read(fields, "l3", shares.l3, policy::parse_cache_share);
  read(fields, "l2", shares.l2, policy::parse_cache_share);
  read(fields, "mba", shares.mba, policy::parse_bandwidth);
  return shares;
}

boost::json::object to_json(const ThreadKey& thread) {
  return {{"pid", thread.pid}, {"tid", thread.tid}, {"start_time", thread.start_time}};
}

ThreadKey read_thread(base::Fields& fields) {
  ThreadKey thread;
  std::int64_t start_time = 0;
  fields.require({"pid", "tid", "start_time"});
  fields.read("pid", thread.pid);
  fields.read("tid", thread.tid);
  fields.read("start_time", start_time);
  if (thread.pid < 1) fields.reject("pid", "must be 1 or more");
  if (thread.tid < 1) fields.reject("tid", "must be 1 or more");
  if (start_time < 0) fields.reject("start_time", "must not be negative");
  thread.start_time = static_cast<std::uint64_t>(start_time);
  return thread;
}

}  // namespace ka::documents
