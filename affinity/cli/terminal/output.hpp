// SPDX-License-Identifier: Apache-2.0
// Output and exit status of every command.
#pragma once

#include <boost/json/fwd.hpp>
#include <functional>
#include <iosfwd>
#include <string>

#include "affinity/cli/terminal/screen.hpp"
#include "base/result.hpp"

namespace ka::cli {

/// The meaning of the program's exit status.
enum class Exit {
  kDone = 0,
  kNo = 1,           ///< the answer is no: drift found, not enough CPUs, a check failed
  kWrong = 2,        ///< the call or its input is wrong
  kUnreachable = 3,  ///< the daemon cannot be reached
};

/// Where answers go: one JSON document on standard output, or text made of the same
/// data. Keeps references to the streams.
class Output {
 public:
  /// `screen` returns the current properties of `out`: a window may change its size. Messages begin
  /// with `program`.
  Output(
      std::ostream& out, std::ostream& err, bool json,
      std::function<Screen()> screen = [] { return Screen{}; },
      std::string program = "kata-affinityctl")
      : out_(out),
        err_(err),
        json_(json),
        screen_(std::move(screen)),
        program_(std::move(program)) {}

  bool json() const { return json_; }
  Screen screen() const { return screen_(); }

  /// Prints an answer. `text` is called only where text is wanted, and ends with a newline; it is
  /// made to fit the screen.
  void show(const boost::json::value& document, const std::function<std::string()>& text);
  /// Prints a part of an answer that has no end.
  void print(const std::string& text);
  /// One line to standard error, of which it escapes what is not printable: words of the command
  /// line, names of files.
  void print_message(const std::string& line);
  /// Prints the error on standard error: kUnreachable for ErrorCode::kUnavailable, kNo for
  /// ErrorCode::kTransient, else kWrong.
  Exit fail(const base::Error& error);

 private:
  std::ostream& out_;
  std::ostream& err_;
  bool json_;
  std::function<Screen()> screen_;
  std::string program_;
};

/// A file, or standard input for "-".
base::Result<std::string> read_input(const std::string& name);
/// The same, parsed; errors name the file, line and column.
base::Result<boost::json::value> read_json_input(const std::string& name);
/// An error about the content of an input: "FILE: ..." or "standard input: ...".
base::Error about_input(const std::string& name, const base::Error& error);
/// How messages call an input: "standard input" for "-".
std::string display_name(const std::string& name);
/// Writes a file.
base::Result<void> write_output(const std::string& name, const std::string& text);

}  // namespace ka::cli
