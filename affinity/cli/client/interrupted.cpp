// SPDX-License-Identifier: Apache-2.0
#include "affinity/cli/client/interrupted.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>

#include "affinity/cli/client/daemon.hpp"

namespace ka::cli {
namespace {

namespace json = boost::json;

const json::value* find(const json::value& document) {
  return document.is_object() ? document.get_object().if_contains("interruptions") : nullptr;
}

}  // namespace

std::vector<InterruptedCpu> interrupted_of(const json::value& document) {
  std::vector<InterruptedCpu> cpus;
  const json::value* found = find(document);
  if (found == nullptr) return cpus;
  for (const json::value& cpu : array_of(*found, "cpus")) {
    cpus.push_back({number_of(cpu, "cpu"),
                    number_of(cpu, "vcpu"),
                    text_of(cpu, "sandbox"),
                    text_of(cpu, "pod_name"),
                    {number_of(cpu, "slices"), number_of(cpu, "nanoseconds"),
                     number_of(cpu, "interrupts"), real_of(cpu, "seconds")}});
  }
  return cpus;
}

std::string uncounted_of(const json::value& document) {
  const json::value* found = find(document);
  return found == nullptr ? "" : text_of(*found, "problem");
}

}  // namespace ka::cli
