// SPDX-License-Identifier: Apache-2.0
// Many questions in one call: JSON lines in, JSON lines out.
#pragma once

#include <boost/json/fwd.hpp>
#include <functional>
#include <string>

#include "affinity/cli/terminal/output.hpp"
#include "base/result.hpp"

namespace ka::cli {

/// The answer to one line's document; an error is what is wrong with the document.
using AnswerLine = std::function<base::Result<boost::json::object>(const boost::json::value&)>;

/// Answers each line of `input` ("-": standard input) in its order with a line of its own; empty
/// lines are passed over. The member "id" of a document comes back in its answer. A line that makes
/// no sense is answered with {"line":N,"invalid":"..."}, the others as usual, and the call ends
/// with kWrong.
Exit run_batch(const std::string& input, Output& output, const AnswerLine& answer);

}  // namespace ka::cli
