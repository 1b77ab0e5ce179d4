// SPDX-License-Identifier: Apache-2.0
#include "affinity/cli/client/interrupted.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>

#include "affinity/cli/client/daemon.hpp"
#include "base/json/lookup.hpp"

namespace ka::cli {
namespace json = boost::json;

std::vector<InterruptedCpu> interrupted_of(const json::value& document) {
  std::vector<InterruptedCpu> cpus;
  for (const json::value& cpu : base::elements_at(document, "/interruptions/cpus")) {
    cpus.push_back(
        {number_of(cpu, "cpu"),
         number_of(cpu, "vcpu"),
         text_of(cpu, "sandbox"),
         text_of(cpu, "pod_name"),
         {number_of(cpu, "slices"), number_of(cpu, "nanoseconds"), number_of(cpu, "interrupts"),
          number_of(cpu, "passed_through"), real_of(cpu, "seconds")}});
  }
  return cpus;
}

std::string uncounted_of(const json::value& document) {
  return text_of(base::member(document, "interruptions"), "problem");
}

}  // namespace ka::cli
