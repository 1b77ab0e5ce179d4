// A guest without our agent: its containers' CPUs are told to kata-agent. It never blocks, and a
// guest that does not answer costs its own connection and a pause that grows.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "guest-agent/host/connection.hpp"
#include "guest-agent/host/kata_session.hpp"
#include "policy/facts/guest.hpp"

namespace ka::guest {

class KataLink {
 public:
  using Sets = std::map<std::string, policy::GuestCpuSet>;  ///< guest CPUs by container

  /// Called from the loop. Any of them may be empty.
  struct Events {
    std::function<void(const std::string& version)> connected;
    /// What is known of all containers that were asked for, whenever that changed.
    std::function<void()> told;
    /// There is no connection (any more): told once for each reason.
    std::function<void(const std::string& reason)> lost;
  };

  /// Connects from the loop. `host_has_systemd`: the host's cgroups are systemd's, and so Kata
  /// hands kata-agent paths for systemd. kata-agent makes wrong bytes of CPU numbers of 8 and above
  /// for it (rustjail/src/cgroups/systemd/subsystem/cpuset.rs): these are refused here.
  KataLink(boost::asio::io_context& io, Address address, bool host_has_systemd, Events events,
           Patience patience = {});
  KataLink(const KataLink&) = delete;
  KataLink& operator=(const KataLink&) = delete;
  ~KataLink();

  /// What containers are to have. What is narrowed is sent first, what is as it was is not sent,
  /// but when `again`: kata-agent has the guest's vCPUs brought online, and then writes cpusets
  /// anew.
  void place(const Sets& wanted, bool again);

  /// By id, of those asked for; a container that was not answered for yet is not in it.
  std::vector<policy::GuestContainerState> states() const;
  /// Every container was answered for.
  bool is_current() const;
  const Address& address() const { return connection_.address(); }

 private:
  struct Told {
    policy::GuestCpuSet cpus;
    policy::GuestProblem problem = policy::GuestProblem::kNone;
  };

  void begin();
  void receive(std::string_view bytes);
  void take(const std::vector<KataAnswer>& answers);
  void send_wanted();
  bool is_refused(const policy::GuestCpuSet& cpus) const;
  void follow_deadline();
  void end();

  bool host_has_systemd_;
  Events events_;
  std::chrono::milliseconds last_look_;
  std::chrono::milliseconds look_again_;
  bool told_connected_ = false;
  Sets wanted_;
  std::map<std::string, Told> done_;
  std::optional<KataSession> session_;
  Connection connection_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace ka::guest
