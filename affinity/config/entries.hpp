// SPDX-License-Identifier: Apache-2.0
// A file's [affinity] table, before validation: every value by its path, with the
// place where it was found.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/result.hpp"

namespace ka::config {

struct Location {
  std::string file;
  unsigned line = 0;
  unsigned column = 0;
};

/// kInvalid: "<file>:<line>:<column>: <what>".
base::Error error_at(const Location& where, const std::string& what);

/// A value of a type that no key uses, by its name in messages ("a date or time").
struct Unfit {
  std::string what;
  bool is_empty_table = false;
};

using Value =
    std::variant<bool, std::int64_t, double, std::string, std::vector<std::string>, Unfit>;

/// "a string", "true or false", ...
std::string type_name(const Value& value);

struct Entry {
  Value value;
  Location key_at;
  Location value_at;
};

/// By path below [affinity]: {"vhost"}, {"handler", "kata-qemu", "vhost"}.
using Entries = std::map<std::vector<std::string>, Entry>;

/// Parses the text of a TOML file. Nothing where it has no [affinity]; an error with its place
/// where it is no TOML, `affinity` is no table, or a name at the top is nearly one of ours. `file`
/// is the name for errors.
base::Result<std::optional<Entries>> parse_toml(const std::string& text, const std::string& file);

/// Every value of a TOML file, of any table: {"plugins", "io.containerd.nri.v1.nri",
/// "disable"}.
base::Result<Entries> parse_whole(const std::string& text, const std::string& file);

}  // namespace ka::config
