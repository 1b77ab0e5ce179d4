// SPDX-License-Identifier: Apache-2.0
// Files of ours that a later program trusts: a flipped bit often leaves a good document, with
// another pid, mask or boot.
#pragma once

#include <boost/json/fwd.hpp>
#include <string>
#include <string_view>

namespace ka::base {

class Fields;

/// A line of JSON: the document, with a checksum (CRC-32) of what precedes it as last member.
/// Precondition: it is not empty.
std::string with_checksum(const boost::json::object& document);

/// An error for a document whose checksum is not that of `text`, which it was read from. One
/// without passes: earlier versions wrote none.
void check_checksum(Fields& fields, std::string_view text);

}  // namespace ka::base
