// SPDX-License-Identifier: Apache-2.0
#include "affinity/cli/kubectl/kubectl.hpp"

#include <sys/wait.h>

#include <cstdlib>
#include <string_view>
#include <utility>

#include "base/program.hpp"

namespace ka::cli::kubectl {
namespace {

constexpr std::size_t kMostOutput = std::size_t{64} << 20;
/// kubectl itself waits for ever, also for a node that is not there.
constexpr std::chrono::minutes kLimit{2};

std::vector<std::filesystem::path> search_path() {
  const char* path = std::getenv("PATH");
  std::vector<std::filesystem::path> directories;
  std::string_view rest = path == nullptr ? "/usr/local/bin:/usr/bin:/bin" : path;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find(':'), rest.size());
    if (end > 0) directories.emplace_back(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return directories;
}

int exit_of(int status) {
  constexpr int kSignalled = 128;
  return WIFEXITED(status) ? WEXITSTATUS(status) : kSignalled + WTERMSIG(status);
}

/// kubectl and the API server say why in the first line.
std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

}  // namespace

Kubectl::Kubectl(std::filesystem::path file, const PluginOptions& options)
    : file_(std::move(file)), begin_{"kubectl"}, readers_(options.reader_namespace) {
  if (!options.kubeconfig.empty()) begin_.push_back("--kubeconfig=" + options.kubeconfig);
  if (!options.context.empty()) begin_.push_back("--context=" + options.context);
}

base::Result<Kubectl> Kubectl::find(const PluginOptions& options) {
  auto file = base::find_program("kubectl", search_path());
  if (!file) return base::fail(base::ErrorCode::kUnavailable, "there is no kubectl in PATH");
  return Kubectl(*std::move(file), options);
}

std::vector<std::string> Kubectl::words_of(std::vector<std::string> words) const {
  words.insert(words.begin(), begin_.begin(), begin_.end());
  return words;
}

std::vector<std::string> Kubectl::exec_words(const Reader& reader,
                                             const std::vector<std::string>& command) const {
  std::vector<std::string> words = {"exec", "--namespace=" + readers_, "--container=reader",
                                    reader.pod, "--"};
  words.insert(words.end(), command.begin(), command.end());
  return words_of(std::move(words));
}

base::Result<std::string> Kubectl::get(std::vector<std::string> words) const {
  words.insert(words.begin(), "get");
  auto ended = base::run_program({.file = file_,
                                  .words = words_of(std::move(words)),
                                  .catches_errors = true,
                                  .most_output = kMostOutput,
                                  .wait_limit = base::WaitLimit::of(kLimit)});
  if (!ended) return unexpected(ended.error());
  if (exit_of(ended->status) == 0) return std::move(ended->output);
  return base::fail(base::ErrorCode::kUnavailable, "kubectl: " + first_line(ended->errors));
}

base::Result<Kubectl::Ended> Kubectl::exec(const Reader& reader,
                                           const std::vector<std::string>& command) const {
  auto ended = base::run_program({.file = file_,
                                  .words = exec_words(reader, command),
                                  .most_output = kMostOutput,
                                  .wait_limit = base::WaitLimit::of(kLimit)});
  if (!ended) return unexpected(ended.error());
  return Ended{exit_of(ended->status), std::move(ended->output)};
}

base::Result<std::string> Kubectl::exec_json(const Reader& reader,
                                             const std::vector<std::string>& command) const {
  auto ended = base::run_program({.file = file_,
                                  .words = exec_words(reader, command),
                                  .catches_errors = true,
                                  .most_output = kMostOutput,
                                  .wait_limit = base::WaitLimit::of(kLimit)});
  if (!ended) return unexpected(ended.error());
  // Of `verify`, 1 is an answer as well.
  if (ended->output.starts_with('{')) return std::move(ended->output);
  return base::fail(base::ErrorCode::kUnavailable, first_line(ended->errors));
}

}  // namespace ka::cli::kubectl
