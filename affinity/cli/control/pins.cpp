// SPDX-License-Identifier: Apache-2.0
// vcpupin, emulatorpin, iothreadpin, vhostpin.
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>

#include "affinity/cli/client/daemon.hpp"
#include "affinity/cli/client/sandbox_name.hpp"
#include "affinity/cli/control/control.hpp"
#include "affinity/cli/control/outcome.hpp"
#include "affinity/cli/status/describe.hpp"

namespace ka::cli {
namespace {

namespace json = boost::json;

std::string sandbox_target(const PinOptions& options) {
  return "/v1/sandboxes/" + encode(options.sandbox);
}

std::string pin_target(const PinOptions& options) {
  const std::string role = sandbox_target(options) + "/pins/" + options.role;
  return options.thread.empty() ? role : role + '/' + encode(options.thread);
}

bool is_meant(const PinOptions& options, const json::value& thread) {
  if (text_of(thread, "role") != options.role) return false;
  if (options.thread.empty()) return true;
  const std::string name =
      options.role == "vcpu" ? std::to_string(number_of(thread, "vcpu")) : text_of(thread, "name");
  return name == options.thread;
}

/// The sandbox with those of its threads that are meant, and what was set by hand of that role.
json::value narrowed(const PinOptions& options, const json::object& sandbox) {
  const json::value whole(sandbox);
  json::array threads, overrides;
  for (const json::value& thread : array_of(whole, "threads")) {
    if (is_meant(options, thread)) threads.push_back(thread);
  }
  for (const json::value& given : array_of(whole, "overrides")) {
    if (text_of(given, "role") == options.role) overrides.push_back(given);
  }
  return json::object{{"id", text_of(whole, "id")},
                      {"threads", std::move(threads)},
                      {"overrides", std::move(overrides)},
                      {"vcpus", array_of(whole, "vcpus")}};
}

Exit show(const PinOptions& options, Output& output) {
  const auto sandbox = Daemon(options.socket).get(sandbox_target(options));
  if (!sandbox) return output.fail(sandbox.error());
  const json::value document = narrowed(options, *sandbox);
  if (array_of(document, "threads").empty() && !options.thread.empty()) {
    return output.fail(
        {base::ErrorCode::kNotFound,
         "sandbox \"" + options.sandbox + "\" has no " + options.role + ' ' + options.thread, 0});
  }
  output.show(document, [&] {
    const std::string threads = describe_threads(document);
    return threads.empty() ? "no " + options.role + " threads\n" : threads;
  });
  return Exit::kDone;
}

}  // namespace

Exit run(const PinOptions& given, Output& output) {
  const Daemon daemon(given.socket);
  const auto id = find_sandbox(daemon, given.sandbox);
  if (!id) return output.fail(id.error());
  PinOptions options = given;
  options.sandbox = *id;
  if (options.remove) return show_outcome(daemon.remove(pin_target(options)), output);
  if (options.cpus.empty()) return show(options, output);
  json::object body{{"cpus", options.cpus}};
  if (options.force) body["force"] = true;
  if (options.lasts_for > 0) body["for"] = options.lasts_for;
  return show_outcome(daemon.put(pin_target(options), body), output);
}

}  // namespace ka::cli
