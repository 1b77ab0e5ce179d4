// SPDX-License-Identifier: Apache-2.0
// Sandboxes that are libvirt domains of this node: which process each is, and libvirt's own record
// of its pins, kept equal to the plan. Threads are placed by the line as those of any sandbox;
// the record follows, whenever libvirt has time for it.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "base/log/log.hpp"
#include "base/result.hpp"
#include "policy/facts/process_id.hpp"
#include "policy/ledger/ledger.hpp"
#include "policy/plan/domains.hpp"
#include "shim-ext/source/node.hpp"
#include "shim-ext/source/source.hpp"
#include "vmm/facts/facts.hpp"
#include "vmm/libvirt/client.hpp"

namespace ka::libvirt {

class LibvirtSource final : public source::Source {
 public:
  struct Settings {
    std::string uri;
    policy::plan::DomainRules rules;
    bool in_config = false;  ///< also write the domains' configuration
  };

  /// `clock`, `node` and `log` must outlive it. `recorded` is called with each sandbox whose order
  /// libvirt has carried out: what holds its memory may be wider by then.
  LibvirtSource(boost::asio::io_context& io, const base::Clock& clock, source::Node& node,
                vmm::Roots roots, Settings settings,
                std::function<void(const std::string&)> recorded, const log::Log& log);

  /// Connects.
  void start() override;
  /// Memory arrives without a run of the line, and processes without a word of libvirt, which may
  /// have none because it hangs.
  void refresh() override;
  void notify(source::Notice notice) override;

 private:
  void update_soon();
  void update();
  void watch_domains(Client& client);
  void forget_unowned();
  void give_back_forgotten(Client& client);
  void place_orders(Client& client);
  void greet_sandboxes(const policy::plan::DomainOwners& before);
  void log_refusals();
  std::string refusal_text(const policy::plan::DomainPod& pod) const;
  std::optional<Order> order_for(const std::string& sandbox, const std::string& domain) const;
  std::optional<Order> give_back_order(const policy::ledger::PodRecord& pod) const;
  Order give_back(Order order) const;
  bool note(const std::string& sandbox);
  void report_pinned(const std::string& sandbox, bool pinned);
  void connection_changed(bool up, const std::string& text);
  void report_status();
  source::Status current_status() const;
  void retry_unmatched();
  void set_unmatched(const std::string& domain, const std::string& reason);
  void report_all_seen();
  void domain_changed(const DomainSeen& domain);
  void domain_runs(const std::string& sandbox, const DomainSeen& domain);
  base::Result<policy::ProcessId> find_vmm(const std::string& sandbox,
                                           const DomainSeen& domain) const;
  void recorded(const Order& order, const base::Result<int>& calls);
  void note_result(const std::string& domain, const base::Result<int>& calls);
  const std::string* sandbox_of(const std::string& domain) const;

  boost::asio::io_context& io_;
  const base::Clock& clock_;
  source::Node& node_;
  vmm::Roots roots_;
  Settings settings_;
  std::function<void(const std::string&)> recorded_;
  const log::Log& log_;
  bool updating_soon_ = false;
  source::Status connection_;
  std::map<std::string, Order> ordered_;          ///< by domain
  std::set<std::string> watched_;                 ///< domains
  std::map<std::string, DomainSeen> last_seen_;   ///< by domain
  std::map<std::string, std::string> unmatched_;  ///< domains that run and are no VMM here: why not
  policy::plan::DomainOwners owners_;             ///< as of the last update
  std::map<std::string, std::string> refusals_;   ///< by sandbox, logged once
  std::map<std::string, std::string> unrecorded_;  ///< by domain: why libvirt has other pins
  std::optional<Client> client_;
};

}  // namespace ka::libvirt
