// SPDX-License-Identifier: Apache-2.0
// Random machines, sandboxes and settings: everything that Linux, Kata and kubelet can come up
// with, and a little more.
#pragma once

#include <rapidcheck.h>

#include <iosfwd>
#include <string>

#include "policy/plan/plan.hpp"
#include "policy/plan/settings.hpp"

namespace worlds {

/// A node with sandboxes on it, and the settings it is run with.
struct World {
  ka::policy::plan::Snapshot node;
  ka::policy::plan::Settings settings;
};

std::ostream& operator<<(std::ostream& out, const World& world);

/// Up to `most` sandboxes on any machine: hybrid and uniform ones, 1 to 16 nodes, 1, 2 or 4 threads
/// a core, CPUs with gaps between their numbers, offline and isolated ones. Exclusive containers
/// own CPUs of their own, now and then also someone else's.
rc::Gen<World> any_world(int most);

/// The same node after one thing has happened to it: a container came, went, exited, was resized or
/// made again under a new id; vCPUs were plugged or unplugged; a sandbox came or went.
rc::Gen<World> changed(const World& world);

}  // namespace worlds
