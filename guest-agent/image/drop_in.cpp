// SPDX-License-Identifier: Apache-2.0
#include "guest-agent/image/drop_in.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <string_view>

#include "guest-agent/image/contents.hpp"

namespace ka::image {
namespace {

using base::ErrorCode;

constexpr std::string_view kFirstLine = "# Written by kata-affinityctl guest-image.\n";

/// A basic string of TOML.
std::string toml_string(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

/// Where no systemd starts the agent, it is the first program itself, and starts the one that would
/// have been.
std::string first_program(Report::Kind kind) {
  if (kind == Report::Kind::kInitrd) return std::string("rdinit=") + kAgentPath;
  if (kind == Report::Kind::kPlainDisk) return std::string("init=") + kAgentPath;
  return {};
}

/// `params` without words of an earlier drop-in of ours, and with `word`.
std::string with_word(std::string_view params, const std::string& word) {
  std::string kept;
  while (!params.empty()) {
    const std::string_view one = params.substr(0, params.find(' '));
    params.remove_prefix(std::min(one.size() + 1, params.size()));
    if (!one.empty() && !one.ends_with(std::string("init=") + kAgentPath)) {
      kept.append(one).append(" ");
    }
  }
  return kept + word;
}

std::string hooks_of(bool extension) {
  return extension ? std::string("/run/kata-extensions/") + kExtensionName + "/hooks" : kHookPath;
}

std::string image_lines(const KataSettings& kata, const Use& use) {
  const bool initrd = use.kind == Report::Kind::kInitrd;
  // Kata wants one of them only.
  std::string text = fmt::format("image = {}\ninitrd = {}\n", toml_string(initrd ? "" : use.path),
                                 toml_string(initrd ? use.path : ""));
  const std::string word = first_program(use.kind);
  if (!word.empty()) {
    text += fmt::format("kernel_params = {}\n", toml_string(with_word(kata.kernel_params, word)));
  }
  return text;
}

std::string extension_lines(const KataSettings& kata, const Use& use) {
  return fmt::format(
      "\n# The Rust runtime adds this to the images of other files; with the Go runtime it takes "
      "their place.\n[[hypervisor.{}.guest_extension_images]]\nname = \"{}\"\npath = {}\n"
      "verity_params = {}\n",
      kata.hypervisor, kExtensionName, toml_string(use.path), toml_string(use.verity_params));
}

}  // namespace

bool is_drop_in(const std::string& text) { return text.starts_with(kFirstLine); }

base::Result<std::string> drop_in(const KataSettings& kata, const Use& use) {
  const bool extension = use.kind == Report::Kind::kExtension;
  if (!extension && !kata.kernel_verity_params.empty()) {
    return base::fail(ErrorCode::kConflict,
                      "kernel_verity_params is set: the guest checks its image with dm-verity and "
                      "would not start with another one; use kata-affinityctl guest-image "
                      "extension");
  }
  const std::string& has = kata.guest_hook_path;
  if (!has.empty() && has != hooks_of(true) && has != hooks_of(false)) {
    return base::fail(ErrorCode::kConflict,
                      "guest_hook_path is \"" + has + "\" already, and Kata supports only one");
  }
  std::string text(kFirstLine);
  text += fmt::format("[hypervisor.{}]\nguest_hook_path = {}\n", kata.hypervisor,
                      toml_string(hooks_of(extension)));
  return text + (extension ? extension_lines(kata, use) : image_lines(kata, use));
}

}  // namespace ka::image
