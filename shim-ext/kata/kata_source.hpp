// SPDX-License-Identifier: Apache-2.0
// Kata's sandboxes as seen without a container runtime: by the directories that Kata
// keeps, by the cgroup that it writes, and by the bundles of containerd.
#pragma once

#include <boost/asio/io_context.hpp>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "base/log/log.hpp"
#include "shim-ext/kata/bundle_watch.hpp"
#include "shim-ext/kata/kata_watch.hpp"
#include "shim-ext/kata/start_probes.hpp"
#include "shim-ext/source/node.hpp"
#include "shim-ext/source/source.hpp"
#include "vmm/facts/facts.hpp"
#include "vmm/threads.hpp"

namespace ka::kata {

/// Reports of containers are left to the container runtime while that is connected: it reports
/// earlier, and knows more. Newborn shims are narrowed always.
class KataSource final : public source::Source {
 public:
  /// Whether the node has a container runtime that reports its containers. Where it has none, what
  /// one reported once counts until a sandbox's mask shows that it is not so any more.
  enum class Runtime { kNone, kReports };

  /// What is passed by reference must outlive it.
  KataSource(boost::asio::io_context& io, const base::Clock& clock, source::Node& node,
             vmm::Roots roots, const KataWatch::Folders& folders, Runtime runtime,
             const log::Log& log);

  void start() override { refresh(); }
  void refresh() override;
  void notify(source::Notice notice) override;

 private:
  std::set<std::filesystem::path> observe_bundles(const std::vector<BundleWatch::Found>& found);
  bool needs_no_shim(const BundleWatch::Found& found) const;
  void narrow_starting(const std::vector<BundleWatch::Found>& found);
  bool is_handled(const BundleWatch::Found& found) const;
  void narrow_shim(const policy::ledger::Event& event);
  void report_starting(const std::vector<policy::ledger::Event>& events);
  bool probe_starting(const std::string& sandbox);
  void report(const std::vector<policy::ledger::Event>& events);
  void set_paused(bool paused);
  void forget_ended();
  void update_synced();
  void observe_masks();
  bool may_observe(const policy::ledger::PodRecord& pod) const;
  void observe_mask(const source::SandboxState& sandbox, std::vector<policy::ledger::Event>& news);
  void drop_masks();
  void show_extent();
  void show(policy::ledger::Source source, const KataWatch::Extent& extent, const char* reported);
  void show_proxies();

  const base::Clock& clock_;
  source::Node& node_;
  vmm::Roots roots_;
  Runtime runtime_;
  bool paused_ = false;  ///< the container runtime is connected
  bool shows_proxies_ = false;
  std::set<std::string> masks_;  ///< sandboxes whose mask was reported
  KataWatch watch_;
  BundleWatch bundles_;
  StartProbes probes_;
};

}  // namespace ka::kata
