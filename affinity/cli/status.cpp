// SPDX-License-Identifier: Apache-2.0
// The commands that look: status, explain, map, verify, events.
#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>

#include "affinity/cli/commands.hpp"
#include "affinity/cli/daemon.hpp"
#include "affinity/cli/describe.hpp"
#include "affinity/cli/map_svg.hpp"
#include "affinity/cli/node_map.hpp"
#include "affinity/cli/sandbox_name.hpp"
#include "affinity/cli/watch.hpp"
#include "base/json/json.hpp"

namespace ka::cli {
namespace {

using Describe = std::string (*)(const boost::json::value&);
using Answer = base::Result<boost::json::object>;

base::Result<boost::json::value> show(const Answer& answer, Describe describe, Output& output) {
  if (!answer) return unexpected(answer.error());
  boost::json::value document(*answer);
  output.show(document, [&] { return describe(document); });
  return document;
}

Exit show_once(const Answer& answer, Describe describe, Output& output) {
  const auto shown = show(answer, describe, output);
  return shown ? Exit::kDone : output.fail(shown.error());
}

/// About a sandbox, by any of its names.
Answer get_about(const Daemon& daemon, const std::string& target, const std::string& sandbox) {
  const auto id = find_sandbox(daemon, sandbox);
  if (!id) return unexpected(id.error());
  return daemon.get(target + encode(*id));
}

Answer get_status(const StatusOptions& options) {
  const Daemon daemon(options.socket);
  if (options.sandbox.empty()) return daemon.get("/v1/sandboxes");
  return get_about(daemon, "/v1/sandboxes/", options.sandbox);
}

std::size_t count_lines(const std::string& text) {
  return static_cast<std::size_t>(std::ranges::count(text, '\n'));
}

/// Thread by thread where that fits the screen, else a line for each sandbox. A watched page has
/// `used` rows less.
std::string status_text(const StatusOptions& options, const boost::json::value& answer,
                        const Screen& screen, std::size_t used) {
  const std::string legend = options.legend ? '\n' + describe_words() : "";
  if (!options.sandbox.empty()) return describe_sandbox(answer) + legend;
  std::string text = describe_sandboxes(answer) + legend;
  const bool fits = count_lines(fit(text, screen.columns)) + used < screen.rows;
  const bool one = array_of(answer, "sandboxes").size() < 2;
  if (!screen.is_terminal() || one || fits) return text;
  return describe_overview(answer, screen.columns, options.legend);
}

Exit watch_status(const StatusOptions& options, Output& output) {
  constexpr std::size_t kHeadline = 2;
  return watch(
      [&]() -> base::Result<std::string> {
        const auto answer = get_status(options);
        if (!answer) return unexpected(answer.error());
        return status_text(options, *answer, output.screen(), kHeadline);
      },
      output);
}

Exit write_picture(const MapOptions& options, const boost::json::value& node, Output& output) {
  const NodeMap map = read_map(node);
  const std::string picture = draw_svg(map);
  if (options.svg == "-") {
    output.print(picture);
    return Exit::kDone;
  }
  if (const auto done = write_output(options.svg, picture); !done) return output.fail(done.error());
  output.show({{"file", options.svg}, {"cpus", map.cpu_count()}}, [&] {
    return options.svg + ": a picture of " + counted(map.cpu_count(), "CPU") + '\n';
  });
  return Exit::kDone;
}

}  // namespace

Exit run(const StatusOptions& options, Output& output) {
  if (options.watch && output.json()) {
    return output.fail({base::ErrorCode::kInvalid, "--watch and --json do not go together", 0});
  }
  if (options.watch) return watch_status(options, output);
  const auto answer = get_status(options);
  if (!answer) return output.fail(answer.error());
  output.show(*answer, [&] { return status_text(options, *answer, output.screen(), 0); });
  return Exit::kDone;
}

Exit run(const ExplainOptions& options, Output& output) {
  return show_once(get_about(Daemon(options.socket), "/v1/explain/", options.sandbox),
                   describe_reasons, output);
}

Exit run(const MapOptions& options, Output& output) {
  const auto node = Daemon(options.socket).get("/v1/node");
  if (options.svg.empty() || !node) return show_once(node, describe_node, output);
  return write_picture(options, *node, output);
}

Exit run(const VerifyOptions& options, Output& output) {
  const auto report = show(Daemon(options.socket).post("/v1/verify"), describe_report, output);
  if (!report) return output.fail(report.error());
  const std::string verdict = verdict_of(*report);
  const bool good = verdict == "ok" || (verdict == "degraded" && !options.strict);
  return good ? Exit::kDone : Exit::kNo;
}

Exit run(const EventsOptions& options, Output& output) {
  const auto followed = Daemon(options.socket).follow_events([&output](std::string_view line) {
    if (output.json()) {
      output.print(std::string(line) + '\n');
    } else if (const auto event = base::parse_json(line, "event")) {
      output.print(describe_event(*event));
    }
    return true;
  });
  return followed ? Exit::kDone : output.fail(followed.error());
}

}  // namespace ka::cli
