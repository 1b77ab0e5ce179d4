// SPDX-License-Identifier: Apache-2.0
// A page that is refreshed until the user interrupts it.
#pragma once

#include <functional>
#include <string>

#include "affinity/cli/terminal/output.hpp"
#include "base/clock.hpp"
#include "base/result.hpp"

namespace ka::cli {

/// Shows what `page` gives every second. A first page that cannot be had ends it; later ones are
/// replaced by the reason. On a terminal each is painted over the last one, cut to its height;
/// elsewhere they follow one another.
Exit watch(const base::Clock& clock, const std::function<base::Result<std::string>()>& page,
           Output& output);

}  // namespace ka::cli
