// SPDX-License-Identifier: Apache-2.0
#include "vmm/clh/api_socket.hpp"

#include <sys/un.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/path.hpp"
#include "base/process.hpp"
#include "base/runtime_socket.hpp"
#include "base/text.hpp"

namespace ka::clh {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kProgram = "cloud-hypervisor";
constexpr std::string_view kOption = "--api-socket";
constexpr std::string_view kPath = "path=";

fs::path socket_of(const std::vector<std::string>& arguments) {
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    std::string_view value = arguments[i];
    if (!value.starts_with(kOption)) continue;
    value.remove_prefix(kOption.size());
    if (value.starts_with('=')) {
      value.remove_prefix(1);
    } else if (value.empty() && i + 1 < arguments.size()) {
      value = arguments[i + 1];
    }
    if (value.starts_with(kPath)) value.remove_prefix(kPath.size());
    return value;
  }
  return {};
}

bool is_cloud_hypervisor(const std::vector<std::string>& command_line) {
  if (command_line.empty()) return false;
  return base::base_name(command_line[0]).starts_with(kProgram);
}

bool accepts_requests(const fs::path& path) {
  std::error_code ignored;
  return path.is_absolute() && path.native().size() < sizeof(sockaddr_un::sun_path) &&
         base::is_printable(path.native(), base::kMaxPath) && fs::is_socket(path, ignored);
}

}  // namespace

std::optional<fs::path> find_socket(const vmm::Probe& probe) {
  if (!is_cloud_hypervisor(probe.command_line)) return std::nullopt;
  fs::path reported = socket_of(probe.command_line);
  if (!probe.by_operator) reported = base::runtime_socket(probe.run, reported).value_or(fs::path());
  for (const fs::path& path : {reported, probe.run / "vc/vm" / probe.sandbox / "clh-api.sock",
                               probe.run / "kata" / probe.sandbox / "ch-api.sock"}) {
    if (accepts_requests(path)) return path;
  }
  return std::nullopt;
}

}  // namespace ka::clh
