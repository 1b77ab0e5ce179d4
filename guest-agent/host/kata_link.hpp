// SPDX-License-Identifier: Apache-2.0
// A guest without our agent: its containers' CPUs are requested from kata-agent. It never blocks;
// a guest that does not answer loses its connection, with a growing delay.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/backoff.hpp"
#include "guest-agent/host/connection.hpp"
#include "guest-agent/host/kata_session.hpp"
#include "policy/facts/guest.hpp"

namespace ka::guest {

/// kata-agent does nearly all of its work under one lock, which the bringing of vCPUs online holds
/// for up to 5 s and the making of a container for as long as its hooks take, 10 s each
/// (kata-containers 4.1, src/agent/src/sandbox.rs, rpc.rs). A call that waits for the lock is
/// carried out in its turn, so to break off and ask again would only be later.
inline constexpr Timing kKataTiming{.longest = std::chrono::seconds(30)};

class KataLink {
 public:
  using Sets = policy::GuestSets;

  /// Called from the loop. Any of them may be empty.
  struct Events {
    /// It answers (again).
    std::function<void(const std::string& version)> connected;
    /// What is known of all containers that were asked for, whenever that changed.
    std::function<void()> answered;
    /// It counted the guest's CPUs.
    std::function<void()> counted;
    /// There is no connection (any more), or a response is late: reported once per reason.
    std::function<void(const std::string& reason)> lost;
  };

  /// Connects from the loop. `host_has_systemd`: the host's cgroups are systemd's, and so Kata
  /// hands kata-agent paths for systemd. kata-agent makes wrong bytes of CPU numbers of 8 and above
  /// for it (rustjail/src/cgroups/systemd/subsystem/cpuset.rs): these are refused here.
  KataLink(boost::asio::io_context& io, const base::Clock& clock, Address address,
           bool host_has_systemd, Events events, Timing timing = kKataTiming);
  KataLink(const KataLink&) = delete;
  KataLink& operator=(const KataLink&) = delete;
  ~KataLink();

  /// The planned sets of containers. Sets that narrow are sent first; unchanged ones are sent only
  /// with `again`: kata-agent brings the guest's vCPUs online, and then writes cpusets
  /// again.
  void place(const Sets& wanted, bool again);

  /// Asks how many CPUs the guest has online, with pauses that grow, until it has this many.
  void count_online(int wanted);
  /// Its policy forbids the call: there will be no connection any more.
  bool is_forbidden() const { return forbidden_; }
  /// The most that it ever counted; 0: it did not.
  int most_online() const { return session_ ? session_->most_online() : 0; }

  /// By id, of those asked for; a container that was not answered for yet is not in it.
  std::vector<policy::GuestContainerState> states() const;
  /// Every container was answered for.
  bool is_current() const;
  const Address& address() const { return connection_.address(); }

 private:
  struct Placed {
    policy::GuestCpuSet cpus;
    policy::GuestProblem problem = policy::GuestProblem::kNone;
  };

  void begin();
  void receive(std::string_view bytes);
  void record(const std::vector<KataAnswer>& answers);
  void send_wanted();
  void record_count();
  bool is_counting() const;
  void request_count();
  void poll_later();
  bool is_refused(const policy::GuestCpuSet& cpus) const;
  void update_deadline();
  void lose(const std::string& reason);
  void end();

  bool host_has_systemd_;
  Events events_;
  base::Backoff polls_;
  bool reported_connected_ = false;
  int wanted_online_ = 0;  ///< 0: it is not asked
  bool refuses_to_count_ = false;
  bool forbidden_ = false;
  Sets wanted_;
  std::map<std::string, Placed> done_;
  std::optional<KataSession> session_;
  Connection connection_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace ka::guest
