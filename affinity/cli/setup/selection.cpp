// SPDX-License-Identifier: Apache-2.0
#include "affinity/cli/setup/selection.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace ka::cli {
namespace {

namespace fs = std::filesystem;
using base::ErrorCode;
using base::Result;
using config::Handler;

std::vector<std::string> names_of(const std::vector<Handler>& handlers) {
  std::vector<std::string> names;
  for (const Handler& handler : handlers) names.push_back(handler.name);
  return names;
}

std::vector<Handler> without_proxies(std::vector<Handler> handlers) {
  std::erase_if(handlers, [](const Handler& handler) { return handler.is_proxy(); });
  return handlers;
}

base::Error no_handler(const std::string& name, const std::vector<Handler>& handlers) {
  return {ErrorCode::kInvalid,
          handlers.empty()
              ? "--handler " + name + ": no runtime handler of containerd or CRI-O starts Kata"
              : fmt::format("--handler {}: no such runtime handler starts Kata; there are: {}",
                            name, fmt::join(names_of(handlers), ", ")),
          0};
}

bool serves(const Installation& installation, const std::string& handler) {
  return std::ranges::count(installation.handlers, handler) > 0;
}

Result<Handler> find_handler(const std::vector<Handler>& handlers, const std::string& name) {
  const auto found = std::ranges::find(handlers, name, &Handler::name);
  if (found == handlers.end()) return unexpected(no_handler(name, handlers));
  return *found;
}

/// Each name is a handler whose configuration is there.
Result<void> check_names(const SetupOptions& options, const std::vector<Installation>& all) {
  base::Trouble ignored;
  const auto handlers = config::read_handlers(options.root, ignored);
  for (const std::string& name : options.handlers) {
    const auto handler = find_handler(handlers, name);
    if (!handler) return unexpected(handler.error());
    if (std::ranges::any_of(all, [&](const auto& one) { return serves(one, name); })) continue;
    return base::fail(ErrorCode::kInvalid, "--handler " + name + ": its configuration " +
                                               handler->config.native() + " does not exist");
  }
  return {};
}

}  // namespace

Result<std::vector<Installation>> all_installations(const SetupOptions& options) {
  std::vector<Installation> all = find_installations(options.root);
  for (const std::string& name : options.kata_configs) {
    std::error_code wrong;
    const fs::path real = fs::canonical(name, wrong);
    if (wrong) return base::fail_errno(wrong.value(), name);
    if (std::ranges::find(all, real, &Installation::config) == all.end()) all.push_back({real, {}});
  }
  return all;
}

Result<std::vector<Installation>> chosen_installations(const SetupOptions& options) {
  auto all = all_installations(options);
  if (!all) return all;
  if (all->empty()) {
    return base::fail(ErrorCode::kNotFound,
                      "no Kata configuration in the default locations: install Kata Containers; if "
                      "its configuration is elsewhere, link it to "
                      "/etc/kata-containers/configuration.toml");
  }
  if (options.handlers.empty()) return all;
  if (const auto good = check_names(options, *all); !good) return unexpected(good.error());
  std::erase_if(*all, [&options](const Installation& one) {
    return std::ranges::none_of(options.handlers,
                                [&one](const std::string& name) { return serves(one, name); });
  });
  return all;
}

Result<Handler> handler_behind_proxy(const config::Containerd& containerd,
                                     const SetupOptions& options) {
  const auto handlers = without_proxies(containerd.handlers);
  if (options.handlers.size() == 1) return find_handler(handlers, options.handlers.front());
  if (handlers.empty()) return Handler{"kata", "containerd-shim-kata-v2", {}, {}};
  if (handlers.size() == 1) return handlers.front();
  return base::fail(
      ErrorCode::kInvalid,
      fmt::format("--proxy needs one --handler: the proxy starts the shim of one of {}",
                  fmt::join(names_of(handlers), ", ")));
}

}  // namespace ka::cli
