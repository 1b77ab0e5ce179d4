// SPDX-License-Identifier: Apache-2.0
// What the helper writes with, over scissors: each write may be the last one of a helper.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "affinity/helper/cgroup_tree.hpp"
#include "affinity/helper/cpu_power.hpp"
#include "affinity/helper/host_masks.hpp"
#include "affinity/helper/resctrl.hpp"
#include "affinity/helper/scheduling.hpp"
#include "affinity/host/cgroup_names.hpp"
#include "tests/scissors.hpp"

namespace ka::tests {

/// What systemd knows of the quotas of its units. It rounds, and has a period of its own.
class FakeUnitQuotas {
 public:
  /// CPUQuotaPerSecUSec, in microseconds; 0: none. Returns what systemd writes to cpu.max.
  std::string set(const std::string& cgroup, const std::string& text) {
    long long quota = 0, period = 1;
    std::istringstream(text) >> quota >> period;
    per_second[cgroup] = quota * kSecond / period;
    if (quota == 0) return "max " + std::to_string(kPeriod);
    return std::to_string(per_second[cgroup] * kPeriod / kSecond) + ' ' + std::to_string(kPeriod);
  }

  std::map<std::string, long long> per_second;

 private:
  static constexpr long long kSecond = 1'000'000, kPeriod = 100'000;
};

class CutTree final : public helper::CgroupTree {
 public:
  /// `follow`: what the kernel does with each write.
  CutTree(helper::CgroupTree& tree, FakeUnitQuotas& units, Scissors& scissors,
          std::function<void()> follow)
      : tree_(tree), units_(units), scissors_(scissors), follow_(std::move(follow)) {}

  base::Result<void> open() override { return tree_.open(); }
  base::Result<std::string> read(const std::string& cgroup,
                                 const std::string& file) const override {
    return tree_.read(cgroup, file);
  }
  base::Result<void> write(const std::string& cgroup, const std::string& file,
                           const std::string& text) const override {
    return cut([&] { return tree_.write(cgroup, file, text); });
  }
  /// A unit's in two steps (affinity/host/cfs_quota.cpp).
  base::Result<void> write_quota(const std::string& cgroup,
                                 const std::string& text) const override {
    if (!host::is_unit_name(cgroup)) {
      return cut([&] { return tree_.write_quota(cgroup, text); });
    }
    const auto rounded = cut([&] { return tree_.write_quota(cgroup, units_.set(cgroup, text)); });
    return rounded ? cut([&] { return tree_.write_quota(cgroup, text); }) : rounded;
  }
  base::Result<bool> has(const std::string& cgroup) const override { return tree_.has(cgroup); }
  base::Result<void> make(const std::string& cgroup) const override {
    return cut([&] { return tree_.make(cgroup); });
  }
  base::Result<void> remove(const std::string& cgroup) const override {
    return cut([&] { return tree_.remove(cgroup); });
  }
  base::Result<std::string> home(const policy::ThreadKey& thread) const override {
    return tree_.home(thread);
  }

 private:
  base::Result<void> cut(const std::function<base::Result<void>()>& write) const {
    return scissors_.around([&] {
      auto done = write();
      follow_();
      return done;
    });
  }

  helper::CgroupTree& tree_;
  FakeUnitQuotas& units_;
  Scissors& scissors_;
  std::function<void()> follow_;
};

class CutScheduling final : public helper::Scheduling {
 public:
  CutScheduling(const helper::Scheduling& scheduling, Scissors& scissors)
      : scheduling_(scheduling), scissors_(scissors) {}

  base::Result<helper::SchedulingPolicy> get(int tid) const override {
    return scheduling_.get(tid);
  }
  base::Result<void> set(const policy::ThreadKey& thread,
                         const helper::SchedulingPolicy& policy) const override {
    return scissors_.around([&] { return scheduling_.set(thread, policy); });
  }
  bool leaves_some(const policy::CpuSet& cpus) const override {
    return scheduling_.leaves_some(cpus);
  }

 private:
  const helper::Scheduling& scheduling_;
  Scissors& scissors_;
};

class CutPower final : public helper::CpuPower {
 public:
  /// What a driver does with each write.
  using Follow = std::function<void(int cpu, std::string_view file, const std::string& value)>;

  CutPower(const helper::CpuPower& power, Scissors& scissors, Follow follow)
      : power_(power), scissors_(scissors), follow_(std::move(follow)) {}

  base::Result<std::string> read(int cpu, std::string_view file) const override {
    return power_.read(cpu, file);
  }
  base::Result<void> write(int cpu, std::string_view file,
                           const std::string& value) const override {
    return scissors_.around([&] {
      auto done = power_.write(cpu, file, value);
      follow_(cpu, file, value);
      return done;
    });
  }

 private:
  const helper::CpuPower& power_;
  Scissors& scissors_;
  Follow follow_;
};

class CutResctrl final : public helper::Resctrl {
 public:
  CutResctrl(const helper::Resctrl& resctrl, Scissors& scissors)
      : resctrl_(resctrl), scissors_(scissors) {}

  base::Result<std::string> options() const override { return resctrl_.options(); }
  base::Result<std::string> read(const std::string& path) const override {
    return resctrl_.read(path);
  }
  base::Result<void> write(const std::string& path, const std::string& text) const override {
    return scissors_.around([&] { return resctrl_.write(path, text); });
  }
  base::Result<bool> has(const std::string& group) const override { return resctrl_.has(group); }
  base::Result<void> make(const std::string& group) const override {
    return scissors_.around([&] { return resctrl_.make(group); });
  }
  base::Result<void> remove(const std::string& group) const override {
    return scissors_.around([&] { return resctrl_.remove(group); });
  }
  base::Result<helper::RdtHome> home(const policy::ThreadKey& thread) const override {
    return resctrl_.home(thread);
  }

 private:
  const helper::Resctrl& resctrl_;
  Scissors& scissors_;
};

class CutMasks final : public helper::HostMasks {
 public:
  CutMasks(std::shared_ptr<const helper::HostMasks> masks, Scissors& scissors)
      : masks_(std::move(masks)), scissors_(scissors) {}

  std::string_view kind() const override { return masks_->kind(); }
  bool is_of_interrupts() const override { return masks_->is_of_interrupts(); }
  bool moves_elsewhere() const override { return masks_->moves_elsewhere(); }
  std::string_view born_by() const override { return masks_->born_by(); }
  base::Result<std::vector<helper::HostMask>> read() const override { return masks_->read(); }
  base::Result<std::vector<helper::HostMask>> read_again(
      const std::vector<helper::HostMask>& known) const override {
    return masks_->read_again(known);
  }
  base::Result<void> write(const helper::HostMask& mask,
                           const policy::CpuSet& cpus) const override {
    return scissors_.around([&] { return masks_->write(mask, cpus); });
  }

 private:
  std::shared_ptr<const helper::HostMasks> masks_;
  Scissors& scissors_;
};

/// The CPUs that irqbalance may use.
class FakeBalancer final : public helper::HostMasks {
 public:
  std::string_view kind() const override { return "irqbalance"; }
  bool is_of_interrupts() const override { return true; }
  base::Result<std::vector<helper::HostMask>> read() const override {
    return std::vector<helper::HostMask>{{"irqbalance7.sock", "irqbalance", cpus, {}}};
  }
  base::Result<void> write(const helper::HostMask&, const policy::CpuSet& wanted) const override {
    cpus = wanted;
    return {};
  }

  mutable policy::CpuSet cpus = policy::CpuSet::range(0, 7);
};

/// Units of systemd: the file of each, and what it is set to. All CPUs take two steps: written
/// first, and then dropped from the settings (affinity/helper/units.cpp).
class FakeUnits final : public helper::HostMasks {
 public:
  explicit FakeUnits(Scissors& scissors) : scissors_(scissors) {}

  std::string_view kind() const override { return "unit"; }
  base::Result<std::vector<helper::HostMask>> read() const override {
    std::vector<helper::HostMask> found;
    for (const auto& [name, cpus] : files) found.push_back({name, name, cpus, {}});
    return found;
  }
  base::Result<void> write(const helper::HostMask& mask,
                           const policy::CpuSet& cpus) const override {
    files[mask.name] = settings[mask.name] = cpus;
    if (cpus.size() < 8) return {};
    scissors_.snip();
    settings.erase(mask.name);
    return {};
  }

  mutable std::map<std::string, policy::CpuSet> files, settings;

 private:
  Scissors& scissors_;
};

}  // namespace ka::tests
