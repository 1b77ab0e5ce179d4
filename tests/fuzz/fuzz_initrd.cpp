// SPDX-License-Identifier: Apache-2.0
// Archives of an initramfs that anybody made, and a container's state as a hook is given it.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "guest-agent/agent/state_text.hpp"
#include "guest-agent/image/archive.hpp"
#include "guest-agent/image/contents.hpp"
#include "tests/fuzz/require.hpp"

using namespace ka;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  std::string_view rest = bytes;
  if (const auto members = image::read_archive(rest)) {
    tests::require(rest.size() < bytes.size());
    for (const image::Member& member : *members) {
      tests::require(member.data.size() <= size && member.name.size() <= size);
    }
  }
  (void)image::agent_version(bytes);
  if (const auto id = agent::id_in_state(bytes)) {
    tests::require(!id->empty() && id->find('/') == std::string::npos);
  }
  return 0;
}
