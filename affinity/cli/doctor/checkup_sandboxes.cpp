// SPDX-License-Identifier: Apache-2.0
// Checks of `doctor`: the running sandboxes, as the daemon reports them.
#include <fmt/core.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <string>
#include <utility>
#include <vector>

#include "affinity/cli/client/daemon.hpp"
#include "affinity/cli/doctor/checkup.hpp"
#include "affinity/cli/doctor/sizing.hpp"
#include "affinity/host/cfs_quota.hpp"
#include "base/files.hpp"
#include "base/json/lookup.hpp"
#include "base/process.hpp"

namespace ka::cli {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;
using Level = Symptom::Level;
using Symptoms = std::vector<Symptom>;

/// "sandbox 4f21 (shop/cart): "
std::string head_of(const json::value& sandbox) {
  const std::string pod = text_of(sandbox, "pod_name");
  return "sandbox " + text_of(sandbox, "id") + (pod.empty() ? "" : " (" + pod + ")") + ": ";
}

int count_vcpus(const json::value& sandbox) {
  return static_cast<int>(array_of(sandbox, "vcpus").size());
}

constexpr const char* kMoreVcpus =
    "a VM needs a vCPU for each CPU that its containers own, and one more: raise Kata's "
    "default_maxvcpus (and overhead_vcpus with runtime-rs), and recreate the pod";
constexpr const char* kOneMoreVcpu =
    "add one vCPU for the guest's own work: overhead_vcpus above 0 with runtime-rs, default_vcpus "
    "of at least 1 with the Go runtime";

void examine_vcpus(const json::value& sandbox, const fs::path& root, Symptoms& symptoms) {
  const json::array& codes = array_of(sandbox, "warning_codes");
  const json::array& texts = array_of(sandbox, "warnings");
  for (std::size_t i = 0; i < std::min(codes.size(), texts.size()); ++i) {
    const bool few = codes[i] == "too-few-vcpus" || codes[i] == "vcpu-shared";
    if ((!few && codes[i] != "no-floating-vcpu") || !texts[i].is_string()) continue;
    symptoms.push_back({"vcpus", few ? Level::kBad : Level::kNote,
                        head_of(sandbox) + std::string(std::string_view(texts[i].get_string())) +
                            (few ? causes_of_few_vcpus(count_vcpus(sandbox), root) : ""),
                        few ? kMoreVcpus : kOneMoreVcpu});
  }
}

/// Empty: there is nothing to be done.
std::string memory_advice(const json::value& memory) {
  const std::string verdict = text_of(memory, "verdict");
  if (verdict == "move") {
    if (!flag_of(memory, "migrate")) return "set memory = \"migrate\" in [affinity] to move it";
    return number_of(memory, "failed") == 0 ? "" : "recreate the pod: these pages cannot be moved";
  }
  if (verdict == "device") return "recreate the pod: a passed-through device pins its memory";
  if (verdict == "no-room") return "free memory on that NUMA node, or run the pod on another";
  if (verdict != "no-node") return {};
  return "let kubelet place CPUs and memory on one node: topologyManagerPolicy, "
         "memoryManagerPolicy: Static";
}

void examine_memory(const json::value& sandbox, Symptoms& symptoms) {
  const json::value& memory = base::member(sandbox, "memory");
  if (!memory.is_object() || flag_of(memory, "moving")) return;
  const std::string advice = memory_advice(memory);
  if (advice.empty()) return;
  symptoms.push_back(
      {"memory", Level::kNote, head_of(sandbox) + "memory: " + text_of(memory, "text"), advice});
}

/// A thread that has a CPU of its own; 0: there is none.
int dedicated_thread(const json::value& sandbox) {
  for (const json::value& vcpu : array_of(sandbox, "vcpus")) {
    if (text_of(vcpu, "role") != "dedicated") continue;
    for (const json::value& thread : array_of(sandbox, "threads")) {
      if (text_of(thread, "role") != "vcpu") continue;
      if (number_of(thread, "vcpu") != number_of(vcpu, "index")) continue;
      return static_cast<int>(number_of(thread, "tid"));
    }
  }
  return 0;
}

std::string quota_text(const host::CfsQuota& quota) {
  return fmt::format(
      "its dedicated vCPUs have a CFS quota of {:.1f} CPUs ({}) and were throttled in {} of {} "
      "periods",
      static_cast<double>(quota.quota) / static_cast<double>(quota.period),
      quota.directory.native(), quota.throttled, quota.periods);
}

/// The most restrictive one.
void examine_quota(const json::value& sandbox, const fs::path& root, Symptoms& symptoms) {
  const int tid = dedicated_thread(sandbox);
  if (tid == 0) return;
  const auto quotas = host::quotas_of(base::ProcFs(root / "proc"), root / "sys/fs/cgroup", tid);
  const auto worst = std::ranges::max_element(quotas, {}, &host::CfsQuota::throttled);
  if (worst == quotas.end()) return;
  symptoms.push_back({"quota", worst->throttled > 0 ? Level::kBad : Level::kNote,
                      head_of(sandbox) + quota_text(*worst),
                      "upgrade kubelet to 1.33 or later, which sets no quota on pods with whole "
                      "CPUs, or set cpuCFSQuota: false in kubelet's configuration"});
}

constexpr const char* kAddAgent =
    "add kata-affinity's agent to the guest image (kata-affinityctl guest-image)";

/// An agent that responds, and leaves containers where they are.
void examine_doubts(const json::value& sandbox, Symptoms& symptoms) {
  for (const json::value& container : array_of(sandbox, "containers")) {
    const std::string doubt = text_of(container, "guest_doubt");
    const bool is_refused = doubt == "refused";
    if (!is_refused && doubt != "numbers-uncertain") continue;
    symptoms.push_back(
        {"guest", Level::kNote,
         head_of(sandbox) + "container " + text_of(container, "id") + " may run on every vCPU: " +
             (is_refused ? "the guest's policy or kernel refuses its CPUs"
                         : "kata-agent needs guest CPU numbers, and these are not "
                           "certain"),
         is_refused ? kAddAgent : std::string(kAddAgent) + ", or use Linux 6.10 or later in it"});
  }
}

/// Without an agent the guest's kernel lets each container run on every vCPU.
void examine_guest(const json::value& sandbox, Symptoms& symptoms) {
  if (dedicated_thread(sandbox) == 0 || !sandbox.get_object().contains("guest")) return;
  const json::value& guest = sandbox.get_object().at("guest");
  if (flag_of(guest, "connected")) return examine_doubts(sandbox, symptoms);
  const std::string why = text_of(guest, "text");
  symptoms.push_back(
      {"guest", Level::kNote,
       head_of(sandbox) + "no agent in the guest confines containers to their vCPUs" +
           (why.empty() ? "" : " (" + why + ")") + ": they may run on every vCPU",
       std::string(kAddAgent) + ", or set guest = \"auto\" in [affinity] to use kata-agent"});
}

/// What is not notified is seen at the drift check.
void examine_source(const json::value& source, Symptoms& symptoms) {
  const std::string late = text_of(source, "late");
  if (late.empty()) return;
  const std::string command = text_of(source, "remedy");
  symptoms.push_back(
      {"sources", Level::kBad,
       "source " + text_of(source, "source") +
           " is read only at each drift check, so that changes are seen late: " + late,
       command.empty() ? "remove what keeps kata-affinityd from watching it"
                       : "raise the limit, also in /etc/sysctl.d",
       command});
}

}  // namespace

Symptoms examine_sandboxes(const json::value& list, const fs::path& root) {
  Symptoms symptoms;
  for (const json::value& source : array_of(list, "sources")) examine_source(source, symptoms);
  for (const json::value& sandbox : array_of(list, "sandboxes")) {
    examine_vcpus(sandbox, root, symptoms);
    examine_memory(sandbox, symptoms);
    examine_quota(sandbox, root, symptoms);
    examine_guest(sandbox, symptoms);
    const int vmm = static_cast<int>(number_of(sandbox, "vmm_pid"));
    examine_memory_limit(root, vmm, head_of(sandbox), symptoms);
  }
  return symptoms;
}

}  // namespace ka::cli
