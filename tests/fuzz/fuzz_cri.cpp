// SPDX-License-Identifier: Apache-2.0
// Responses of a container runtime, right or wrong.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/text.hpp"
#include "policy/facts/limits.hpp"
#include "shim-ext/cri/messages.hpp"
#include "tests/fuzz/require.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ka;
  const std::string_view message(reinterpret_cast<const char*>(data), size);
  if (const auto id = cri::parse_id(message)) tests::require(base::is_printable(*id));
  if (const auto pods = cri::parse_pods(message)) {
    tests::require(pods->size() <= policy::kMaxNodeContainers);
    for (const auto& pod : *pods) tests::require(!pod.id.empty() && base::is_printable(pod.uid));
  }
  if (const auto containers = cri::parse_containers(message)) {
    for (const auto& one : *containers) tests::require(base::is_printable(one.name));
  }
  if (const auto images = cri::parse_images(message)) {
    tests::require(
        std::ranges::all_of(*images, [](const auto& one) { return base::is_printable(one); }));
  }
  if (const auto version = cri::parse_version(message)) {
    tests::require(base::is_printable(version->runtime));
  }
  if (const auto resources = cri::parse_container_resources(message)) {
    tests::require(resources->cpus.size() <= policy::kMaxIds);
  }
  (void)cri::parse_ended(message);
  if (const auto settings = cri::parse_settings(message)) {
    tests::require(base::is_printable(settings->sandbox_image));
  }
  return 0;
}
