// SPDX-License-Identifier: Apache-2.0
// Requests of the helper what follows from the plans, whenever that is not what was requested last.
#pragma once

#include <boost/asio/io_context.hpp>
#include <filesystem>
#include <optional>
#include <string_view>
#include <utility>

#include "affinity/helper_client/client.hpp"
#include "affinity/helper_client/line_follower.hpp"
#include "base/clock.hpp"

namespace ka::helper_client {

template <typename Verb>
class Requester {
 public:
  using Wanted = typename Verb::Wanted;
  using Answered = typename Client<Verb>::Answered;

  /// `record`: name of the helper's own record of what this verb changed. `io` and `clock` must
  /// outlive it.
  Requester(boost::asio::io_context& io, const base::Clock& clock, const Places& places,
            std::string_view record, Answered answered)
      : client_(io, clock, {.socket = places.socket}, std::move(answered)),
        record_(places.run / "kata-affinity/helper" / record) {}

  /// True where it is sent. Where nothing was wanted yet, the helper is not contacted, unless it
  /// has a record of what an earlier daemon requested.
  bool request(const Wanted& wanted) {
    if (wanted.empty() && !requested_ && !has_record(record_)) requested_ = wanted;
    if (!std::exchange(again_, false) && requested_ == wanted) return false;
    requested_ = wanted;
    client_.request(wanted);
    return true;
  }

  /// Others may have written since: what is wanted next is sent, also if it is the same.
  void request_again() { again_ = requested_ && !requested_->empty(); }

  /// Absent: nothing has been requested yet.
  const std::optional<Wanted>& requested() const { return requested_; }

 private:
  Client<Verb> client_;
  std::filesystem::path record_;
  bool again_ = false;  ///< it is requested once more, also if it is the same
  std::optional<Wanted> requested_;
};

}  // namespace ka::helper_client
