// SPDX-License-Identifier: Apache-2.0
#include "affinity/shim/settings.hpp"

#include <cstdlib>
#include <filesystem>
#include <optional>

#include "affinity/config/config.hpp"

namespace ka::shim {
namespace {

constexpr const char* kApiSocket = "/run/kata-affinity/api.sock";

std::optional<std::string> environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr || *value == '\0' ? std::nullopt : std::optional<std::string>(value);
}

}  // namespace

proxy::Settings read_settings() {
  proxy::Settings settings;
  settings.api_socket = environment("KATA_AFFINITY_SOCKET").value_or(kApiSocket);
  const auto loaded = config::load_config(environment("KATA_AFFINITY_CONFIG"));
  if (!loaded) settings.input_error = "using defaults: " + loaded.error().message;
  const config::Config config = loaded ? *loaded : config::default_config();
  settings.real_shim = config.real_shim;
  settings.kubelet_state = config.kubelet_state;
  return settings;
}

}  // namespace ka::shim
