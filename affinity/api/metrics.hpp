// SPDX-License-Identifier: Apache-2.0
// Numbers for Prometheus, taken from the engine at the moment somebody asks.
#pragma once

#include <string>

namespace ka::board {
class Board;
}
namespace ka::engine {
class Engine;
}

namespace ka::api {

/// The text format (version 0.0.4).
std::string metrics_text(engine::Engine& engine, const board::Board& board);

inline constexpr const char* kMetricsType = "text/plain; version=0.0.4; charset=utf-8";

}  // namespace ka::api
