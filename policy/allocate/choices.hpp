// SPDX-License-Identifier: Apache-2.0
// The hints of all providers of a merge, as bit masks. kubelet merges a few hints in microseconds,
// so the usual merge needs no memory beside the stack.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

#include "policy/allocate/hints.hpp"
#include "policy/allocate/intersections.hpp"
#include "policy/allocate/node_masks.hpp"

namespace ka::policy::allocate {

/// Storage for items, of which up to kFew need no allocation. What is written there is the user's.
template <typename T, std::size_t kFew>
class Storage {
  static_assert(std::is_trivially_destructible_v<T> && std::is_trivially_copyable_v<T>);

 public:
  explicit Storage(std::size_t size)
      : many_(size > kFew ? std::make_unique_for_overwrite<std::byte[]>(size * sizeof(T))
                          : nullptr),
        begin_(reinterpret_cast<T*>(many_ ? many_.get() : few_)) {}
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;
  ~Storage() = default;

  T* begin() { return begin_; }
  const T* begin() const { return begin_; }

 private:
  alignas(T) std::byte few_[kFew * sizeof(T)];
  std::unique_ptr<std::byte[]> many_;
  T* begin_;
};

/// What the merge needs of a hint.
struct Choice {
  Mask mask;  ///< of a hint that names no nodes: all of them
  bool preferred;
};

/// The width of the narrowest mask; 0 where there is none.
class Narrowest {
 public:
  void add(int width) { count_ = std::min(count_, width); }
  int count() const { return count_ > kMaxHintNodes ? 0 : count_; }

 private:
  int count_ = kMaxHintNodes + 1;
};

/// A set of masks by their lowest eight bits: what it does not name is not there.
class MaskFilter {
 public:
  void add(Mask mask) { words_[word(mask)] |= bit(mask); }
  bool may_have(Mask mask) const { return (words_[word(mask)] & bit(mask)) != 0; }

 private:
  static std::size_t word(Mask mask) { return mask >> 6 & 3; }
  static Mask bit(Mask mask) { return Mask{1} << (mask & 63); }

  std::array<Mask, 4> words_{};
};

/// The choices of one resource.
struct Resource {
  std::string_view name;
  std::span<const Choice> choices;
  std::span<const Mask> preferred;  ///< of the preferred choices that name nodes
  MaskFilter filter;                ///< of `preferred`
  bool prefers_any = false;         ///< a preferred choice names no nodes: every mask will do
  int narrowest = 0;                ///< nodes of the narrowest choice that names some, if any does

  bool prefers(Mask mask) const;
};

/// The hints of all providers, resource by resource (kubelet's filterProvidersHints and, for
/// single-numa-node, filterSingleNumaHints).
class Choices {
 public:
  Choices(const HintProblem& problem, const NodeMasks& masks);

  /// All nodes that are named have a place in the masks; else the choices are of no use.
  bool fit() const { return fit_; }
  /// All nodes of the machine.
  Mask nodes() const { return nodes_; }
  std::span<const Resource> resources() const { return {resources_.begin(), count_}; }

 private:
  struct Counts {
    std::size_t resources = 0;
    std::size_t choices = 0;
  };
  static Counts count(const HintProblem& problem);
  Choices(const HintProblem& problem, const NodeMasks& masks, Counts counts);
  Resource read(const ResourceHints& said, const NodeMasks& masks);
  Resource read(const ResourceHints& said, const std::vector<Hint>& hints, const NodeMasks& masks);
  template <typename MaskOf>
  Resource read_each(const ResourceHints& said, const std::vector<Hint>& hints,
                     const MaskOf& mask_of);

  static constexpr std::size_t kFewChoices = 512;
  static constexpr std::size_t kFewResources = 8;

  Mask nodes_;
  bool single_;
  bool fit_;
  Storage<Choice, kFewChoices> choices_;  ///< of all resources, one behind the other
  Storage<Mask, kFewChoices> preferred_;
  Storage<Resource, kFewResources> resources_;
  std::size_t count_ = 0;  ///< of resources
  Choice* next_choice_;
  Mask* next_preferred_;
};

}  // namespace ka::policy::allocate
