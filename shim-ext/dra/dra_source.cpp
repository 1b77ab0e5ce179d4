// SPDX-License-Identifier: Apache-2.0
#include "shim-ext/dra/dra_source.hpp"

#include <utility>

#include "shim-ext/watch/stamp.hpp"

namespace ka::dra {
namespace {

using policy::ledger::PreparedSeen;

constexpr auto kSource = policy::ledger::Source::kDra;

std::string describe(const PreparedSeen& seen) {
  if (seen.claims.empty()) return "no claim on CPUs is prepared";
  policy::CpuSet cpus;
  for (const auto& claim : seen.claims) cpus |= claim.cpus;
  return std::to_string(seen.claims.size()) +
         (seen.claims.size() == 1 ? " claim is" : " claims are") + " prepared, on CPU" +
         (cpus.size() == 1 ? " " : "s ") + policy::format_list(cpus);
}

}  // namespace

DraSource::DraSource(boost::asio::io_context& io, std::filesystem::path directory,
                     source::Node& node, const log::Log& log)
    : path_(directory),
      directory_(std::move(directory)),
      node_(node),
      log_(log),
      inotify_(io, [this] { refresh(); }) {
  refresh();
}

/// As with kubelet's state: any sandbox may be on a CPU that was just given away.
void DraSource::refresh() {
  auto seen = poll();
  if (!seen) return;
  node_.narrow({{kSource, std::move(*seen)}}, base::Deadline::none());
  node_.finish({});
}

/// While there is no directory, a runtime that waits costs one stat: the watch above it brings
/// refresh(), and a claim may be there before the loop has heard of it.
void DraSource::catch_up(const base::Deadline& deadline) {
  if (is_absent_ && watch::stamp_of(path_) == watch::Stamp{}) return;
  if (auto seen = poll()) node_.narrow({{kSource, std::move(*seen)}}, deadline);
}

/// What is prepared, if that changed. While the directory cannot be read, what was read holds.
std::optional<PreparedSeen> DraSource::poll() {
  inotify_.begin();
  const bool is_watched = inotify_.watch_nearest(path_);
  node_.set_late(kSource, inotify_.trouble());
  const auto read = directory_.read();
  const bool is_gone = base::is_gone(read);
  is_absent_ = is_gone && !is_watched;
  record_problems();
  PreparedSeen seen{directory_.claims()};
  set_status(read, seen);
  const bool is_known = read.has_value() || (is_gone && last_.has_value());
  if (!is_known || last_ == seen) return std::nullopt;
  last_ = seen;
  return seen;
}

void DraSource::record_problems() {
  auto problems = directory_.problems();
  if (problems == problems_) return;
  problems_ = std::move(problems);
  for (const std::string& problem : problems_) {
    log_.warning("a CDI file that names CPUs is not used", {{"reason", problem}});
  }
}

/// A node that never had the directory has no such source, unless an error said otherwise.
void DraSource::set_status(const base::Result<void>& read, const PreparedSeen& seen) {
  const bool is_absent = is_gone(read);
  if (is_absent && !has_status_) return;
  has_status_ = true;
  if (is_absent)
    return node_.set_status(kSource, {false, path_.native() + " does not exist", true});
  if (!read) return node_.set_status(kSource, {false, read.error().message});
  if (problems_.empty()) return node_.set_status(kSource, {true, describe(seen)});
  node_.set_status(kSource, {false, describe(seen) + "; not used: " + problems_.front()});
}

}  // namespace ka::dra
