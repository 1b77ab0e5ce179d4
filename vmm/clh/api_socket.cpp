// SPDX-License-Identifier: Apache-2.0
#include "vmm/clh/api_socket.hpp"

#include <sys/un.h>

#include <string_view>

#include "base/process.hpp"
#include "base/runtime_socket.hpp"
#include "base/text.hpp"

namespace ka::clh {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kProgram = "cloud-hypervisor";
constexpr std::string_view kOption = "--api-socket";
constexpr std::string_view kPath = "path=";

fs::path socket_of(const Arguments& arguments) {
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

bool can_be_asked(const fs::path& path) {
  std::error_code ignored;
  return path.is_absolute() && path.native().size() < sizeof(sockaddr_un::sun_path) &&
         base::is_printable(path.native(), base::kMaxPath) && fs::is_socket(path, ignored);
}

}  // namespace

bool is_cloud_hypervisor(const Arguments& command_line) {
  return !command_line.empty() &&
         fs::path(command_line[0]).filename().native().starts_with(kProgram);
}

std::optional<fs::path> find_api_socket(const Arguments& command_line, Origin origin,
                                        const fs::path& run, const std::string& sandbox) {
  fs::path told = socket_of(command_line);
  if (origin == Origin::kRuntime) told = base::runtime_socket(run, told).value_or(fs::path());
  for (const fs::path& path :
       {told, run / "vc/vm" / sandbox / "clh-api.sock", run / "kata" / sandbox / "ch-api.sock"}) {
    if (can_be_asked(path)) return path;
  }
  return std::nullopt;
}

}  // namespace ka::clh
