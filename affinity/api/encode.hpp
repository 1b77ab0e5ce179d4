// SPDX-License-Identifier: Apache-2.0
// The state of line and board as JSON. The shapes are documented in docs/use/api.md.
#pragma once

#include <boost/json/fwd.hpp>
#include <string_view>

#include "affinity/line/report.hpp"
#include "affinity/line/views.hpp"

namespace ka::board {
class Board;
struct Notification;
struct Outcome;
}  // namespace ka::board
namespace ka::line {
class CpuInterruptions;
class Node;
struct Options;
}  // namespace ka::line

namespace ka::api {

/// One sandbox as `status` shows it: its plan, with each thread's wanted and actual set, and each
/// container's spec beside the vCPUs it got.
boost::json::object to_json(const line::SandboxView& view);

/// What its resource classes come to.
boost::json::object classes_to_json(const line::SandboxView& view);

boost::json::object to_json(const board::Outcome& outcome);
boost::json::object to_json(const line::VerifyReport& report);
boost::json::object to_json(const board::Notification& notification);
/// How long each thread has waited for a CPU; one that cannot be read is left out.
boost::json::object waits_to_json(const line::Node& node);
/// What interrupted the dedicated vCPUs of a sandbox, or of all (empty), until now.
boost::json::object interruptions_to_json(const line::Node& node,
                                          const line::CpuInterruptions& interruptions,
                                          std::string_view sandbox);
/// CPUs that are assigned exclusively more than once, with everyone who owns them.
boost::json::array contests_to_json(const line::Node& node);
/// What may be written since the start, what that waits for, and which state is not on disk.
boost::json::object start_to_json(const line::Node& node);
/// The same as sentences, for responses to changes; none if there is nothing to report.
boost::json::array start_warnings(const line::Node& node);

/// The settings by which nothing is placed, or nothing written, as sentences.
boost::json::array inert_settings(const line::Options& options);

/// The node as `map` draws it: the machine, who owns which CPU, which vCPU is dedicated to it and
/// how many other threads may use it.
boost::json::object node_to_json(const line::Node& node,
                                 const line::CpuInterruptions& interruptions);

}  // namespace ka::api
