// SPDX-License-Identifier: Apache-2.0
// Where the shim proxy has its settings from.
#pragma once

#include "shim-ext/proxy/settings.hpp"

namespace ka::shim {

/// [affinity] of Kata's configuration. containerd's environment, which a shim inherits, may name
/// another file (KATA_AFFINITY_CONFIG) and another socket of the daemon (KATA_AFFINITY_SOCKET). It
/// never fails: a pod must start whatever is wrong with our configuration.
proxy::Settings read_settings();

}  // namespace ka::shim
