// SPDX-License-Identifier: Apache-2.0
#include "affinity/daemon/source_table.hpp"

#include <algorithm>
#include <array>
#include <iterator>

#include "shim-ext/dra/dra_source.hpp"
#include "shim-ext/kata/kata_source.hpp"
#include "shim-ext/kubelet/kubelet_source.hpp"
#include "shim-ext/pod_resources/pod_resources_source.hpp"
#include "vmm/threads.hpp"

namespace ka::daemon {
namespace {

using policy::ledger::Source;
using Made = std::unique_ptr<source::Source>;

bool always(const SourceSettings&) { return true; }
bool never(const SourceSettings&) { return false; }

bool has_runtime(const SourceSettings& settings) { return !settings.nri_socket.empty(); }

/// A file that cannot be seen is not absent.
bool is_there(const std::filesystem::path& file) {
  std::error_code failed;
  return !file.empty() && (std::filesystem::exists(file, failed) || failed);
}

kubelet::LastState last_state(const SourceSettings& settings) {
  return {settings.state_dir, settings.boot_id};
}

/// Or had it when a daemon last ran.
bool has_kubelet(const SourceSettings& settings) {
  if (settings.kubelet_state.empty()) return false;
  return is_there(settings.kubelet_state) || is_there(last_state(settings).path());
}

/// Where kubelet's state exists, it reports earlier.
bool needs_pod_resources(const SourceSettings& settings) {
  return is_there(settings.pod_resources) && !is_there(settings.kubelet_state);
}

bool has_claims(const SourceSettings& settings) { return is_there(settings.cdi); }

bool has_libvirt(const SourceSettings& settings) { return !settings.libvirt.uri.empty(); }

base::Result<nri::Process> examine(const vmm::Roots& roots, int pid, nri::Origin origin) {
  const auto word = origin == nri::Origin::kPod ? vmm::Word::kRuntime : vmm::Word::kTenant;
  const auto examined = vmm::examine(roots, pid, word);
  if (!examined) return unexpected(examined.error());
  return nri::Process{examined->is_vmm, examined->id};
}

Made make_nri(const SourceSettings& settings, const SourceContext& with, source::Peers& peers) {
  if (!has_runtime(settings)) return nullptr;
  return std::make_unique<nri::NriSource>(
      settings.nri_socket,
      [roots = with.roots](int pid, nri::Origin origin) { return examine(roots, pid, origin); },
      nri::NriSource::Dependencies{with.io, with.node, peers, with.containers, with.log, with.clock,
                                   with.allocator});
}

Made make_kubelet(const SourceSettings& settings, const SourceContext& with, source::Peers&) {
  if (settings.kubelet_state.empty()) return nullptr;
  return std::make_unique<kubelet::KubeletSource>(with.io, settings.kubelet_state,
                                                  last_state(settings), with.node, with.log);
}

Made make_dra(const SourceSettings& settings, const SourceContext& with, source::Peers&) {
  if (settings.cdi.empty()) return nullptr;
  return std::make_unique<dra::DraSource>(with.io, settings.cdi, with.node, with.log);
}

Made make_pod_resources(const SourceSettings& settings, const SourceContext& with,
                        source::Peers& peers) {
  if (settings.pod_resources.empty()) return nullptr;
  return std::make_unique<pod_resources::PodResourcesSource>(
      with.io, with.clock, settings.pod_resources, with.node, peers, with.log);
}

Made make_kata(const SourceSettings& settings, const SourceContext& with, source::Peers&) {
  using Runtime = kata::KataSource::Runtime;
  return std::make_unique<kata::KataSource>(
      with.io, with.clock, with.node, with.roots, settings.kata,
      has_runtime(settings) ? Runtime::kReports : Runtime::kNone, with.log);
}

Made make_libvirt(const SourceSettings& settings, const SourceContext& with, source::Peers&) {
  if (!has_libvirt(settings)) return nullptr;
  return std::make_unique<libvirt::LibvirtSource>(with.io, with.clock, with.node, with.roots,
                                                  settings.libvirt, with.memory_allowed, with.log);
}

constexpr std::array kRegistrations{
    SourceRegistration{Source::kNri, has_runtime, make_nri},
    SourceRegistration{Source::kKubelet, has_kubelet, make_kubelet},
    SourceRegistration{Source::kDra, has_claims, make_dra},
    SourceRegistration{Source::kPodResources, needs_pod_resources, make_pod_resources},
    SourceRegistration{Source::kPersist, always, make_kata},
    SourceRegistration{Source::kCgroup, never, nullptr},  // Kata's, too
    SourceRegistration{Source::kBundle, never, nullptr},  // and this
    SourceRegistration{Source::kLibvirt, has_libvirt, make_libvirt},
    SourceRegistration{Source::kProxy, never, nullptr},
    SourceRegistration{Source::kApi, never, nullptr},
    SourceRegistration{Source::kState, never, nullptr},    // read before there is any source
    SourceRegistration{Source::kManaged, never, nullptr},  // what we decide through NRI
};

static_assert(kRegistrations.size() == std::size(policy::ledger::kSources) &&
                  std::ranges::all_of(policy::ledger::kSources,
                                      [](const policy::ledger::SourceTraits& traits) {
                                        return std::ranges::count(kRegistrations, traits.source,
                                                                  &SourceRegistration::source) == 1;
                                      }),
              "each source has one row");

}  // namespace

std::span<const SourceRegistration> source_registrations() { return kRegistrations; }

}  // namespace ka::daemon
