// SPDX-License-Identifier: Apache-2.0
// What the reporter reads: lists and watches of an API server, and responses of the daemon. The
// first byte says which; the rest is split into lines.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "affinity/cluster/view/node.hpp"
#include "affinity/cluster/view/object_name.hpp"
#include "affinity/cluster/view/pods.hpp"
#include "base/split.hpp"
#include "base/text.hpp"
#include "tests/fuzz/require.hpp"

using namespace ka;

namespace {

/// Names become parts of paths.
void check(const cluster::Pods& pods) {
  for (const auto& [uid, pod] : pods.all()) {
    tests::require(uid == pod.uid && !uid.empty());
    tests::require(cluster::is_object_name(pod.name) && base::is_id(pod.name_space));
  }
}

void read_pods(std::string_view text) {
  cluster::Pods pods;
  for (const std::string_view line : base::split(text, '\n')) {
    if (!pods.replace(line)) (void)pods.apply(line);
    check(pods);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view rest(reinterpret_cast<const char*>(data + 1), size - 1);
  if (data[0] % 2 == 0) {
    read_pods(rest);
    return 0;
  }
  (void)cluster::read_sandboxes(rest);
  (void)cluster::read_drifts(rest);
  const std::size_t end = rest.find('\n');
  const bool is_both = end != std::string_view::npos;
  (void)cluster::read_node(rest.substr(0, end), is_both ? rest.substr(end + 1) : rest);
  return 0;
}
