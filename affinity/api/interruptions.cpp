// SPDX-License-Identifier: Apache-2.0
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <chrono>

#include "affinity/api/encode.hpp"
#include "affinity/line/cpu_interruptions.hpp"
#include "affinity/line/node.hpp"

namespace ka::api {
namespace {

namespace json = boost::json;

json::object to_json(int cpu, const line::CpuInterruptions::Tenancy& tenancy,
                     const line::Node& node) {
  const auto* pod = node.ledger().find(tenancy.sandbox);
  const auto time = node.clock.now() - tenancy.since;
  return {{"cpu", cpu},
          {"sandbox", tenancy.sandbox},
          {"pod_name", pod == nullptr ? "" : pod->pod_name},
          {"vcpu", tenancy.vcpu},
          {"seconds", std::chrono::duration<double>(time).count()},
          {"slices", tenancy.count.slices},
          {"nanoseconds", tenancy.count.nanoseconds},
          {"interrupts", tenancy.count.interrupts},
          {"passed_through", tenancy.count.passed_through}};
}

}  // namespace

json::object interruptions_to_json(const line::Node& node,
                                   const line::CpuInterruptions& interruptions,
                                   std::string_view sandbox) {
  json::array cpus;
  for (const auto& [cpu, tenancy] : interruptions.tenancies()) {
    if (!sandbox.empty() && tenancy.sandbox != sandbox) continue;
    cpus.push_back(to_json(cpu, tenancy, node));
  }
  return {{"problem", interruptions.problem()}, {"cpus", std::move(cpus)}};
}

}  // namespace ka::api
