// SPDX-License-Identifier: Apache-2.0
// Hooks for a container that the runtime creates and starts: its files, and its guest.
#pragma once

#include <functional>
#include <string>
#include <utility>

#include "affinity/containers/container_files.hpp"
#include "affinity/guests/guests.hpp"
#include "shim-ext/nri/nri_source.hpp"

namespace ka::daemon {

class ContainerHooks final : public nri::Containers {
 public:
  /// Both must outlive it.
  ContainerHooks(guests::Guests& guests, containers::ContainerFiles& files)
      : guests_(guests), files_(files) {}

  nri::Adjustment adjust(const nri::CreateRequest& request) override {
    return files_.adjust(request);
  }
  void await_guest(const std::string& sandbox, const std::string& container,
                   std::function<void()> go_on) override {
    guests_.await(sandbox, container, std::move(go_on));
  }
  void forget_gone() override { files_.forget_gone(); }

 private:
  guests::Guests& guests_;
  containers::ContainerFiles& files_;
};

}  // namespace ka::daemon
