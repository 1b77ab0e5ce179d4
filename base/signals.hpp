// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace ka::base {

/// A write that cannot succeed is an error of write(2) (EPIPE, EFBIG), and no signal that ends the
/// process without a sentence.
void ignore_write_signals();

}  // namespace ka::base
