// SPDX-License-Identifier: Apache-2.0
#include "affinity/cli/map/map.hpp"

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>

#include "affinity/cli/client/daemon.hpp"
#include "affinity/cli/map/map_svg.hpp"
#include "affinity/cli/map/map_text.hpp"
#include "affinity/cli/map/node_map.hpp"
#include "affinity/messages/terms.hpp"

namespace ka::cli {
namespace {

Exit write_picture(const MapOptions& options, const boost::json::value& node, Output& output) {
  const NodeMap map = read_map(node);
  const std::string picture = draw_svg(map);
  if (options.svg == "-") {
    output.print(picture);
    return Exit::kDone;
  }
  if (const auto done = write_output(options.svg, picture); !done) return output.fail(done.error());
  output.show({{"file", options.svg}, {"cpus", map.cpu_count()}}, [&] {
    return options.svg + ": a picture of " + messages::counted(map.cpu_count(), "CPU") + '\n';
  });
  return Exit::kDone;
}

}  // namespace

Exit run(const MapOptions& options, Output& output) {
  const auto node = Daemon(options.socket).get("/v1/node");
  if (!node) return output.fail(node.error());
  if (!options.svg.empty()) return write_picture(options, *node, output);
  output.show(*node, [&node] { return describe_node(*node); });
  return Exit::kDone;
}

}  // namespace ka::cli
