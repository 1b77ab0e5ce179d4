// SPDX-License-Identifier: Apache-2.0
// The messages of agent.proto as values, to bytes and back. Reading is strict: a message beyond the
// limits, with numbers out of range, text that is not plain or lists that are no lists is refused
// as a whole. Fields that are not known are skipped, for the sake of later versions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "guest-agent/protocol/limits.hpp"
#include "policy/facts/guest.hpp"

namespace ka::guest {

struct Hello {
  std::uint32_t version = kVersion;
  std::uint32_t oldest = kOldestVersion;
  std::string program;

  bool operator==(const Hello&) const = default;
};

/// A container was made, or is gone.
struct ContainerNews {
  std::string id;
  bool stopped = false;

  bool operator==(const ContainerNews&) const = default;
};

/// The newest version that both support; absent if there is none.
std::optional<std::uint32_t> common_version(const Hello& ours, const Hello& theirs);

std::string encode(const Hello& hello);
std::string encode(const policy::GuestSpec& spec);
std::string encode(const policy::GuestReport& report);
std::string encode_watch(std::uint64_t generation);
std::string encode(const ContainerNews& news);

std::optional<Hello> decode_hello(std::string_view bytes);
std::optional<policy::GuestSpec> decode_spec(std::string_view bytes);
std::optional<policy::GuestReport> decode_report(std::string_view bytes);
std::optional<std::uint64_t> decode_watch(std::string_view bytes);
std::optional<ContainerNews> decode_container(std::string_view bytes);

}  // namespace ka::guest
