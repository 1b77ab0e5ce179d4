// SPDX-License-Identifier: Apache-2.0
#include "affinity/cli/status/status.hpp"

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>

#include "affinity/cli/client/daemon.hpp"
#include "affinity/cli/client/sandbox_name.hpp"
#include "affinity/cli/status/describe.hpp"
#include "affinity/cli/terminal/watch.hpp"
#include "base/clock.hpp"
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
  const std::string legend = options.legend ? '\n' + describe_legend() : "";
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
      base::Clock(),
      [&]() -> base::Result<std::string> {
        const auto answer = get_status(options);
        if (!answer) return unexpected(answer.error());
        return status_text(options, *answer, output.screen(), kHeadline);
      },
      output);
}

/// All sandboxes, or the containers of one.
base::Result<std::vector<Named>> names_known(const NamesOptions& options) {
  const Daemon daemon(options.socket);
  const auto sandbox = find_sandbox(daemon, options.sandbox);
  if (!sandbox) return unexpected(sandbox.error());
  const auto found =
      daemon.get(sandbox->empty() ? "/v1/sandboxes" : "/v1/sandboxes/" + encode(*sandbox));
  if (!found) return unexpected(found.error());
  return sandbox->empty() ? sandboxes_of(*found) : containers_of(*found);
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
  if (options.cpu) {
    const Answer answer =
        Daemon(options.socket).get("/v1/explain/cpu/" + std::to_string(*options.cpu));
    return show_once(answer, describe_cpu, output);
  }
  return show_once(get_about(Daemon(options.socket), "/v1/explain/", options.sandbox),
                   describe_reasons, output);
}

Exit run(const VerifyOptions& options, Output& output) {
  const auto report = show(Daemon(options.socket).post("/v1/verify"), describe_report, output);
  if (!report) return output.fail(report.error());
  const std::string verdict = verdict_of(*report);
  const bool good = verdict == "ok" || (verdict == "degraded" && !options.strict);
  return good ? Exit::kDone : Exit::kNo;
}

Exit run(const EventsOptions& options, Output& output) {
  const auto streamed = Daemon(options.socket).stream_events([&output](std::string_view line) {
    if (output.json()) {
      output.print(std::string(line) + '\n');
    } else if (const auto event = base::parse_json(line, "event")) {
      output.print(describe_event(*event));
    }
    return true;
  });
  return streamed ? Exit::kDone : output.fail(streamed.error());
}

Exit run(const NamesOptions& options, Output& output) {
  const auto known = names_known(options);
  if (!known) return output.fail(known.error());
  boost::json::array all;
  std::string lines;
  for (const std::string& name : unambiguous(*known)) {
    all.emplace_back(name);
    lines += name + '\n';
  }
  output.show(boost::json::object{{"names", std::move(all)}}, [&lines] { return lines; });
  return Exit::kDone;
}

}  // namespace ka::cli
