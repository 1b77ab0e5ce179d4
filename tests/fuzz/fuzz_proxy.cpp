// SPDX-License-Identifier: Apache-2.0
// What a shim prints at its start, what passes between it and containerd, and what containerd says
// of resources: whatever it is, an address is replaced by another and back, and nobody breaks on
// calls that are none.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "shim-ext/proxy/answer.hpp"
#include "shim-ext/proxy/observer.hpp"
#include "shim-ext/proxy/spec.hpp"
#include "tests/fuzz/require.hpp"

using namespace ka;

namespace {

void rename_there_and_back(std::string_view answer) {
  const auto own = proxy::address_in(answer);
  if (!own) return;
  const std::string other = "unix:///run/containerd/s/other";
  const std::string renamed = proxy::with_address(answer, other);
  tests::require(proxy::address_in(renamed) == other);
  tests::require(proxy::address_in(proxy::with_address(renamed, *own)) == own);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  rename_there_and_back(bytes);
  int on_request = 0, on_response = 0;
  proxy::Observer observer(
      {.on_request =
           [&](const proxy::Call& call) {
             tests::require(!call.container.empty());
             ++on_request;
             (void)proxy::updated({}, call.resources);
           },
       .on_response = [&](const proxy::Call&, const proxy::Response&) { ++on_response; }});
  observer.from_containerd(bytes);
  observer.from_shim(bytes);
  observer.digest();
  tests::require(on_response <= on_request);
  (void)proxy::updated({"0-1", "0", 1, 2}, bytes);
  return 0;
}
