// SPDX-License-Identifier: Apache-2.0
// All sandboxes in a line each, for a terminal on which they do not fit thread by thread.
#include <fmt/core.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/value.hpp>

#include "affinity/cli/client/daemon.hpp"
#include "affinity/cli/status/describe.hpp"
#include "affinity/messages/terms.hpp"

namespace ka::cli {
namespace {

namespace json = boost::json;

/// Characters of a sandbox's id.
constexpr std::size_t kShortId = 12;
constexpr std::size_t kCpus = 12;
/// Columns of everything but the pod's name, and the least for that.
constexpr std::size_t kOthers = 61, kLeastPod = 18;

constexpr const char* kLegend =
    "CPUS: the CPUs of all its containers. DEDICATED: vCPUs with a CPU of their own; FLOATING: "
    "vCPUs that share CPUs.\n";

/// Its beginning and its end: names of pods differ in either.
std::string shortened(const std::string& text, std::size_t columns) {
  if (text.size() <= columns) return text.empty() ? "-" : text;
  const std::size_t head = (columns - 2) / 2, tail = columns - 2 - head;
  return text.substr(0, head) + ".." + text.substr(text.size() - tail);
}

long long count_vcpus(const json::value& sandbox, const char* role) {
  return std::ranges::count_if(array_of(sandbox, "vcpus"), [role](const json::value& vcpu) {
    return text_of(vcpu, "role") == role;
  });
}

std::string line(const json::value& sandbox, std::size_t pod) {
  return fmt::format(
      "{:<{}}  {:<{}}  {:<{}}  {:>9}  {:>8}  {}\n", text_of(sandbox, "id").substr(0, kShortId),
      kShortId, shortened(text_of(sandbox, "pod_name"), pod), pod,
      shortened(text_of(sandbox, "mask"), kCpus), kCpus, count_vcpus(sandbox, "dedicated"),
      count_vcpus(sandbox, "floating"), state_of(sandbox));
}

}  // namespace

std::string describe_overview(const json::value& list, std::size_t columns, bool legend) {
  const json::array& sandboxes = array_of(list, "sandboxes");
  const std::size_t pod = std::max(columns, kOthers + kLeastPod) - kOthers;
  std::string text = fmt::format("{:<{}}  {:<{}}  {:<{}}  {:>9}  {:>8}  {}\n", "SANDBOX", kShortId,
                                 "POD", pod, "CPUS", kCpus, "DEDICATED", "FLOATING", "STATE");
  for (const json::value& sandbox : sandboxes) text += line(sandbox, pod);
  text += fmt::format("\n{}; `kata-affinityctl status SANDBOX` shows the threads of one.\n",
                      messages::counted(static_cast<long long>(sandboxes.size()), "sandbox"));
  if (legend) text += kLegend;
  return text + describe_rest(list);
}

}  // namespace ka::cli
