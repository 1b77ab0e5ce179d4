// The commands that look: status, explain, map, verify, events.
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <chrono>
#include <thread>

#include "affinity/cli/commands.hpp"
#include "affinity/cli/daemon.hpp"
#include "affinity/cli/describe.hpp"
#include "affinity/words/json.hpp"

namespace ka::cli {
namespace {

constexpr auto kPause = std::chrono::seconds(1);
constexpr const char* kClearScreen = "\033[H\033[2J";

using Describe = std::string (*)(const boost::json::value&);

base::Result<boost::json::value> show(const base::Result<boost::json::object>& answer,
                                      Describe describe, Output& output) {
  if (!answer) return unexpected(answer.error());
  boost::json::value document(*answer);
  output.show(document, [&] { return describe(document); });
  return document;
}

Exit show_once(const base::Result<boost::json::object>& answer, Describe describe, Output& output) {
  const auto shown = show(answer, describe, output);
  return shown ? Exit::kDone : output.fail(shown.error());
}

base::Result<boost::json::value> show_status(const StatusOptions& options, Output& output) {
  const Daemon daemon(options.socket);
  if (options.sandbox.empty()) {
    return show(daemon.get("/v1/sandboxes"), describe_sandboxes, output);
  }
  return show(daemon.get("/v1/sandboxes/" + encode(options.sandbox)), describe_sandbox, output);
}

}  // namespace

Exit run(const StatusOptions& options, Output& output) {
  if (options.watch && output.json()) {
    return output.fail({base::ErrorCode::kInvalid, "--watch and --json do not go together", 0});
  }
  for (;;) {
    if (options.watch) output.print(kClearScreen);
    const auto shown = show_status(options, output);
    if (!shown) return output.fail(shown.error());
    if (!options.watch) return Exit::kDone;
    std::this_thread::sleep_for(kPause);
  }
}

Exit run(const ExplainOptions& options, Output& output) {
  return show_once(Daemon(options.socket).get("/v1/explain/" + encode(options.sandbox)),
                   describe_reasons, output);
}

Exit run(const MapOptions& options, Output& output) {
  return show_once(Daemon(options.socket).get("/v1/node"), describe_node, output);
}

Exit run(const VerifyOptions& options, Output& output) {
  const auto report = show(Daemon(options.socket).post("/v1/verify"), describe_report, output);
  if (!report) return output.fail(report.error());
  return flag_of(*report, "ok") ? Exit::kDone : Exit::kNo;
}

Exit run(const EventsOptions& options, Output& output) {
  const auto followed = Daemon(options.socket).follow_events([&output](std::string_view line) {
    if (output.json()) {
      output.print(std::string(line) + '\n');
    } else if (const auto event = words::parse_json(line, "event")) {
      output.print(describe_event(*event));
    }
    return true;
  });
  return followed ? Exit::kDone : output.fail(followed.error());
}

}  // namespace ka::cli
