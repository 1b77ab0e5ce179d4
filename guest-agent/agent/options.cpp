// SPDX-License-Identifier: Apache-2.0
#include "guest-agent/agent/options.hpp"

#include <limits>
#include <string_view>

#include "guest-agent/agent/files.hpp"

namespace ka::agent {
namespace {

bool is_option(std::string_view name) {
  return name == "--port" || name == "--serial-port" || name == "--socket" || name == "--proc" ||
         name == "--sys" || name == "--run";
}

void set_text(Options& options, std::string_view name, const char* value) {
  if (name == "--serial-port") options.serial_port = value;
  if (name == "--socket") options.socket = value;
  if (name == "--proc") options.roots.proc = value;
  if (name == "--sys") options.roots.sys = value;
  if (name == "--run") options.roots.run = value;
}

Expected<std::uint32_t, std::string> parse_port(const char* value) {
  const auto port = parse_number(value);
  if (!port || *port < 1 || *port > std::numeric_limits<std::uint32_t>::max())
    return unexpected("--port: \"" + std::string(value) + "\" is not a port");
  return static_cast<std::uint32_t>(*port);
}

}  // namespace

Expected<Options, std::string> parse(int argc, const char* const* argv) {
  Options options;
  for (int i = 1; i < argc; i += 2) {
    const std::string name = argv[i];
    if (!is_option(name)) return unexpected("unknown argument \"" + name + '"');
    if (i + 1 >= argc) return unexpected(name + " requires a value");
    set_text(options, name, argv[i + 1]);
    if (name != "--port") continue;
    const auto port = parse_port(argv[i + 1]);
    if (!port) return unexpected(port.error());
    options.port = *port;
  }
  return options;
}

}  // namespace ka::agent
