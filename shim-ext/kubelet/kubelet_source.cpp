// SPDX-License-Identifier: Apache-2.0
#include "shim-ext/kubelet/kubelet_source.hpp"

#include <utility>

namespace ka::kubelet {

namespace ledger = policy::ledger;

KubeletSource::KubeletSource(boost::asio::io_context& io, std::filesystem::path file,
                             LastState last, source::Node& node, const log::Log& log)
    : node_(node),
      watch_(io, std::move(file), std::move(last),
             {.changed = [this] { refresh(); },
              .status =
                  [this](source::Status status) {
                    node_.set_status(ledger::Source::kKubelet, std::move(status));
                  }},
             log) {
  refresh();
}

/// A CPU that has become exclusive may be in use by every sandbox of the node: each is narrowed by
/// what is known of it, one after the other, before any is read as a whole.
void KubeletSource::refresh() {
  if (auto seen = poll()) {
    node_.narrow({{ledger::Source::kKubelet, std::move(*seen)}}, base::Deadline::none());
    node_.finish({});
  }
  watch_.keep();
}

std::optional<ledger::KubeletSeen> KubeletSource::poll() {
  auto seen = watch_.poll();
  node_.set_late(ledger::Source::kKubelet, watch_.late());
  return seen;
}

void KubeletSource::catch_up(const base::Deadline& deadline) {
  if (watch_.is_current()) return;
  if (auto seen = poll()) node_.narrow({{ledger::Source::kKubelet, std::move(*seen)}}, deadline);
}

}  // namespace ka::kubelet
