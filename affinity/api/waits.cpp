// SPDX-License-Identifier: Apache-2.0
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <string>
#include <utility>

#include "affinity/api/encode.hpp"
#include "affinity/host/run_counters.hpp"
#include "affinity/line/node.hpp"

namespace ka::api {
namespace {

namespace json = boost::json;

void add_threads(const line::Node& node, const std::string& id, json::array& threads) {
  const auto view = node.view(id);
  if (!view) return;
  for (const line::ThreadView& thread : view->threads) {
    const policy::ThreadKey& key = thread.facts.key;
    const auto counters = host::thread_counters(node.roots.proc, key);
    if (!counters) continue;
    threads.push_back(
        {{"sandbox", id}, {"pid", key.pid}, {"tid", key.tid}, {"nanoseconds", counters->waited}});
  }
}

}  // namespace

json::object waits_to_json(const line::Node& node) {
  json::array threads;
  for (const std::string& id : node.sandbox_ids()) add_threads(node, id, threads);
  return {{"threads", std::move(threads)}};
}

}  // namespace ka::api
