// SPDX-License-Identifier: Apache-2.0
#include "shim-ext/libvirt/libvirt_source.hpp"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <utility>
#include <vector>

#include "vmm/threads.hpp"

namespace ka::libvirt {

namespace ledger = policy::ledger;

namespace {

using policy::plan::DomainOwners;
using policy::plan::DomainPod;
using policy::plan::DomainRefusal;

DomainPod to_domain_pod(const ledger::PodRecord& pod) {
  return {.id = pod.id,
          .domain = pod.domain,
          .requested = pod.requested_domain,
          .has_vm = pod.vmm.has_value()};
}

std::vector<DomainPod> domain_pods(const ledger::Ledger& ledger) {
  std::vector<DomainPod> pods;
  for (const auto& [id, pod] : ledger.pods()) pods.push_back(to_domain_pod(pod));
  return pods;
}

}  // namespace

LibvirtSource::LibvirtSource(boost::asio::io_context& io, const base::Clock& clock,
                             source::Node& node, vmm::Roots roots, Settings settings,
                             std::function<void(const std::string&)> recorded, const log::Log& log)
    : io_(io),
      clock_(clock),
      node_(node),
      roots_(std::move(roots)),
      settings_(std::move(settings)),
      recorded_(std::move(recorded)),
      log_(log) {}

void LibvirtSource::start() {
  ClientHandlers handlers;
  handlers.connection = [this](bool up, const std::string& text) {
    boost::asio::post(io_, [this, up, text] { connection_changed(up, text); });
  };
  handlers.domain = [this](const DomainSeen& domain) {
    boost::asio::post(io_, [this, domain] { domain_changed(domain); });
  };
  handlers.pinned = [this](const Order& order, const base::Result<int>& calls) {
    boost::asio::post(io_, [this, order, calls] { recorded(order, calls); });
  };
  connection_changed(false, settings_.uri + ": not connected yet");
  auto client = Client::start(clock_, {.uri = settings_.uri}, std::move(handlers));
  if (!client) return connection_changed(false, client.error().message);
  client_.emplace(std::move(*client));
  update();
}

void LibvirtSource::refresh() {
  report_status();
  retry_unmatched();
  update_soon();
}

void LibvirtSource::notify(source::Notice notice) {
  if (notice == source::Notice::kLineRan) update_soon();
}

void LibvirtSource::update_soon() {
  if (std::exchange(updating_soon_, true)) return;
  boost::asio::post(io_, [this] {
    updating_soon_ = false;
    update();
  });
}

/// Orders the planned pins of domains where they changed.
void LibvirtSource::update() {
  if (!client_) return;
  const DomainOwners before =
      std::exchange(owners_, find_domain_owners(domain_pods(node_.ledger()), settings_.rules));
  watch_domains(*client_);
  forget_unowned();
  greet_sandboxes(before);
  log_refusals();
  if (node_.may_widen()) place_orders(*client_);
}

void LibvirtSource::forget_unowned() {
  const auto has_no_owner = [this](const auto& one) { return !owners_.contains(one.first); };
  const auto forgotten =
      std::erase_if(unmatched_, has_no_owner) + std::erase_if(unrecorded_, has_no_owner);
  if (forgotten > 0) report_status();
}

void LibvirtSource::watch_domains(Client& client) {
  give_back_forgotten(client);
  std::set<std::string> domains;
  for (const auto& [domain, id] : owners_) domains.insert(domain);
  for (const auto& [domain, order] : ordered_) domains.insert(domain);
  if (domains == watched_) return;
  watched_ = std::move(domains);
  client.watch_only(watched_);
}

/// A sandbox that was forgotten while its domain runs: its pins are reset, without a check.
void LibvirtSource::give_back_forgotten(Client& client) {
  for (auto& [domain, order] : ordered_) {
    const std::string* sandbox = sandbox_of(domain);
    const bool is_known = sandbox != nullptr && node_.ledger().find(*sandbox) != nullptr;
    if (is_known || order.give_back) continue;
    order = give_back(std::move(order));
    client.order(order);
  }
}

void LibvirtSource::place_orders(Client& client) {
  std::vector<std::pair<std::string, Order>> changed;
  for (const auto& [domain, id] : owners_) {
    auto order = order_for(id, domain);
    const auto last = ordered_.find(domain);
    if (!order || (last != ordered_.end() && last->second == *order)) continue;
    changed.emplace_back(id, std::move(*order));
  }
  for (auto& [id, order] : changed) {
    if (!order.give_back && !note(id)) continue;
    ordered_.insert_or_assign(order.domain, order);
    client.order(std::move(order));
  }
}

/// That libvirt's record has pins of ours is saved before libvirt is told, so that a daemon after
/// kill -9 can give them back. False: there is no such sandbox any more.
bool LibvirtSource::note(const std::string& sandbox) {
  const auto is_noted = [&] {
    const ledger::PodRecord* pod = node_.ledger().find(sandbox);
    return pod != nullptr && pod->domain_pinned;
  };
  if (!is_noted()) report_pinned(sandbox, true);
  return is_noted();
}

void LibvirtSource::report_pinned(const std::string& sandbox, bool pinned) {
  node_.handle(
      {{ledger::Source::kLibvirt, ledger::PodSeen{.id = sandbox, .domain_pinned = pinned}}});
}

/// A sandbox may come to a domain that has run for long, and of which libvirt has nothing new to
/// report.
void LibvirtSource::greet_sandboxes(const DomainOwners& before) {
  for (const auto& [domain, id] : owners_) {
    const auto known = before.find(domain);
    const auto last = last_seen_.find(domain);
    const bool is_new = known == before.end() || known->second != id;
    if (!is_new || last == last_seen_.end() || !last->second.runs) continue;
    boost::asio::post(io_, [this, seen = last->second] { domain_changed(seen); });
  }
}

/// Empty when the pod is the domain that it names, or names none.
std::string LibvirtSource::refusal_text(const DomainPod& pod) const {
  const auto refusal = domain_refusal(pod, settings_.rules, owners_);
  if (!refusal) return {};
  switch (*refusal) {
    case DomainRefusal::kNotAllowed:
      return "allow_annotations does not list libvirt_domain";
    case DomainRefusal::kOwnVm:
      return "the pod has a VM of its own";
    case DomainRefusal::kTaken:
      break;
  }
  return "the domain is sandbox " + *sandbox_of(pod.domain.empty() ? pod.requested : pod.domain);
}

void LibvirtSource::log_refusals() {
  std::map<std::string, std::string> refusals;
  for (const DomainPod& pod : domain_pods(node_.ledger())) {
    auto text = refusal_text(pod);
    if (text.empty()) continue;
    const auto logged = refusals_.find(pod.id);
    if (logged == refusals_.end() || logged->second != text) {
      log_.warning("pod does not get the libvirt domain that it names",
                   {{"sandbox", pod.id},
                    {"domain", pod.domain.empty() ? pod.requested : pod.domain},
                    {"reason", text}});
    }
    refusals.emplace(pod.id, std::move(text));
  }
  refusals_ = std::move(refusals);
}

/// Absent: libvirt's record of the domain is left as it is.
std::optional<Order> LibvirtSource::order_for(const std::string& sandbox,
                                              const std::string& domain) const {
  const auto state = node_.sandbox(sandbox);
  if (!state || state->pod.domain != domain || (state->observed && !state->released)) {
    return std::nullopt;
  }
  if (state->released) return give_back_order(state->pod);
  Order order{.domain = domain, .pins = domain_pins(state->plan)};
  order.in_config = settings_.in_config;
  if (state->moves_memory) order.memory = domain_memory(state->plan.mems, state->memory);
  return order;
}

/// Pins may be those of a daemon before this one.
std::optional<Order> LibvirtSource::give_back_order(const ledger::PodRecord& pod) const {
  if (const auto last = ordered_.find(pod.domain); last != ordered_.end()) {
    return give_back(last->second);
  }
  if (!pod.domain_pinned) return std::nullopt;
  Order order{.domain = pod.domain, .pins = {}};
  order.in_config = settings_.in_config;
  return give_back(std::move(order));
}

/// What an order changed goes back; memory may be anywhere.
Order LibvirtSource::give_back(Order order) const {
  order.pins = {};
  order.give_back = true;
  if (order.memory) order.memory = MemoryOrder{node_.topology().nodes(), true};
  return order;
}

const std::string* LibvirtSource::sandbox_of(const std::string& domain) const {
  const auto found = owners_.find(domain);
  return found == owners_.end() ? nullptr : &found->second;
}

void LibvirtSource::connection_changed(bool up, const std::string& text) {
  connection_ = {up, text};
  report_status();
  report_all_seen();
}

void LibvirtSource::report_status() {
  node_.set_status(ledger::Source::kLibvirt, current_status());
}

/// A domain that runs and is no process that we know may be on any CPU.
source::Status LibvirtSource::current_status() const {
  if (client_ && client_->is_hung()) return {false, settings_.uri + ": libvirt does not respond"};
  if (!connection_.up || (unmatched_.empty() && unrecorded_.empty())) return connection_;
  const bool is_found = unmatched_.empty();
  const auto& [domain, reason] = is_found ? *unrecorded_.begin() : *unmatched_.begin();
  return {is_found, "domain " + domain + ": " + reason};
}

/// libvirt has nothing new to report of a domain that only we cannot find.
void LibvirtSource::retry_unmatched() {
  for (const auto& [domain, reason] : std::map(unmatched_)) domain_changed(last_seen_.at(domain));
}

/// Empty `reason`: the domain was found, or has ended.
void LibvirtSource::set_unmatched(const std::string& domain, const std::string& reason) {
  const auto known = unmatched_.find(domain);
  const std::string before = known == unmatched_.end() ? "" : known->second;
  if (reason == before) return;
  if (reason.empty()) {
    unmatched_.erase(domain);
  } else {
    unmatched_[domain] = reason;
    log_.warning("libvirt domain ignored", {{"domain", domain}, {"reason", reason}});
  }
  report_status();
}

/// After a connection libvirt reports each domain that is watched.
void LibvirtSource::report_all_seen() {
  const bool all = std::ranges::all_of(
      owners_, [&](const auto& owner) { return last_seen_.contains(owner.first); });
  if (!connection_.up || !all || node_.may_widen()) return;
  node_.synced(ledger::Source::kLibvirt);
  node_.finish({});
}

void LibvirtSource::domain_changed(const DomainSeen& domain) {
  const auto before = last_seen_.find(domain.name);
  if (before != last_seen_.end() && is_another_run(before->second, domain)) {
    const auto last = ordered_.find(domain.name);
    if (last != ordered_.end() && !last->second.give_back) ordered_.erase(last);
  }
  last_seen_[domain.name] = domain;
  const std::string* owner = sandbox_of(domain.name);
  if (owner == nullptr) return;
  const std::string sandbox = *owner;
  if (domain.runs) {
    domain_runs(sandbox, domain);
  } else {
    set_unmatched(domain.name, "");
    if (unrecorded_.erase(domain.name) > 0) report_status();
    node_.observe(sandbox);
  }
  report_all_seen();
}

/// It may as well be one that has run for long, and of which only something changed.
void LibvirtSource::domain_runs(const std::string& sandbox, const DomainSeen& domain) {
  const auto vmm = find_vmm(sandbox, domain);
  set_unmatched(domain.name, vmm ? "" : vmm.error().message);
  if (!vmm) return;
  const ledger::PodRecord* known = node_.ledger().find(sandbox);
  if (known != nullptr && known->vmm == *vmm && known->domain == domain.name) {
    return node_.observe(sandbox);
  }
  ledger::PodSeen pod{.id = sandbox, .vmm = *vmm, .domain = domain.name};
  node_.handle({{ledger::Source::kLibvirt, std::move(pod)}});
}

/// One VM is one sandbox. Which pod is a domain may be a tenant's word: it takes the VM from none,
/// also where only a state file has it.
base::Result<policy::ProcessId> LibvirtSource::find_vmm(const std::string& sandbox,
                                                        const DomainSeen& domain) const {
  auto vmm = vmm::find_domain(roots_, domain.name, domain.uuid);
  if (!vmm) return vmm;
  const ledger::PodRecord* holder = node_.ledger().find_holder(*vmm, sandbox);
  if (holder == nullptr) return vmm;
  return base::fail(base::ErrorCode::kConflict, "its VMM is that of sandbox " + holder->id);
}

/// libvirt has made the pins too, also those before a call that failed, and may have widened a
/// cgroup that was in the way.
void LibvirtSource::recorded(const Order& order, const base::Result<int>& calls) {
  note_result(order.domain, calls);
  const std::string* owner = sandbox_of(order.domain);
  if (owner == nullptr) return;
  const std::string sandbox = *owner;
  const auto last = ordered_.find(order.domain);
  // Until the newest order is carried out, libvirt's record has what an older one wrote.
  const bool is_last = last != ordered_.end() && last->second == order;
  if (calls && order.give_back && is_last) report_pinned(sandbox, false);
  node_.observe(sandbox);
  if (calls) recorded_(sandbox);
}

void LibvirtSource::note_result(const std::string& domain, const base::Result<int>& calls) {
  if (!calls) {
    unrecorded_[domain] = "pins not in libvirt's record: " + calls.error().message;
    log_.warning("cannot record a domain's pins in libvirt yet",
                 {{"domain", domain}, {"reason", calls.error().message}});
  } else {
    unrecorded_.erase(domain);
    if (*calls > 0) {
      log_.info("pins written to libvirt's record",
                {{"domain", domain}, {"calls", std::to_string(*calls)}});
    }
  }
  report_status();
}

}  // namespace ka::libvirt
