// SPDX-License-Identifier: Apache-2.0
#include "policy/allocate/preferences.hpp"

#include "tests/catch.hpp"

using namespace ka::policy;
using namespace ka::policy::allocate;

namespace {

std::string text(const ka::Expected<CpuPreferences, std::string>& preferences) {
  if (!preferences) return preferences.error();
  const char* names[] = {"any", "fast", "efficient"};
  return std::string(names[static_cast<int>(preferences->cpu_class)]) +
         (preferences->prefer_isolated ? " isolated" : "");
}

}  // namespace

TEST_CASE("a pod's annotation applies to its containers, a container's own to that one") {
  const Annotations pod{{"kata-affinity.io/cpu-class", "efficient"},
                        {"kata-affinity.io/cpu-class.app", "fast"},
                        {"kata-affinity.io/prefer-isolated", "true"},
                        {"kata-affinity.io/prefer-isolated.log", "false"},
                        {"kata-affinity.io/housekeeping", "isolate"},
                        {"example.org/cpu-class", "slow"}};
  CHECK(text(read_preferences(pod, "app")) == "fast isolated");
  CHECK(text(read_preferences(pod, "log")) == "efficient");
  CHECK(text(read_preferences({}, "app")) == "any");
}

TEST_CASE("an invalid annotation is named") {
  CHECK(text(read_preferences({{"kata-affinity.io/cpu-class.app", "quick"}}, "app")) ==
        "annotation kata-affinity.io/cpu-class.app: \"quick\" is not one of any, fast, efficient");
  CHECK(text(read_preferences({{"kata-affinity.io/cpu-class.app", "quick"}}, "log")) == "any");
  CHECK(text(read_preferences({{"kata-affinity.io/prefer-isolated", "yes"}}, "app")) ==
        "annotation kata-affinity.io/prefer-isolated: \"yes\" is not one of true, false");
}
