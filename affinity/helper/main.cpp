// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <exception>

#include "affinity/helper/helper.hpp"
#include "affinity/helper/options.hpp"
#include "base/signals.hpp"
#include "base/usage/last_words.hpp"

namespace {

constexpr int kFailed = 1, kWrongInput = 2;

int run(int argc, char** argv) {
  const auto options = ka::helper::parse(argc, argv);
  if (!options) return options.error();
  ka::base::ignore_write_signals();
  const auto ended = ka::helper::run(*options);
  if (ended) return 0;
  std::fprintf(stderr, "kata-affinity-helper: %s\n", ended.error().message.c_str());
  return ended.error().code == ka::base::ErrorCode::kInvalid ? kWrongInput : kFailed;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    ka::usage::print_last_words("kata-affinity-helper", error);
    return kFailed;
  }
}
