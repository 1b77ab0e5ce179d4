// SPDX-License-Identifier: Apache-2.0
// What a key of [affinity] is: the columns of the table in keys.hpp.
#pragma once

#include <chrono>
#include <filesystem>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "policy/managed/rules.hpp"
#include "policy/plan/settings.hpp"

namespace ka::config {

struct Config;

enum class Type {
  kFlag,          ///< true or false
  kChoice,        ///< one of `allowed`
  kHousekeeping,  ///< a word of `allowed`, or a cpuset; "" as default: as `housekeeping`
  kPath,          ///< an absolute path
  kProgram,       ///< a program's name without a slash, or an absolute path
  kPathOrNone,    ///< an absolute path, or empty
  kAddress,       ///< "ADDRESS:PORT", numeric; "" for none
  kSeconds,       ///< a whole number, 1 to 86400
  kUri,           ///< a libvirt URI of this machine, or empty
  kIds,           ///< an array of ids of sandboxes
  kNames,         ///< an array of what a single pod may set by an annotation
  kCpus,          ///< a cpuset, or empty
  kCount,         ///< a whole number, 1 or more
  kPriority,      ///< of a real-time thread: a whole number, 1 to 49
  kClass,         ///< the name of a class that has l3, l2 or mba, or empty
  kUser,          ///< a user id; 0: none
  kWords,         ///< an array of words of `allowed`
  kNamespaces,    ///< an array of Kubernetes namespaces
};

enum class Reload {
  kApplied,    ///< a changed value is followed at once
  kNextStart,  ///< by the next start of the daemon
};

using policy::plan::Settings;
/// Sets what a valid value means; a flag is "true" or "false".
using SetConfig = void (*)(Config&, const std::string&);
using SetSettings = void (*)(Settings&, const std::string&);
/// The words of an array.
using SetSettingsWords = void (*)(Settings&, const std::vector<std::string>&);
using SetWords = void (*)(Config&, const std::vector<std::string>&);
using policy::managed::Rules;
/// Words of an array; of a value that is none, the one word that it is.
using SetRules = void (*)(Rules&, const std::vector<std::string>&);
/// Where a value goes. Only what goes to the settings of plans can differ between handlers.
using Target = std::variant<bool Config::*, std::string Config::*, std::filesystem::path Config::*,
                            std::chrono::seconds Config::*, std::vector<std::string> Config::*,
                            SetConfig, SetSettings, SetSettingsWords, SetWords, SetRules>;

struct Key {
  std::string_view name;  ///< "managed.KEY" stands in [affinity.managed]
  Type type;
  std::string_view fallback;  ///< the default
  std::string_view allowed;   ///< of a choice: the values, separated by blanks
  Reload reload;
  Target target;
  std::string_view doc;  ///< one sentence

  /// It is allowed in [affinity.handler.NAME].
  constexpr bool per_sandbox() const {
    return std::holds_alternative<SetSettings>(target) ||
           std::holds_alternative<SetSettingsWords>(target);
  }
};

}  // namespace ka::config
