// The command line, parsed. To add a command: a struct of its options here and in Command, its
// declaration in options.cpp (the one place that includes CLI11), and its run() in a file of its
// own, declared in commands.hpp.
#pragma once

#include <iosfwd>
#include <string>
#include <variant>

#include "affinity/cli/output.hpp"
#include "policy/facts/expected.hpp"

namespace ka::cli {

/// `topology`: shows a machine.
struct TopologyOptions {
  std::string topology = "host";
};

/// `plan`: what a daemon would do, without one.
struct PlanOptions {
  std::string topology = "host";
  std::string scenario;  ///< a file, or "-"
  std::string previous;  ///< an earlier output; empty: none
};

using Command = std::variant<TopologyOptions, PlanOptions>;

struct Invocation {
  bool json = false;
  Command command;
};

/// Parses arguments. What asks for no command (--help, --version) and what is wrong is answered on
/// the streams; the error is then how the program ends.
Expected<Invocation, Exit> parse(int argc, const char* const* argv, std::ostream& out,
                                 std::ostream& err);

}  // namespace ka::cli
