// SPDX-License-Identifier: Apache-2.0
#include "affinity/cluster/account.hpp"

#include <algorithm>
#include <cctype>
#include <utility>

#include "base/files.hpp"
#include "base/newline.hpp"

namespace ka::cluster {
namespace {

constexpr std::size_t kMaxToken = 16u << 10;

/// As RFC 6750 has it: anything else could end the field of the request in which it is sent.
bool may_be_in_token(char letter) {
  return std::isalnum(static_cast<unsigned char>(letter)) != 0 ||
         std::string_view("-._~+/=").find(letter) != std::string_view::npos;
}

}  // namespace

base::Result<std::string> Account::token() const {
  const std::filesystem::path file = directory_ / "token";
  auto text = base::read_regular_file(file, kMaxToken);
  if (!text) return text;
  text = base::without_newline(*std::move(text));
  if (!text->empty() && std::ranges::all_of(*text, may_be_in_token)) return text;
  return base::fail(base::ErrorCode::kInvalid, file.string() + ": not a bearer token");
}

}  // namespace ka::cluster
