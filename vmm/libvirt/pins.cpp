// SPDX-License-Identifier: Apache-2.0
#include "vmm/libvirt/pins.hpp"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <vector>

namespace ka::libvirt {
namespace {

using base::ErrorCode;
using base::Result;
using policy::CpuSet;
using Sets = std::map<int, CpuSet>;
using Bytes = std::vector<unsigned char>;

/// libvirt's maps: CPU n is bit n % 8 of byte n / 8.
Bytes to_bytes(const CpuSet& cpus, int host_cpus) {
  Bytes bytes(static_cast<std::size_t>(VIR_CPU_MAPLEN(host_cpus)));
  for (const int cpu : cpus) {
    if (cpu >= host_cpus) break;
    bytes[static_cast<std::size_t>(cpu) / 8] |= static_cast<unsigned char>(1 << (cpu % 8));
  }
  return bytes;
}

CpuSet to_set(const unsigned char* bytes, int length, int host_cpus) {
  CpuSet cpus;
  for (int cpu = 0; cpu < std::min(length * 8, host_cpus); ++cpu) {
    if ((bytes[cpu / 8] >> (cpu % 8) & 1) != 0) cpus.add(cpu);
  }
  return cpus;
}

/// A driver without them has nothing to read or change.
template <typename T>
Result<T> unless_unsupported(base::Error error) {
  if (error.code == ErrorCode::kUnavailable) return T{};
  return unexpected(std::move(error));
}

using Pin = std::function<int(int number, Bytes& map)>;

}  // namespace

Result<Sets> Record::read_vcpus(unsigned flags) const {
  const int count = library_.domain_get_vcpus_flags(domain_, flags | VIR_DOMAIN_VCPU_MAXIMUM);
  if (count < 0) return unless_unsupported<Sets>(library_.error("virDomainGetVcpusFlags"));
  const int length = VIR_CPU_MAPLEN(host_cpus_);
  Bytes maps(static_cast<std::size_t>(count * length));
  const int got = library_.domain_get_vcpu_pin_info(domain_, count, maps.data(), length, flags);
  if (got < 0) return unless_unsupported<Sets>(library_.error("virDomainGetVcpuPinInfo"));
  Sets sets;
  for (int i = 0; i < got; ++i)
    sets[i] = to_set(maps.data() + std::ptrdiff_t{i} * length, length, host_cpus_);
  if (flags != VIR_DOMAIN_AFFECT_LIVE) return sets;

  std::vector<virVcpuInfo> infos(static_cast<std::size_t>(count));
  const int there = library_.domain_get_vcpus(domain_, infos.data(), count, nullptr, 0);
  if (there < 0) return unless_unsupported<Sets>(library_.error("virDomainGetVcpus"));
  infos.resize(static_cast<std::size_t>(there));
  std::erase_if(sets, [&](const auto& entry) {
    return std::ranges::none_of(infos, [&](const virVcpuInfo& info) {
      return info.number == static_cast<unsigned>(entry.first) && info.state != VIR_VCPU_OFFLINE;
    });
  });
  return sets;
}

Result<CpuSet> Record::read_emulator(unsigned flags) const {
  Bytes map = to_bytes({}, host_cpus_);
  const int length = VIR_CPU_MAPLEN(host_cpus_);
  const int got = library_.domain_get_emulator_pin_info(domain_, map.data(), length, flags);
  if (got < 0) return unless_unsupported<CpuSet>(library_.error("virDomainGetEmulatorPinInfo"));
  return to_set(map.data(), length, host_cpus_);
}

Result<Sets> Record::read_iothreads(unsigned flags) const {
  virDomainIOThreadInfoPtr* infos = nullptr;
  const int count = library_.domain_get_iothread_info(domain_, &infos, flags);
  if (count < 0) return unless_unsupported<Sets>(library_.error("virDomainGetIOThreadInfo"));
  Sets sets;
  for (int i = 0; i < count; ++i) {
    sets[static_cast<int>(infos[i]->iothread_id)] =
        to_set(infos[i]->cpumap, infos[i]->cpumaplen, host_cpus_);
    library_.domain_iothread_info_free(infos[i]);
  }
  ::free(static_cast<void*>(infos));
  return sets;
}

Result<Pins> Record::read(Scope scope) const {
  const unsigned flags = flags_of(scope);
  auto vcpus = read_vcpus(flags);
  if (!vcpus) return unexpected(std::move(vcpus.error()));
  auto emulator = read_emulator(flags);
  if (!emulator) return unexpected(std::move(emulator.error()));
  auto iothreads = read_iothreads(flags);
  if (!iothreads) return unexpected(std::move(iothreads.error()));
  return Pins{std::move(*vcpus), std::move(*emulator), std::move(*iothreads)};
}

namespace {

/// What libvirt is called with.
struct Calls {
  const Library& library;
  int host_cpus = 0;
  const std::function<bool()>& is_outdated;
};

/// Calls `pin` for each number that is there and has another set than wanted.
Result<int> change(const Calls& calls, const Sets& wanted, const Sets& recorded, const char* name,
                   const Pin& pin) {
  int made = 0;
  for (const auto& [number, cpus] : wanted) {
    const auto known = recorded.find(number);
    if (known == recorded.end() || known->second == cpus || cpus.empty()) continue;
    if (calls.is_outdated()) break;
    Bytes map = to_bytes(cpus, calls.host_cpus);
    if (pin(number, map) < 0) {
      return unexpected(calls.library.error(std::string(name) + ' ' + std::to_string(number)));
    }
    ++made;
  }
  return made;
}

}  // namespace

/// libvirt's test driver has the call with flags only without any.
int Record::pin_vcpu(int number, std::vector<unsigned char>& map, Scope scope) const {
  const auto vcpu = static_cast<unsigned>(number);
  const int length = static_cast<int>(map.size());
  if (scope == Scope::kLive) return library_.domain_pin_vcpu(domain_, vcpu, map.data(), length);
  return library_.domain_pin_vcpu_flags(domain_, vcpu, map.data(), length, flags_of(scope));
}

Result<int> Record::write(const Pins& wanted, Scope scope,
                          const std::function<bool()>& is_outdated) const {
  const unsigned flags = flags_of(scope);
  const Calls calls{library_, host_cpus_, is_outdated};
  const auto recorded = read(scope);
  if (!recorded) return unexpected(recorded.error());
  auto vcpus = change(calls, wanted.vcpus, recorded->vcpus, "virDomainPinVcpu",
                      [&](int number, Bytes& map) { return pin_vcpu(number, map, scope); });
  if (!vcpus) return vcpus;
  auto iothreads =
      change(calls, wanted.iothreads, recorded->iothreads, "virDomainPinIOThread",
             [&](int number, Bytes& map) {
               return library_.domain_pin_iothread(domain_, static_cast<unsigned>(number),
                                                   map.data(), static_cast<int>(map.size()), flags);
             });
  if (!iothreads) return iothreads;
  // An empty record is that of a driver which has no emulator threads.
  const Sets there = recorded->emulator.empty() ? Sets{} : Sets{{0, recorded->emulator}};
  auto emulator =
      change(calls, {{0, wanted.emulator}}, there, "virDomainPinEmulator", [&](int, Bytes& map) {
        return library_.domain_pin_emulator(domain_, map.data(), static_cast<int>(map.size()),
                                            flags);
      });
  if (!emulator) return emulator;
  return *vcpus + *iothreads + *emulator;
}

Result<Pins> Record::unpinned() const {
  auto pins = read(Scope::kLive);
  if (!pins) return pins;
  const CpuSet all = CpuSet::range(0, host_cpus_ - 1);
  for (auto& [number, cpus] : pins->vcpus) cpus = all;
  for (auto& [number, cpus] : pins->iothreads) cpus = all;
  pins->emulator = all;
  return pins;
}

}  // namespace ka::libvirt
