// SPDX-License-Identifier: Apache-2.0
#include "base/boot_id.hpp"

#include <algorithm>

namespace ka::base {
namespace {

constexpr std::string_view kForm = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
constexpr std::string_view kDigits = "0123456789abcdef";

bool is_boot_id(std::string_view text) {
  return std::ranges::equal(text, kForm, [](char c, char form) {
    return form == 'x' ? kDigits.find(c) != std::string_view::npos : c == form;
  });
}

}  // namespace

Result<void> check_boot(std::string_view named, std::string_view present) {
  if (named == present) return {};
  if (is_boot_id(named)) return fail(ErrorCode::kGone, "of another boot");
  return fail(ErrorCode::kInvalid, "boot_id: names no boot");
}

}  // namespace ka::base
