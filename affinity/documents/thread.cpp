// SPDX-License-Identifier: Apache-2.0
#include "affinity/documents/thread.hpp"

#include <cstdint>

namespace ka::documents {

using policy::ThreadKey;

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
