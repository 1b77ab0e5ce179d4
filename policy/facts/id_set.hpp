// SPDX-License-Identifier: Apache-2.0
// Sets of small non-negative numbers: host CPUs, NUMA nodes, guest vCPUs. One template, with a
// distinct type for each meaning, so that a vCPU index cannot pass as a CPU number.
//
// There is no maximum of CPU_SETSIZE: a set grows to what it holds, up to kMaxIds. Ids below 256,
// all that most machines have, need no memory beside the object. Text forms are the kernel's: the
// list ("0-3,8", Documentation/admin-guide/cputopology.rst) and the hex mask of /proc
// ("ff,00000001", lib/bitmap.c).
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "policy/facts/expected.hpp"

namespace ka::policy {

/// Ids run from 0 to kMaxIds - 1: the largest NR_CPUS that Linux can be built with.
inline constexpr int kMaxIds = 8192;

/// Where a text stopped making sense (byte offset) and why.
struct ParseError {
  std::size_t position = 0;
  std::string reason;

  bool operator==(const ParseError&) const = default;
};

template <typename Tag>
class IdSet {
 public:
  class Iterator;

  IdSet() = default;
  IdSet(std::initializer_list<int> ids);

  /// {first, ..., last}; empty when last < first.
  static IdSet range(int first, int last);

  bool empty() const { return low_ == Low{} && high_.empty(); }
  int size() const;
  bool contains(int id) const;
  /// Smallest and largest member, -1 when empty.
  int first() const { return next(0); }
  int last() const;
  /// Smallest member >= from, -1 when there is none.
  int next(int from) const;

  /// Precondition: 0 <= id < kMaxIds.
  void add(int id);
  void remove(int id);

  bool subset_of(const IdSet& other) const;
  bool intersects(const IdSet& other) const;

  IdSet& operator|=(const IdSet& other);
  IdSet& operator&=(const IdSet& other);
  IdSet& operator-=(const IdSet& other);
  friend IdSet operator|(IdSet a, const IdSet& b) { return a |= b; }
  friend IdSet operator&(IdSet a, const IdSet& b) { return a &= b; }
  friend IdSet operator-(IdSet a, const IdSet& b) { return a -= b; }
  bool operator==(const IdSet&) const = default;
  /// An arbitrary but fixed total order, for use as a key.
  auto operator<=>(const IdSet&) const = default;

  Iterator begin() const { return Iterator(this, first()); }
  Iterator end() const { return Iterator(this, -1); }
  std::vector<int> ids() const { return {begin(), end()}; }

  /// The raw words, least significant first, no trailing zero word: the layout of the kernel's
  /// affinity system calls.
  std::vector<std::uint64_t> words() const;
  /// The members below 64, bit by bit.
  std::uint64_t first_word() const { return low_.front(); }
  /// There are no others.
  bool fits_word() const { return (low_[1] | low_[2] | low_[3]) == 0 && high_.empty(); }
  /// From such words; ids at or above kMaxIds are dropped.
  static IdSet from_words(std::span<const std::uint64_t> words);

  class Iterator {
   public:
    using iterator_category = std::forward_iterator_tag;
    using value_type = int;
    using difference_type = std::ptrdiff_t;
    using pointer = const int*;
    using reference = int;

    Iterator() = default;
    Iterator(const IdSet* set, int id) : set_(set), id_(id) {}
    int operator*() const { return id_; }
    Iterator& operator++() {
      id_ = set_->next(id_ + 1);
      return *this;
    }
    Iterator operator++(int) {
      Iterator old = *this;
      ++*this;
      return old;
    }
    bool operator==(const Iterator& other) const { return id_ == other.id_; }

   private:
    const IdSet* set_ = nullptr;
    int id_ = -1;
  };

 private:
  static constexpr std::size_t kLowWords = 4;
  using Low = std::array<std::uint64_t, kLowWords>;

  /// How many words lie before the last that may have a member.
  std::size_t end_word() const { return kLowWords + high_.size(); }
  std::uint64_t word(std::size_t at) const {
    return at < kLowWords ? low_[at] : high_[at - kLowWords];
  }
  std::uint64_t& word(std::size_t at) { return at < kLowWords ? low_[at] : high_[at - kLowWords]; }
  void trim();

  Low low_{};
  std::vector<std::uint64_t> high_;  ///< the words above, no trailing zero word
};

struct CpuTag;
struct NodeTag;
struct VcpuTag;
struct GuestCpuTag;

using CpuSet = IdSet<CpuTag>;            ///< host CPUs, by the kernel's number
using NodeSet = IdSet<NodeTag>;          ///< host NUMA nodes
using VcpuSet = IdSet<VcpuTag>;          ///< vCPUs of one sandbox, by the VMM's index
using GuestCpuSet = IdSet<GuestCpuTag>;  ///< the same CPUs, by the guest kernel's number

/// Reads the kernel's list format, strictly: no range that runs backwards, no empty parts, nothing
/// behind but
/// one newline. Parts may overlap and come in any order (Kata joins lists with commas). An empty
/// text (or a lone newline) is the empty set.
template <typename Tag>
Expected<IdSet<Tag>, ParseError> parse_list(std::string_view text);

/// "0-3,8"; the empty set is "".
template <typename Tag>
std::string format_list(const IdSet<Tag>& set);

/// Reads /proc's mask format: hex groups of 32 bits, most significant first, split by commas. The
/// first group may be short, all others have 8 digits.
template <typename Tag>
Expected<IdSet<Tag>, ParseError> parse_mask(std::string_view text);

/// "1,000000ff"; the empty set is "0".
template <typename Tag>
std::string format_mask(const IdSet<Tag>& set);

extern template class IdSet<CpuTag>;
extern template class IdSet<NodeTag>;
extern template class IdSet<VcpuTag>;
extern template class IdSet<GuestCpuTag>;

}  // namespace ka::policy
