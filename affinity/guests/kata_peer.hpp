// SPDX-License-Identifier: Apache-2.0
// kata-agent in place of our agent: it takes guest CPU numbers and reports only that it took them.
// A container once requested is requested again whenever vCPUs come or go, also after guests are
// no longer to be placed, since kata-agent cannot clear a cpuset.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <optional>
#include <string>

#include "affinity/guests/guest_peer.hpp"
#include "guest-agent/host/kata_link.hpp"

namespace ka::guests {

class KataPeer final : public GuestPeer {
 public:
  struct Events : PeerEvents {
    /// Which guest CPU each vCPU is cannot be known: nothing is placed.
    std::function<void()> uncertain;
    /// It has counted the guest's CPUs.
    std::function<void()> counted;
  };

  /// `host_has_systemd`: see guest::KataLink. All references must outlive it.
  KataPeer(boost::asio::io_context& io, const base::Clock& clock, GuestRecord& record,
           const guest::Address& address, bool host_has_systemd, Events events);

  const guest::Address& address() const override { return link_.address(); }
  void adopt() override;
  void place(base::Clock::Time planned) override;
  bool will_answer() const override { return places_; }
  std::optional<policy::GuestDoubt> doubt_about(
      const policy::GuestContainer& container) const override;
  bool is_placed(const std::string& container) const override;
  /// The guest's policy forbids the call, and so it is not asked again.
  bool is_forbidden() const { return link_.is_forbidden(); }

  /// Precondition: the record's plug history is that of now. All vCPUs that were plugged have their
  /// numbers when kata-agent counts them all online, if none was plugged meanwhile.
  void record_count();

 private:
  void connect(const std::string& version);
  void record_answers();
  void forget_gone();
  void reject_numbers();

  GuestRecord& record_;
  Events events_;
  std::string name_;                         ///< what it calls itself
  policy::plan::GuestNumbers sent_numbers_;  ///< those of when it was asked last
  policy::GuestSets sets_;                   ///< what it was asked then
  bool places_ = false;                      ///< the numbers allow to place containers
  guest::KataLink link_;
};

}  // namespace ka::guests
