// SPDX-License-Identifier: Apache-2.0
#include "guest-agent/agent/options.hpp"

#include <limits>
#include <string_view>

#include "guest-agent/agent/files.hpp"

namespace ka::agent {
namespace {

bool set(Options& options, std::string_view name, const char* value) {
  if (name == "--port") {
    const auto port = parse_number(value);
    if (!port || *port < 1 || *port > std::numeric_limits<std::uint32_t>::max()) return false;
    options.port = static_cast<std::uint32_t>(*port);
    return true;
  }
  if (name == "--serial-port") options.serial_port = value;
  if (name == "--socket") options.socket = value;
  if (name == "--proc") options.roots.proc = value;
  if (name == "--sys") options.roots.sys = value;
  if (name == "--run") options.roots.run = value;
  return name == "--serial-port" || name == "--socket" || name == "--proc" || name == "--sys" ||
         name == "--run";
}

}  // namespace

std::optional<Options> parse(int argc, const char* const* argv) {
  Options options;
  for (int i = 1; i < argc; i += 2) {
    if (i + 1 >= argc || !set(options, argv[i], argv[i + 1])) return std::nullopt;
  }
  return options;
}

}  // namespace ka::agent
