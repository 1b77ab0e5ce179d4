// SPDX-License-Identifier: Apache-2.0
#include "shim-ext/proxy/settings.hpp"

#include <cstdlib>
#include <filesystem>
#include <optional>

#include "affinity/config/config.hpp"
#include "affinity/config/keys.hpp"

namespace ka::proxy {
namespace {

constexpr const char* kApiSocket = "/run/kata-affinity/api.sock";

std::optional<std::string> environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr || *value == '\0' ? std::nullopt : std::optional<std::string>(value);
}

}  // namespace

Settings read_settings() {
  Settings settings;
  settings.real_shim = config::find_key("real_shim")->fallback;
  settings.kubelet_state = config::find_key("kubelet_state")->fallback;
  settings.api_socket = environment("KATA_AFFINITY_SOCKET").value_or(kApiSocket);
  const auto config = config::load_config(environment("KATA_AFFINITY_CONFIG"));
  if (!config) {
    settings.complaint = "the defaults hold: " + config.error().message;
    return settings;
  }
  settings.real_shim = config->real_shim;
  settings.kubelet_state = config->kubelet_state;
  return settings;
}

}  // namespace ka::proxy
