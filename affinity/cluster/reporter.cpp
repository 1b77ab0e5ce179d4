// SPDX-License-Identifier: Apache-2.0
#include "affinity/cluster/reporter.hpp"

#include <algorithm>
#include <utility>

namespace ka::cluster {
namespace {

using namespace std::chrono_literals;

/// verify reads every thread of every sandbox.
constexpr auto kBetweenVerifications = 60s;
/// How long a label that someone else removed stays away.
constexpr auto kBetweenRechecks = 10min;
constexpr auto kLongestPause = 5min;

base::Backoff::Duration milliseconds(Reporter::Duration duration) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(duration);
}

}  // namespace

Reporter::Reporter(const Settings& settings, Dependencies with)
    : settings_(settings),
      with_(std::move(with)),
      outbox_(with_.clock, settings.marks_node),
      health_(with_.clock),
      pace_(with_.clock, settings.pace, with_.random(settings.pace)),
      backoff_(milliseconds(settings.pace), kLongestPause),
      poll_due_(with_.clock.now()),
      verify_due_(with_.clock.now() + with_.random(settings.interval)),
      recheck_due_(with_.clock.now() + kBetweenRechecks + with_.random(kBetweenRechecks)) {
  if (settings_.withdraws) outbox_.withdraw();
}

Reporter::Duration Reporter::step() {
  const auto now = with_.clock.now();
  if (now >= poll_due_) {
    poll_due_ = now + settings_.interval;
    if (!settings_.withdraws) poll();
    write_feature();
  }
  if (now >= recheck_due_) {
    recheck_due_ = now + kBetweenRechecks;
    outbox_.recheck_node();
  }
  if (pace_.pause() == Duration::zero()) write_one();
  const auto until_poll = poll_due_ - with_.clock.now();
  const auto pause = pace_.pause() > Duration::zero() ? pace_.pause() : Duration(1s);
  return std::max(settings_.withdraws ? pause : std::min(until_poll, pause), Duration(10ms));
}

void Reporter::poll() {
  auto view = with_.daemon.view();
  if (!view) {
    with_.log.warning(view.error().message, {{"kind", "daemon"}});
    if (health_.is_away()) outbox_.update_away();
    return;
  }
  health_.record_answer();
  outbox_.update(std::move(view->sandboxes), view->drifts, with_.watch.pods());
  if (settings_.reports_classes) report_classes();
  if (with_.clock.now() >= verify_due_) verify();
}

/// What the daemon does not take now is sent again at the next look.
void Reporter::report_classes() {
  const auto known = with_.daemon.class_requests();
  if (!known) return with_.log.warning(known.error().message, {{"kind", "daemon"}});
  for (const ClassRequest& request : changed_requests(*known, with_.watch.pods())) {
    const auto done = with_.daemon.report(request);
    if (done) {
      with_.log.info("container " + request.container + " of pod " + request.pod_uid +
                         (request.requested ? " asks for class " + *request.requested
                                            : " asks for no class any more"),
                     {{"kind", "class"}});
    } else if (done.error().code != base::ErrorCode::kNotFound) {
      with_.log.warning(done.error().message, {{"kind", "daemon"}});
    }
  }
}

void Reporter::verify() {
  const auto state = with_.daemon.verify();
  if (!state) with_.log.warning(state.error().message, {{"kind", "daemon"}});
  const NodeState reading = state.value_or(NodeState::kUnknown);
  health_.record(reading);
  // The next look decides whether it stays.
  if (reading != NodeState::kBroken) verify_due_ = with_.clock.now() + kBetweenVerifications;
}

/// No load on the API server, so it has no pace.
void Reporter::write_feature() {
  const auto state = settings_.withdraws ? std::nullopt : health_.state();
  if (!with_.feature_file || (!state && !settings_.withdraws)) return;
  const auto done = with_.feature_file->write(state);
  if (!done) with_.log.warning(done.error().message, {{"kind", "feature-file"}});
}

void Reporter::write_one() {
  const auto write = outbox_.next(health_.state(), with_.watch.pods());
  if (!write) return;
  pace_.spend();
  const auto attempt = with_.server.write(*write);
  outbox_.record(*write, attempt.outcome);
  if (attempt.outcome == Outcome::kDone) return backoff_.reset();
  if (attempt.outcome == Outcome::kFailed) return fail(attempt);
  with_.log.warning("refused: " + attempt.error, {{"kind", "refused"}});
}

/// All nodes fail at once where the API server is away, and should not come back at once; nor
/// before the time that it asks for.
void Reporter::fail(const ApiServer::Attempt& attempt) {
  with_.log.warning(attempt.error, {{"kind", "api-server"}});
  const Duration wanted = std::min<Duration>(attempt.retry_after, kLongestPause);
  const auto pause = std::max<Duration>(backoff_.next(), wanted);
  pace_.restart(pause + with_.random(pause));
}

}  // namespace ka::cluster
