// Sandboxes that are libvirt domains of this node: which process each is, and libvirt's own record
// of its pins, kept equal to the plan. Threads are placed by the engine as those of any sandbox;
// the record follows, whenever libvirt has time for it.
#pragma once

#include <boost/asio/io_context.hpp>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "affinity/log/log.hpp"
#include "policy/plan/plan.hpp"
#include "vmm/facts/facts.hpp"
#include "vmm/libvirt/client.hpp"

namespace ka::engine {
class Engine;
}

namespace ka::daemon {

/// What libvirt is to record for a plan. Domains call their iothreads "iothreadN".
libvirt::Pins to_pins(const policy::SandboxPlan& plan);

/// Must outlive the running of its io_context.
class LibvirtSource {
 public:
  struct Settings {
    std::string uri;
    std::vector<std::string> domains;  ///< sandboxes by configuration, under their names
    bool in_config = false;            ///< also write the domains' configuration
  };

  /// `engine` and `log` must outlive it.
  LibvirtSource(boost::asio::io_context& io, engine::Engine& engine, vmm::Roots roots,
                Settings settings, const log::Log& log);

  /// The line has run: what it left is handed on, soon. May be called from within the engine.
  void follow_soon();

 private:
  void follow();
  void follow_domains();
  void greet_sandboxes();
  std::optional<libvirt::Order> order_for(const std::string& sandbox) const;
  void heard(bool up, const std::string& text);
  void seen(const libvirt::DomainSeen& domain);
  void started(const std::string& sandbox, const libvirt::DomainSeen& domain);
  void pinned(const std::string& domain, const base::Result<int>& calls);
  std::vector<std::string> sandboxes_of(const std::string& domain) const;
  bool is_configured(const std::string& domain) const;

  boost::asio::io_context& io_;
  engine::Engine& engine_;
  vmm::Roots roots_;
  Settings settings_;
  const log::Log& log_;
  bool following_soon_ = false;
  std::map<std::string, libvirt::Order> ordered_;         ///< by domain
  std::set<std::string> followed_;                        ///< domains
  std::map<std::string, libvirt::DomainSeen> last_seen_;  ///< by domain
  std::map<std::string, std::string> greeted_;  ///< sandboxes and their domains, as last followed
  std::optional<libvirt::Client> client_;
};

}  // namespace ka::daemon
