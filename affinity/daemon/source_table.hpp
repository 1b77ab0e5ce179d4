// SPDX-License-Identifier: Apache-2.0
// The sources of a node, one row each: how a start waits for it, and how it is made. Its
// precedence is in policy/ledger/source.hpp.
#pragma once

#include <boost/asio/io_context.hpp>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "base/clock.hpp"
#include "base/log/log.hpp"
#include "policy/ledger/event.hpp"
#include "shim-ext/kata/kata_watch.hpp"
#include "shim-ext/libvirt/libvirt_source.hpp"
#include "shim-ext/nri/nri_source.hpp"
#include "shim-ext/source/node.hpp"
#include "shim-ext/source/source.hpp"
#include "vmm/facts/facts.hpp"

namespace ka::daemon {

struct SourceSettings {
  std::filesystem::path nri_socket;     ///< empty: none
  std::filesystem::path kubelet_state;  ///< empty: none
  std::filesystem::path state_dir;      ///< of the state files
  std::string boot_id;
  std::filesystem::path pod_resources;  ///< socket; empty: none
  std::filesystem::path cdi;            ///< directory; empty: none
  kata::KataWatch::Folders kata;
  libvirt::LibvirtSource::Settings libvirt;  ///< without a URI: none
};

/// What sources are made with; all that is referred to outlives them.
struct SourceContext {
  boost::asio::io_context& io;
  source::Node& node;
  nri::Containers& containers;
  nri::Allocator* allocator;  ///< null: kubelet gives containers their CPUs
  /// Called with each sandbox whose memory libvirt may have allowed on more nodes.
  std::function<void(const std::string&)> memory_allowed;
  vmm::Roots roots;
  const log::Log& log;
  const base::Clock& clock;
};

struct SourceRegistration {
  policy::ledger::Source source;
  /// Whether this node has it, so that nothing is widened after a start before it reports (or a
  /// stated time has passed).
  bool (*is_awaited)(const SourceSettings& settings);
  /// Null where the settings disable it. No function: another row makes it, or its
  /// reports come in by the API.
  std::unique_ptr<source::Source> (*make)(const SourceSettings& settings,
                                          const SourceContext& context, source::Peers& peers);
};

/// In the order in which they are started.
std::span<const SourceRegistration> source_registrations();

}  // namespace ka::daemon
