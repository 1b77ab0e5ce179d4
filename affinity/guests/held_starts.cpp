// SPDX-License-Identifier: Apache-2.0
#include "affinity/guests/held_starts.hpp"

#include <utility>

namespace ka::guests {

void HeldStarts::hold(const std::string& sandbox, const std::string& container,
                      std::function<void()> go_on, std::function<void()> late) {
  Start& start = starts_.emplace_back(io_, clock_);
  start.sandbox = sandbox;
  start.container = container;
  start.go_on = std::move(go_on);
  start.timer.in(kBudget, std::move(late));
}

void HeldStarts::release(const std::string& sandbox,
                         const std::function<bool(const std::string& container)>& must_wait) {
  std::list<Start> ready;
  for (auto at = starts_.begin(); at != starts_.end();) {
    const auto here = at++;
    if (here->sandbox != sandbox || must_wait(here->container)) continue;
    ready.splice(ready.end(), starts_, here);
  }
  for (const Start& start : ready) start.go_on();
}

}  // namespace ka::guests
