// SPDX-License-Identifier: Apache-2.0
// Sandboxes that are libvirt domains of this node: which process each is, and libvirt's own record
// of its pins, kept equal to the plan. Threads are placed by the engine as those of any sandbox;
// the record follows, whenever libvirt has time for it.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/log/log.hpp"
#include "policy/ledger/ledger.hpp"
#include "policy/plan/plan.hpp"
#include "vmm/facts/facts.hpp"
#include "vmm/libvirt/client.hpp"

namespace ka::board {
class Board;
}
namespace ka::engine {
class Engine;
struct SandboxView;
}  // namespace ka::engine

namespace ka::daemon {

/// What libvirt is to record for a plan. Domains call their iothreads "iothreadN".
libvirt::Pins to_pins(const policy::plan::SandboxPlan& plan);

/// On which nodes libvirt is to let the memory of a sandbox be: those of its plan, where
/// memory = "migrate" moves it there.
std::optional<libvirt::MemoryOrder> to_memory_order(const engine::SandboxView& view);

/// Must outlive the running of its io_context.
class LibvirtSource {
 public:
  struct Settings {
    std::string uri;
    std::vector<std::string> domains;  ///< sandboxes by configuration, under their names
    bool in_config = false;            ///< also write the domains' configuration
    bool by_annotation = false;        ///< a pod may say which domain it is
  };

  /// `engine`, `board` and `log` must outlive it. `recorded` is called with each sandbox whose
  /// order libvirt has carried out: what holds its memory may be wider by then.
  LibvirtSource(boost::asio::io_context& io, engine::Engine& engine, board::Board& board,
                vmm::Roots roots, Settings settings,
                std::function<void(const std::string&)> recorded, const log::Log& log);

  /// The line has run: what it left is handed on, soon. May be called from within the engine.
  void follow_soon();

 private:
  /// Sandboxes by the domains that they are.
  using Owners = std::map<std::string, std::string>;

  void follow();
  Owners find_owners() const;
  void follow_domains(libvirt::Client& client);
  void greet_sandboxes(const Owners& before);
  void complain_of_wishes();
  std::string complaint_about(const policy::ledger::PodRecord& pod) const;
  std::optional<libvirt::Order> order_for(const std::string& sandbox,
                                          const std::string& domain) const;
  libvirt::MemoryOrder everywhere() const;
  void heard(bool up, const std::string& text);
  void note_all_seen();
  void seen(const libvirt::DomainSeen& domain);
  void started(std::string sandbox, const libvirt::DomainSeen& domain);
  base::Result<policy::ProcessId> find_vmm(const std::string& sandbox,
                                           const std::string& uuid) const;
  void pinned(const std::string& domain, const base::Result<int>& calls);
  const std::string* sandbox_of(const std::string& domain) const;

  boost::asio::io_context& io_;
  engine::Engine& engine_;
  board::Board& board_;
  vmm::Roots roots_;
  Settings settings_;
  std::function<void(const std::string&)> recorded_;
  const log::Log& log_;
  bool following_soon_ = false;
  bool up_ = false;                                       ///< libvirt is heard
  std::map<std::string, libvirt::Order> ordered_;         ///< by domain
  std::set<std::string> followed_;                        ///< domains
  std::map<std::string, libvirt::DomainSeen> last_seen_;  ///< by domain
  Owners owners_;                                         ///< as last followed
  std::map<std::string, std::string> complaints_;         ///< by sandbox, said once
  std::optional<libvirt::Client> client_;
};

}  // namespace ka::daemon
