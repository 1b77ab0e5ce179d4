// SPDX-License-Identifier: Apache-2.0
// A resctrl that behaves as the kernel's does (fs/resctrl/rdtgroup.c, ctrlmondata.c): what it
// refuses, with which errno and words, what it rounds, and where threads go. schemata is compared
// with the kernel's source (rdtgroup_schemata_write(), cbm_validate(), bw_validate()), the rest is
// not; nothing was compared with hardware.
#pragma once

#include <bit>
#include <cerrno>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "affinity/helper/resctrl.hpp"

namespace ka::tests {

/// An 11-way L3 in two domains, and memory bandwidth in steps of 10 %, at least 10 %.
struct ResctrlMachine {
  bool mounted = true;
  std::string options = "rw";
  std::size_t groups = 4;  ///< num_closids, with the root
  std::uint32_t ways = 0x7ff;
  int min_bits = 1;
  bool sparse = false;
  bool bandwidth = true;
  bool linear = true;
  std::vector<int> domains = {0, 1};
};

class FakeResctrl final : public helper::Resctrl {
 public:
  explicit FakeResctrl(ResctrlMachine given = {}) : machine(std::move(given)) {
    groups_[""] = full();
  }

  base::Result<std::string> options() const override {
    if (machine.mounted) return machine.options;
    return base::fail(base::ErrorCode::kUnavailable, "resctrl is not mounted at /sys/fs/resctrl");
  }

  base::Result<std::string> read(const std::string& path) const override {
    if (path == "info/last_cmd_status") return status_;
    if (path.starts_with("info/")) return read_info(path.substr(5));
    const auto group = groups_.find(group_of(path, "schemata"));
    if (group == groups_.end()) return base::fail_errno(ENOENT, path);
    return text_of(group->second);
  }

  base::Result<void> write(const std::string& path, const std::string& text) const override {
    ++writes;
    status_ = "ok\n";
    if (refuses.contains(path)) return base::fail_errno(refuses.at(path), path);
    if (path.ends_with("tasks")) return move(path, text);
    return set(path, text);
  }

  base::Result<bool> has(const std::string& group) const override {
    return groups_.contains(group);
  }

  base::Result<void> make(const std::string& group) const override {
    ++writes;
    if (groups_.contains(group)) return base::fail_errno(EEXIST, group);
    if (groups_.size() == machine.groups) return refuse(ENOSPC, "Out of CLOSIDs", group);
    groups_[group] = full();
    status_ = "ok\n";
    return {};
  }

  base::Result<void> remove(const std::string& group) const override {
    ++writes;
    if (groups_.erase(group) == 0) return base::fail_errno(ENOENT, group);
    for (auto& [tid, home] : homes_) {
      if (home.group == group) home = {};
    }
    return {};
  }

  base::Result<helper::RdtHome> home(const policy::ThreadKey& thread) const override {
    const auto found = homes_.find(thread.tid);
    if (found == homes_.end()) return base::fail_errno(ENOENT, "cpu_resctrl_groups");
    return found->second;
  }

  /// Mounted anew, on another machine.
  void become(ResctrlMachine other) {
    machine = std::move(other);
    groups_ = {{"", full()}};
  }

  // What others do.

  void start(int tid) const { homes_[tid] = {}; }
  void end(int tid) const { homes_.erase(tid); }
  /// Another program puts a thread where it likes.
  void put(int tid, const helper::RdtHome& home) const { homes_[tid] = home; }
  void unmount() {
    machine.mounted = false;
    groups_ = {{"", full()}};
    for (auto& [tid, home] : homes_) home = {};
  }

  /// "kata-affinity.gold", "/" for the root, "gone".
  std::string where(int tid) const {
    const auto found = homes_.find(tid);
    if (found == homes_.end()) return "gone";
    const auto& [group, monitor] = found->second;
    return (group.empty() ? "/" : group) + (monitor.empty() ? "" : ":" + monitor);
  }
  /// All but the root.
  std::set<std::string> groups() const {
    std::set<std::string> names;
    for (const auto& [name, values] : groups_) names.insert(name);
    names.erase("");
    return names;
  }
  std::string schemata(const std::string& group) const { return text_of(groups_.at(group)); }

  ResctrlMachine machine;
  mutable int writes = 0;
  /// Errnos by path.
  std::map<std::string, int> refuses;
  /// Called before a thread is moved.
  std::function<void(int tid)> before_move;

 private:
  struct Values {
    std::map<int, std::uint32_t> cache, bandwidth;
  };

  Values full() const {
    Values values;
    for (const int domain : machine.domains) {
      if (machine.ways != 0) values.cache[domain] = machine.ways;
      if (machine.bandwidth) values.bandwidth[domain] = 100;
    }
    return values;
  }

  /// As show_doms() pads them.
  std::string text_of(const Values& values) const {
    std::ostringstream text;
    char separator = ':';
    for (const auto& [domain, value] : values.bandwidth) {
      text << (separator == ':' ? "    MB" : "") << separator << domain << '='
           << (value < 100 ? " " : "") << value;
      separator = ';';
    }
    if (!values.bandwidth.empty()) text << '\n';
    separator = ':';
    for (const auto& [domain, value] : values.cache) {
      text << (separator == ':' ? "    L3" : "") << separator << domain << '=' << std::hex << value
           << std::dec;
      separator = ';';
    }
    if (!values.cache.empty()) text << '\n';
    return text.str();
  }

  base::Result<std::string> read_info(const std::string& path) const {
    std::map<std::string, std::string> files;
    std::ostringstream ways;
    ways << std::hex << machine.ways << '\n';
    if (machine.ways != 0) {
      files = {{"L3/cbm_mask", ways.str()},
               {"L3/min_cbm_bits", std::to_string(machine.min_bits) + '\n'},
               {"L3/sparse_masks", machine.sparse ? "1\n" : "0\n"},
               {"L3/num_closids", std::to_string(machine.groups) + '\n'}};
    }
    if (machine.bandwidth) {
      files["MB/min_bandwidth"] = "10\n";
      files["MB/bandwidth_gran"] = "10\n";
      files["MB/delay_linear"] = machine.linear ? "1\n" : "0\n";
      files["MB/num_closids"] = "8\n";
    }
    const auto found = files.find(path);
    if (found == files.end()) return base::fail_errno(ENOENT, path);
    return found->second;
  }

  base::Result<void> refuse(int number, const std::string& why, const std::string& what) const {
    status_ = why + '\n';
    return base::fail_errno(number, what);
  }

  /// "GROUP/FILE" or "FILE".
  static std::string group_of(const std::string& path, const std::string& file) {
    return path == file ? "" : path.substr(0, path.size() - std::min(path.size(), file.size() + 1));
  }

  base::Result<void> move(const std::string& path, const std::string& text) const {
    helper::RdtHome to{group_of(path, "tasks"), {}};
    const std::size_t monitor = to.group.find("mon_groups/");
    if (monitor != std::string::npos) {
      to.monitor = to.group.substr(monitor + 11);
      to.group = monitor == 0 ? "" : to.group.substr(0, monitor - 1);
    }
    if (!groups_.contains(to.group)) return base::fail_errno(ENOENT, path);
    const int tid = std::stoi(text);
    if (before_move) before_move(tid);
    const auto found = homes_.find(tid);
    if (found == homes_.end()) return refuse(ESRCH, "No task " + std::to_string(tid), path);
    if (!to.monitor.empty() && found->second.group != to.group) {
      return refuse(EINVAL, "Can't move task to different control group", path);
    }
    found->second = to;
    return {};
  }

  /// All lines or none: rdtgroup_schemata_write() stages them first.
  base::Result<void> set(const std::string& path, const std::string& text) const {
    const auto group = groups_.find(group_of(path, "schemata"));
    if (group == groups_.end()) return base::fail_errno(ENOENT, path);
    if (!text.ends_with('\n')) return base::fail_errno(EINVAL, path);
    Values values = group->second;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      const std::size_t colon = line.find(':');
      if (colon == std::string::npos) return refuse(EINVAL, "Missing ':'", path);
      const std::string resource = line.substr(0, colon);
      auto& into = resource == "L3" ? values.cache : values.bandwidth;
      if ((resource != "L3" && resource != "MB") || into.empty()) {
        return refuse(EINVAL, "Unknown or unsupported resource name '" + resource + "'", path);
      }
      if (const auto why = set_line(line.substr(colon + 1), resource == "L3", into); !why.empty()) {
        return refuse(EINVAL, why, path);
      }
    }
    group->second = std::move(values);
    return {};
  }

  std::string set_line(const std::string& line, bool is_cache,
                       std::map<int, std::uint32_t>& into) const {
    std::istringstream parts(line);
    std::set<int> seen;
    for (std::string part; std::getline(parts, part, ';');) {
      const std::size_t equals = part.find('=');
      if (equals == std::string::npos) return "Missing '=' or non-numeric domain";
      const int domain = std::stoi(part.substr(0, equals));
      if (!into.contains(domain)) return "ok";  // it is refused without a word
      if (!seen.insert(domain).second) return "Duplicate domain " + std::to_string(domain);
      const auto value = static_cast<std::uint32_t>(
          std::stoul(part.substr(equals + 1), nullptr, is_cache ? 16 : 10));
      const std::string why = is_cache ? wrong_mask(value) : wrong_bandwidth(value);
      if (!why.empty()) return why;
      into[domain] = is_cache ? value : (value + 9) / 10 * 10;
    }
    return {};
  }

  /// cbm_validate()
  std::string wrong_mask(std::uint32_t mask) const {
    if (mask == 0 || mask > machine.ways) return "Mask out of range";
    const std::uint32_t low = mask >> std::countr_zero(mask);
    if (!machine.sparse && (low & (low + 1)) != 0) return "The mask has non-consecutive 1-bits";
    if (std::countr_one(low) < machine.min_bits) {
      return "Need at least " + std::to_string(machine.min_bits) + " bits in the mask";
    }
    return {};
  }

  /// bw_validate()
  static std::string wrong_bandwidth(std::uint32_t value) {
    if (value >= 10 && value <= 100) return {};
    return "MB value " + std::to_string(value) + " out of range [10,100]";
  }

  mutable std::map<std::string, Values> groups_;
  mutable std::map<int, helper::RdtHome> homes_;
  mutable std::string status_ = "ok\n";
};

}  // namespace ka::tests
