#include "affinity/daemon/libvirt_source.hpp"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <charconv>
#include <string_view>
#include <utility>

#include "affinity/engine/engine.hpp"
#include "vmm/threads.hpp"

namespace ka::daemon {
namespace {

using policy::Source;

/// N of "iothreadN" (src/conf/domain_conf.c).
std::optional<int> iothread_number(std::string_view id) {
  constexpr std::string_view kPrefix = "iothread";
  if (!id.starts_with(kPrefix)) return std::nullopt;
  id.remove_prefix(kPrefix.size());
  int number = 0;
  const auto [stop, error] = std::from_chars(id.data(), id.data() + id.size(), number);
  if (error != std::errc{} || stop != id.data() + id.size()) return std::nullopt;
  return number;
}

}  // namespace

libvirt::Pins to_pins(const policy::SandboxPlan& plan) {
  libvirt::Pins pins{.vcpus = {}, .emulator = plan.emulator, .iothreads = {}};
  for (const policy::VcpuPlan& vcpu : plan.vcpus) {
    if (vcpu.placed) pins.vcpus[vcpu.index] = vcpu.cpus;
  }
  for (const auto& [id, cpus] : plan.iothreads) {
    if (const auto number = iothread_number(id)) pins.iothreads[*number] = cpus;
  }
  return pins;
}

LibvirtSource::LibvirtSource(boost::asio::io_context& io, engine::Engine& engine, vmm::Roots roots,
                             Settings settings, const log::Log& log)
    : io_(io),
      engine_(engine),
      roots_(std::move(roots)),
      settings_(std::move(settings)),
      log_(log) {
  libvirt::ClientHandlers handlers;
  handlers.connection = [this](bool up, const std::string& text) {
    boost::asio::post(io_, [this, up, text] { heard(up, text); });
  };
  handlers.domain = [this](const libvirt::DomainSeen& domain) {
    boost::asio::post(io_, [this, domain] { seen(domain); });
  };
  handlers.pinned = [this](const std::string& domain, const base::Result<int>& calls) {
    boost::asio::post(io_, [this, domain, calls] { pinned(domain, calls); });
  };
  heard(false, settings_.uri + ": not connected yet");
  auto client = libvirt::Client::start({.uri = settings_.uri}, std::move(handlers));
  if (!client) {
    heard(false, client.error().message);
    return;
  }
  client_.emplace(std::move(*client));
  follow();
}

void LibvirtSource::follow_soon() {
  if (std::exchange(following_soon_, true)) return;
  boost::asio::post(io_, [this] {
    following_soon_ = false;
    follow();
  });
}

/// Hands on what the plans say of domains, where that is another thing than it was.
void LibvirtSource::follow() {
  if (!client_) return;
  follow_domains();
  greet_sandboxes();
  for (const auto& [id, pod] : engine_.ledger().pods()) {
    if (pod.domain.empty()) continue;
    auto order = order_for(id);
    const auto before = ordered_.find(pod.domain);
    if (!order || (before != ordered_.end() && before->second == *order)) continue;
    ordered_.insert_or_assign(pod.domain, *order);
    client_->order(std::move(*order));
  }
}

void LibvirtSource::follow_domains() {
  std::set<std::string> domains(settings_.domains.begin(), settings_.domains.end());
  for (const auto& [id, pod] : engine_.ledger().pods()) {
    if (!pod.domain.empty()) domains.insert(pod.domain);
  }
  // A sandbox that was forgotten while its domain runs: its pins go back, and nobody follows that.
  for (auto& [domain, order] : ordered_) {
    if (!sandboxes_of(domain).empty() || order.give_back) continue;
    order = {.domain = domain, .pins = {}, .in_config = order.in_config, .give_back = true};
    client_->order(order);
  }
  for (const auto& [domain, order] : ordered_) domains.insert(domain);
  if (domains == followed_) return;
  followed_ = std::move(domains);
  client_->follow(followed_);
}

/// A sandbox may come to a domain that runs since long, and of which libvirt has nothing new to
/// tell.
void LibvirtSource::greet_sandboxes() {
  std::map<std::string, std::string> sandboxes;
  for (const auto& [id, pod] : engine_.ledger().pods()) {
    if (!pod.domain.empty()) sandboxes[id] = pod.domain;
  }
  if (sandboxes == greeted_) return;
  const auto before = std::exchange(greeted_, std::move(sandboxes));
  for (const auto& [id, domain] : greeted_) {
    const auto last = last_seen_.find(domain);
    if (before.contains(id) || last == last_seen_.end() || !last->second.runs) continue;
    boost::asio::post(io_, [this, seen = last->second] { this->seen(seen); });
  }
}

std::optional<libvirt::Order> LibvirtSource::order_for(const std::string& sandbox) const {
  const auto view = engine_.view(sandbox);
  if (!view || (view->observed && !view->released)) return std::nullopt;
  libvirt::Order order{.domain = view->pod.domain,
                       .pins = to_pins(view->plan),
                       .in_config = settings_.in_config,
                       .give_back = view->released};
  // Nothing of ours is recorded, and nothing has to go back.
  if (order.give_back && !ordered_.contains(order.domain)) return std::nullopt;
  if (order.give_back) order.pins = {};
  return order;
}

std::vector<std::string> LibvirtSource::sandboxes_of(const std::string& domain) const {
  std::vector<std::string> ids;
  for (const auto& [id, pod] : engine_.ledger().pods()) {
    if (pod.domain == domain) ids.push_back(id);
  }
  return ids;
}

bool LibvirtSource::is_configured(const std::string& domain) const {
  return std::ranges::find(settings_.domains, domain) != settings_.domains.end();
}

void LibvirtSource::heard(bool up, const std::string& text) {
  engine_.set_source(Source::kLibvirt, {up, text});
}

void LibvirtSource::seen(const libvirt::DomainSeen& domain) {
  last_seen_[domain.name] = domain;
  auto sandboxes = sandboxes_of(domain.name);
  if (sandboxes.empty() && is_configured(domain.name)) sandboxes = {domain.name};
  for (const std::string& sandbox : sandboxes) {
    if (domain.runs) {
      started(sandbox, domain);
    } else {
      engine_.look_again(sandbox);
    }
  }
}

/// It may as well be one that runs since long, and of which only something changed.
void LibvirtSource::started(const std::string& sandbox, const libvirt::DomainSeen& domain) {
  const auto pid = vmm::find_domain(roots_, domain.uuid);
  if (!pid) {
    log_.warning("a libvirt domain is not followed",
                 {{"sandbox", sandbox}, {"domain", domain.name}, {"reason", pid.error().message}});
    return;
  }
  const policy::PodRecord* known = engine_.ledger().find(sandbox);
  if (known != nullptr && known->vmm_pid == *pid) {
    engine_.look_again(sandbox);
  } else {
    engine_.handle(
        {Source::kLibvirt, policy::PodSeen{.id = sandbox, .vmm_pid = *pid, .domain = domain.name}});
  }
}

void LibvirtSource::pinned(const std::string& domain, const base::Result<int>& calls) {
  if (!calls) {
    log_.warning("libvirt does not record the pins of a domain yet",
                 {{"domain", domain}, {"reason", calls.error().message}});
    return;
  }
  log_.info("libvirt records the plan", {{"domain", domain}, {"calls", std::to_string(*calls)}});
  // It has made the pins too, and may have widened a cgroup that was in the way.
  for (const std::string& sandbox : sandboxes_of(domain)) engine_.look_again(sandbox);
}

}  // namespace ka::daemon
