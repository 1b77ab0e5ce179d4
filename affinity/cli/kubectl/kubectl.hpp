// SPDX-License-Identifier: Apache-2.0
// Runs kubectl: the cluster as its own configuration, credentials and permissions reach it.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "affinity/cli/kubectl/plugin_options.hpp"
#include "affinity/cli/kubectl/readers.hpp"
#include "base/result.hpp"

namespace ka::cli::kubectl {

class Kubectl {
 public:
  /// kUnavailable: there is no kubectl in PATH.
  static base::Result<Kubectl> find(const PluginOptions& options);

  struct Ended {
    int exit = 0;
    std::string output;
  };

  /// What it prints; the error is what it says when it fails.
  base::Result<std::string> get(std::vector<std::string> words) const;

  /// Runs a command in a reader, and returns what it printed and its exit status. Its standard
  /// error is ours.
  base::Result<Ended> exec(const Reader& reader, const std::vector<std::string>& command) const;
  /// The same for a command that prints JSON; the error is the first line of what it says when it
  /// fails.
  base::Result<std::string> exec_json(const Reader& reader,
                                      const std::vector<std::string>& command) const;

 private:
  Kubectl(std::filesystem::path file, const PluginOptions& options);

  std::vector<std::string> words_of(std::vector<std::string> words) const;
  std::vector<std::string> exec_words(const Reader& reader,
                                      const std::vector<std::string>& command) const;

  std::filesystem::path file_;
  std::vector<std::string> begin_;  ///< its name, and options of every call
  std::string readers_;             ///< their namespace
};

}  // namespace ka::cli::kubectl
