// SPDX-License-Identifier: Apache-2.0
#include "affinity/cli/control/outcome.hpp"

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>

#include "affinity/cli/client/daemon.hpp"
#include "affinity/cli/status/describe.hpp"
#include "affinity/messages/terms.hpp"

namespace ka::cli {

namespace json = boost::json;
using messages::counted;

std::string describe_outcome(const json::value& outcome) {
  std::string text = counted(number_of(outcome, "planned"), "sandbox") + " planned";
  const long long failed = number_of(outcome, "failed");
  const long long moved = std::max(0LL, number_of(outcome, "writes") - failed);
  text += ", " + counted(moved, "thread") + " moved";
  if (const long long interrupts = number_of(outcome, "interrupts"); interrupts > 0) {
    text += ", " + counted(interrupts, "interrupt") + " rerouted";
  }
  if (failed > 0) {
    text += ", " + counted(failed, "thread") + " could not be placed (see status)";
  }
  return text + '\n' + list_notes(array_of(outcome, "warnings"), "!");
}

Exit show_outcome(const base::Result<boost::json::object>& answer, Output& output) {
  if (!answer) return output.fail(answer.error());
  const boost::json::value outcome(*answer);
  output.show(outcome, [&outcome] { return describe_outcome(outcome); });
  return number_of(outcome, "failed") > 0 ? Exit::kNo : Exit::kDone;
}

}  // namespace ka::cli
