// SPDX-License-Identifier: Apache-2.0
#include "guest-agent/image/program.hpp"

#include <sys/wait.h>

#include <array>

#include "base/program.hpp"

namespace ka::image {
namespace {

using base::ErrorCode;
using base::Result;

// Kata's hosts have administrators' programs where an ordinary PATH may not look.
const std::array<std::filesystem::path, 4> kPlaces = {"/usr/sbin", "/usr/bin", "/usr/local/sbin",
                                                      "/usr/local/bin"};

/// Messages are compared: they are English, without colours.
std::vector<std::string> environment() {
  return {"LC_ALL=C", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"};
}

}  // namespace

std::string Ended::input_error() const {
  const std::size_t end = err.find_last_not_of('\n');
  if (end == std::string::npos) return "exit status " + std::to_string(status);
  const std::size_t begin = err.rfind('\n', end);
  const std::size_t from = begin == std::string::npos ? 0 : begin + 1;
  return err.substr(from, end + 1 - from);
}

Result<Ended> run(const Call& call) {
  const std::string& name = call.words.front();
  const auto file = base::find_program(name, kPlaces);
  if (!file) return base::fail(ErrorCode::kUnavailable, name + " is not installed");
  auto ended = base::run_program({.file = *file,
                                  .words = call.words,
                                  .environment = environment(),
                                  .directory = call.directory,
                                  .input = call.input,
                                  .catches_errors = true,
                                  .most_output = call.most});
  if (!ended && ended.error().code == ErrorCode::kInvalid) {
    return base::fail(ErrorCode::kInvalid,
                      "unpacks to more than " + std::to_string(call.most >> 20) + " MiB");
  }
  if (!ended) return unexpected(std::move(ended.error()));
  const int status = ended->status;
  return Ended{.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
               .out = std::move(ended->output),
               .err = std::move(ended->errors)};
}

}  // namespace ka::image
