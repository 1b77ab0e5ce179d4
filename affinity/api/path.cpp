// SPDX-License-Identifier: Apache-2.0
#include "affinity/api/path.hpp"

#include <charconv>

#include "base/text.hpp"

namespace ka::api {
namespace {

using base::ErrorCode;
using base::fail;

base::Result<std::string> decode(std::string_view text) {
  std::string decoded;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded += text[i];
      continue;
    }
    const std::string_view digits = text.substr(i + 1, 2);
    unsigned char byte = 0;
    const auto [end, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), byte, 16);
    if (digits.size() != 2 || error != std::errc{} || end != digits.data() + 2) {
      return fail(ErrorCode::kInvalid, "malformed percent-encoding in the target");
    }
    decoded += static_cast<char>(byte);
    i += 2;
  }
  return decoded;
}

/// Calls `read` for each part between separators.
template <typename Read>
base::Result<void> split(std::string_view text, char separator, const Read& read) {
  for (;;) {
    const auto end = text.find(separator);
    if (auto done = read(text.substr(0, end)); !done) return done;
    if (end == std::string_view::npos) return {};
    text.remove_prefix(end + 1);
  }
}

base::Result<void> read_part(std::string_view part, Path& path) {
  auto decoded = decode(part);
  if (!decoded) return unexpected(decoded.error());
  if (decoded->empty()) return fail(ErrorCode::kInvalid, "empty path segment in the target");
  path.parts.push_back(std::move(*decoded));
  return {};
}

base::Result<void> read_query(std::string_view field, Path& path) {
  const auto equals = field.find('=');
  const auto name = decode(field.substr(0, equals));
  if (!name) return unexpected(name.error());
  const auto value =
      decode(equals == std::string_view::npos ? std::string_view{} : field.substr(equals + 1));
  if (!value) return unexpected(value.error());
  if (!path.query.emplace(*name, *value).second) {
    return fail(ErrorCode::kInvalid, "duplicate query parameter \"" + base::printable(*name) + '"');
  }
  return {};
}

}  // namespace

base::Result<Path> parse_target(std::string_view target) {
  if (!target.starts_with('/')) {
    return fail(ErrorCode::kInvalid, "the target must begin with a slash");
  }
  Path path;
  const auto question = target.find('?');
  const auto parts = split(target.substr(1, question - 1), '/',
                           [&](std::string_view part) { return read_part(part, path); });
  if (!parts) return unexpected(parts.error());
  if (question == std::string_view::npos) return path;
  const auto query = split(target.substr(question + 1), '&',
                           [&](std::string_view field) { return read_query(field, path); });
  if (!query) return unexpected(query.error());
  return path;
}

}  // namespace ka::api
