// What `doctor` looks at in the sandboxes that run, as the daemon tells of them.
#include <fmt/core.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>

#include "affinity/cli/checkup.hpp"
#include "affinity/cli/daemon.hpp"
#include "affinity/host/cfs_quota.hpp"

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

constexpr const char* kMoreVcpus =
    "a VM needs a vCPU for each CPU that its containers own, and one more: raise default_maxvcpus "
    "of Kata, overhead_vcpus too with runtime-rs, and start the pod anew";
constexpr const char* kOneMoreVcpu =
    "one vCPU more leaves the others to the containers: overhead_vcpus of runtime-rs above 0, "
    "default_vcpus of the Go runtime at least 1";

void examine_vcpus(const json::value& sandbox, Symptoms& symptoms) {
  const json::array& codes = array_of(sandbox, "warning_codes");
  const json::array& texts = array_of(sandbox, "warnings");
  for (std::size_t i = 0; i < std::min(codes.size(), texts.size()); ++i) {
    const bool few = codes[i] == "too-few-vcpus" || codes[i] == "vcpu-shared";
    if ((!few && codes[i] != "no-floating-vcpu") || !texts[i].is_string()) continue;
    symptoms.push_back({"vcpus", few ? Level::kBad : Level::kNote,
                        head_of(sandbox) + std::string(std::string_view(texts[i].get_string())),
                        few ? kMoreVcpus : kOneMoreVcpu});
  }
}

/// Empty: there is nothing to be done.
std::string memory_advice(const json::value& memory) {
  const std::string verdict = text_of(memory, "verdict");
  if (verdict == "move") {
    if (!flag_of(memory, "migrate")) return "memory = \"migrate\" in [affinity] moves it";
    return number_of(memory, "failed") == 0 ? "" : "start the pod anew: these pages stay";
  }
  if (verdict == "device") return "start the pod anew: a passed-through device pins its memory";
  if (verdict == "no-room") return "make room on that node, or start the pod on another";
  if (verdict != "no-node") return {};
  return "let kubelet place CPUs and memory on one node: topologyManagerPolicy, "
         "memoryManagerPolicy: Static";
}

void examine_memory(const json::value& sandbox, Symptoms& symptoms) {
  const auto* memory = sandbox.is_object() ? sandbox.get_object().if_contains("memory") : nullptr;
  if (memory == nullptr || !memory->is_object() || flag_of(*memory, "moving")) return;
  const std::string advice = memory_advice(*memory);
  if (advice.empty()) return;
  symptoms.push_back({"memory", Level::kNote,
                      head_of(sandbox) + "of its memory, " + text_of(*memory, "text"), advice});
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
      "its dedicated vCPUs are under a CFS quota of {:.1f} CPUs ({}), and were stopped in {} of {} "
      "periods",
      static_cast<double>(quota.quota) / static_cast<double>(quota.period),
      quota.directory.native(), quota.throttled, quota.periods);
}

/// The one that bites most.
void examine_quota(const json::value& sandbox, const fs::path& root, Symptoms& symptoms) {
  const int tid = dedicated_thread(sandbox);
  if (tid == 0) return;
  const auto quotas = host::quotas_of(base::ProcFs(root / "proc"), root / "sys/fs/cgroup", tid);
  const auto worst = std::ranges::max_element(quotas, {}, &host::CfsQuota::throttled);
  if (worst == quotas.end()) return;
  symptoms.push_back({"quota", worst->throttled > 0 ? Level::kBad : Level::kNote,
                      head_of(sandbox) + quota_text(*worst),
                      "kubelet 1.33 and later sets no quota on pods with whole CPUs; before, "
                      "cpuCFSQuota: false in kubelet's configuration"});
}

}  // namespace

Symptoms examine_sandboxes(const json::value& list, const fs::path& root) {
  Symptoms symptoms;
  for (const json::value& sandbox : array_of(list, "sandboxes")) {
    examine_vcpus(sandbox, symptoms);
    examine_memory(sandbox, symptoms);
    examine_quota(sandbox, root, symptoms);
  }
  return symptoms;
}

}  // namespace ka::cli
