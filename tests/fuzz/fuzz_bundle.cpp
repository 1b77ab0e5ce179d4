// SPDX-License-Identifier: Apache-2.0
// A bundle's config.json, as containerd writes it from what pods say of themselves.
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/json/json.hpp"
#include "base/text.hpp"
#include "shim-ext/kata/bundle.hpp"
#include "shim-ext/proxy/spec.hpp"
#include "tests/fuzz/require.hpp"
#include "tests/temp_dir.hpp"

using namespace ka;

namespace {

void check(const proxy::Spec& spec) {
  tests::require(base::is_id(spec.sandbox));
  for (const std::string& text : {spec.name, spec.pod_uid, spec.handler}) {
    tests::require(base::is_printable(text, base::kMaxPath));
  }
  tests::require(base::is_printable(spec.pod_name, 2 * base::kMaxPath + 1));
  tests::require(base::is_printable(spec.resources.cpus, base::kMaxSetText));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const tests::TempDir directory;
  directory.write("config.json", {reinterpret_cast<const char*>(data), size});
  if (const auto spec = proxy::read_spec(directory.path(), "c1")) check(*spec);
  kata::Bundle bundle{.directory = directory.path(), .id = "c1"};
  (void)kata::read_bundle(bundle);
  return 0;
}
