// SPDX-License-Identifier: Apache-2.0
#include "affinity/daemon/sources.hpp"

#include <utility>

namespace ka::daemon {

Sources::Sources(std::span<const SourceRegistration> table, const SourceSettings& settings,
                 const SourceContext& context, const Expect& expect) {
  for (const SourceRegistration& row : table) {
    if (row.is_awaited(settings)) expect(row.source);
  }
  for (const SourceRegistration& row : table) {
    auto made = row.make == nullptr ? nullptr : row.make(settings, context, *this);
    if (made) sources_.push_back(std::move(made));
  }
}

void Sources::start() {
  for (const auto& source : sources_) source->start();
}

void Sources::refresh() {
  for (const auto& source : sources_) source->refresh();
}

void Sources::query_for_verify(std::function<void()> answered) {
  const auto left = std::make_shared<std::size_t>(sources_.size());
  if (*left == 0) return answered();
  for (const auto& source : sources_) {
    source->query_for_verify([left, answered] {
      if (--*left == 0) answered();
    });
  }
}

void Sources::catch_up(const base::Deadline& deadline) {
  for (const auto& source : sources_) source->catch_up(deadline);
}

void Sources::notify(source::Notice notice) {
  for (const auto& source : sources_) source->notify(notice);
}

}  // namespace ka::daemon
