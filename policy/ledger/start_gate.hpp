// SPDX-License-Identifier: Apache-2.0
// What may be written after a start. The daemon then knows the content of its state files; who owns
// which CPU may have changed since, and a file may be lost. Until the node's sources report,
// threads only lose CPUs: no thread may get a CPU whose owner is unknown.
//
//   phase    event                                                next phase
//   -------  ---------------------------------------------------  --------------------------------
//   open     a source is awaited (before the first event)         waiting
//   open     state cannot be read, no source is awaited           blind
//   waiting  the last awaited source reports, no state is lost    open
//   waiting  the last awaited source reports, state is lost       open if one of the sources
//                                                                 knows every pod's CPUs and the
//                                                                 runtime made the pods' ids,
//                                                                 else blind
//   waiting  the time is up, no state is lost                     open, without the silent sources
//   waiting  the time is up, state is lost                        blind
//   blind    the last awaited source reports                      as in waiting
//   blind    a source that knows every pod's CPUs reports, no
//            source is awaited, the runtime made the pods' ids    open
//   blind    nothing is lost any more: the files could be read,
//            or sources reported each of the pods                 open
//   blind    an operator overrides it                   open
//   open     anything, once it was waiting or blind               open
//
// In `waiting` an operator's override and reported pods count too: they take effect when it ends.
// No source of the node's pods knows a sandbox that was added by hand, or a libvirt domain.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "policy/ledger/event.hpp"

namespace ka::policy::ledger {

/// State of before the start that is there and cannot be read.
struct LostState {
  std::string file;      ///< or the directory, where not even its files can be listed
  std::string pod;       ///< whose it is; empty: not known
  std::string reason;    ///< why it cannot be read
  bool damaged = false;  ///< reading it again will not help

  bool operator==(const LostState&) const = default;
};

/// A pod's id that containerd or CRI-O made: 64 hexadecimal digits (containerd's
/// internal/cri/util/id.go, CRI-O's and podman's stringid.GenerateNonCryptoID()).
bool is_runtime_id(std::string_view id);

class StartGate {
 public:
  enum class Phase { kWaiting, kBlind, kOpen };

  /// A source that this node has is awaited. Before the first event.
  void expect(Source source);
  /// All state that cannot be read; called after each attempt. Pods that sources have reported in
  /// the meantime are not counted again.
  void set_lost(const std::vector<LostState>& lost);

  /// A source has reported all that it has.
  void synced(Source source);
  /// A source reported a container of this pod.
  void pod_reported(std::string_view pod);
  /// Stops waiting for sources.
  void expire();
  /// An operator overrides lost state: from now on none counts as lost.
  void dismiss_lost();

  bool may_widen() const { return phase_ == Phase::kOpen; }
  Phase phase() const { return phase_; }
  /// Sources that have not reported, also after the time was up.
  const std::set<Source>& silent() const { return silent_; }
  const std::vector<LostState>& lost() const { return lost_; }

 private:
  void close();
  void step();
  bool is_accounted_for() const;

  Phase phase_ = Phase::kOpen;
  bool was_closed_ = false, expired_ = false, dismissed_ = false;
  std::set<Source> silent_, reported_;
  std::set<std::string, std::less<>> reported_pods_;  ///< pods
  std::vector<LostState> lost_;
};

}  // namespace ka::policy::ledger
