// SPDX-License-Identifier: Apache-2.0
#include "shim-ext/kubelet/last_state.hpp"

#include "base/boot_id.hpp"
#include "base/files.hpp"
#include "shim-ext/watch/kubelet_state.hpp"

namespace ka::kubelet {
namespace {

constexpr std::size_t kMaxHead = 64;  // a boot id and the end of its line

}  // namespace

/// The first line is the boot's id; kubelet's file follows.
base::Result<std::string> LastState::load() const {
  auto text = base::read_regular_file(path_, watch::kMaxKubeletState + kMaxHead);
  if (!text) return text;
  const std::size_t end = text->find('\n');
  const auto current = base::check_boot(std::string_view(*text).substr(0, end), boot_id_);
  if (!current) return unexpected(current.error());
  return text->substr(end + 1);
}

base::Result<void> LastState::save(const std::string& text) const {
  return base::write_atomically(path_, boot_id_ + '\n' + text);
}

}  // namespace ka::kubelet
