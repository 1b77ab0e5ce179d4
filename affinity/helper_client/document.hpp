// SPDX-License-Identifier: Apache-2.0
// What kata-affinity-helper's responses mean, whichever the verb.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/http/message.hpp"
#include "base/json/json.hpp"
#include "base/result.hpp"

namespace ka::helper_client {

/// The document of a response. kConflict: the request is refused as a whole, nothing has changed
/// (status 400); kUnavailable: another status.
base::Result<std::string> document_in(const http::Response& response);

/// Why there is no State: it refuses the request, or does not respond.
std::string trouble_of(const base::Error& error);

using ReadRow = std::function<void(const boost::json::value& row, const std::string& path,
                                   base::InputError& wrong)>;
/// Reads a document of rows, {NAME: [ROW, ...], "problem": TEXT}, and returns the problem.
/// kInvalid, with the path of what is wrong.
base::Result<std::string> read_rows(std::string_view document, std::string_view name,
                                    const ReadRow& read);

/// Reads text whatever it says, made printable and cut.
void read_text(base::Fields& fields, std::string_view name, std::string& into, std::size_t limit);

}  // namespace ka::helper_client
