// SPDX-License-Identifier: Apache-2.0
// Our agent in a guest: requests name hardware ids, and it reports the result for each container.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <optional>
#include <string>

#include "affinity/guests/guest_peer.hpp"
#include "guest-agent/host/link.hpp"

namespace ka::guests {

class OurPeer final : public GuestPeer {
 public:
  /// `reacted`: how long the guest took from the plan to its report. All references must outlive
  /// it.
  OurPeer(boost::asio::io_context& io, const base::Clock& clock, GuestRecord& record,
          const guest::Address& address, PeerEvents events,
          std::function<void(std::chrono::nanoseconds)> reacted);

  const guest::Address& address() const override { return link_.address(); }
  void adopt() override;
  void place(base::Clock::Time planned) override;
  bool will_answer() const override { return sent_.has_value(); }
  std::optional<policy::GuestDoubt> doubt_about(
      const policy::GuestContainer& container) const override;
  bool is_placed(const std::string& container) const override;

 private:
  void connect(const std::string& program);
  void record_news(const guest::News& news);
  void lose(const std::string& reason);

  const base::Clock& clock_;
  GuestRecord& record_;
  PeerEvents events_;
  std::function<void(std::chrono::nanoseconds)> reacted_;
  std::optional<policy::GuestSpec> sent_;
  std::optional<base::Clock::Time>
      unanswered_since_;  ///< when what it has not answered was planned
  guest::Link link_;
};

}  // namespace ka::guests
