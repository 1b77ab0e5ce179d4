// SPDX-License-Identifier: Apache-2.0
#include "affinity/cli/topology/topology.hpp"

#include "affinity/host/topology.hpp"

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>

#include "affinity/cli/topology/picture.hpp"
#include "affinity/documents/topology.hpp"

namespace ka::cli {

Exit run(const TopologyOptions& options, Output& output) {
  const auto topology = host::load_topology(options.topology);
  if (!topology) return output.fail(topology.error());
  output.show(documents::to_json(*topology), [&topology] { return draw(*topology); });
  return Exit::kDone;
}

}  // namespace ka::cli
