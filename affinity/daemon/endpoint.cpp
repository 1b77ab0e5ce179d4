// SPDX-License-Identifier: Apache-2.0
#include "affinity/daemon/endpoint.hpp"

#include <utility>

namespace ka::daemon {

Endpoint::Endpoint(Context context, std::string name, http::UnixListener& listener,
                   http::Handler handler, http::Limits limits)
    : context_(context),
      name_(std::move(name)),
      listener_(listener),
      server_(
          context_.io, context_.clock, listener_.fd(), std::move(handler),
          [this](const std::string& trouble) {
            context_.log.warning(name_ + ": " + trouble, {{"kind", "server-trouble"}});
          },
          limits) {}

void Endpoint::check() {
  const auto done = listen_again();
  const std::string trouble = done ? std::string() : done.error().message;
  if (!done && trouble != trouble_) {
    context_.log.error(name_ + ": its socket was removed or replaced, and cannot be made again",
                       {{"socket", listener_.path().string()}, {"reason", trouble}});
  }
  trouble_ = trouble;
}

base::Result<void> Endpoint::listen_again() {
  const auto restored = listener_.restore();
  if (!restored) return unexpected(restored.error());
  if (is_served_ && !*restored) return {};
  const auto served = server_.listen(listener_.fd());
  is_served_ = served.has_value();
  if (!served) return served;
  context_.log.warning(
      name_ + ": its socket was removed or replaced by another program; it is made again",
      {{"socket", listener_.path().string()}});
  return {};
}

}  // namespace ka::daemon
