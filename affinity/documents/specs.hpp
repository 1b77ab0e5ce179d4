// SPDX-License-Identifier: Apache-2.0
// Specs of pods and containers, in the fields that all JSON forms share: the
// API's bodies and the state files.
#pragma once

#include <boost/json/fwd.hpp>
#include <string_view>

#include "base/json/json.hpp"
#include "policy/facts/cpu_tuning.hpp"
#include "policy/facts/grade.hpp"
#include "policy/facts/process_id.hpp"
#include "policy/facts/resource_class.hpp"
#include "policy/facts/sandbox.hpp"

namespace ka::documents {

/// The field "annotations": those that ask for resource classes, a grade or tuning of CPUs,
/// and no others.
void read_annotations(base::Fields& fields, policy::Annotations& annotations,
                      policy::GradeRequest& grade);
boost::json::object to_json(const policy::Annotations& annotations, policy::GradeRequest grade);

/// Reads the number of a process or thread. Those of the kernel begin at 1; 0 is the caller in
/// system calls such as sched_setaffinity(2).
inline bool read_pid(base::Fields& fields, std::string_view name, int& pid) {
  if (!fields.read(name, pid)) return false;
  if (pid < 1) fields.reject(name, "must be 1 or more");
  return pid >= 1;
}

/// Reads what is known of a pod beside its id into anything that has those fields (a PodSeen, a
/// PodRecord); what is absent stays as it is. A VMM is named by its number, without a start time.
template <typename Pod>
void read_pod_fields(base::Fields& fields, Pod& pod) {
  policy::ProcessId vmm;
  if (read_pid(fields, "vmm_pid", vmm.pid)) pod.vmm = vmm;
  fields.read("pod_uid", pod.pod_uid, base::kMaxName);
  fields.read("pod_name", pod.pod_name, base::kMaxName);
  fields.read("handler", pod.handler, base::kMaxName);
  fields.read("cgroup", pod.cgroup);
  fields.read("qmp_socket", pod.qmp_socket);
  fields.read("agent", pod.agent, base::kMaxName);
  fields.read("domain", pod.domain, base::kMaxName);
  read_annotations(fields, pod.annotations, pod.requested_grade);
}

/// What only the shim proxy knows of a pod; itself by its number.
template <typename Pod>
void read_proxy_fields(base::Fields& fields, Pod& pod) {
  policy::ProcessId proxy;
  if (read_pid(fields, "proxy_pid", proxy.pid)) pod.proxy = proxy;
  policy::CpuSet original;
  if (fields.read("original_cpus", original)) pod.original_cpus = std::move(original);
}

/// Reads what is never negative.
inline void read_amount(base::Fields& fields, std::string_view name, std::int64_t& amount) {
  if (fields.read(name, amount) && amount < 0) fields.reject(name, "must be 0 or more");
}

/// Reads a container's spec beside its id; what is absent stays as it is.
inline void read_spec_fields(base::Fields& fields, policy::ContainerFacts& container) {
  fields.read("name", container.name, base::kMaxName);
  fields.read("cpus", container.cpus);
  fields.read("mems", container.mems);
  fields.read("quota", container.quota);
  read_amount(fields, "period", container.period);
  read_amount(fields, "shares", container.shares);
}

}  // namespace ka::documents
