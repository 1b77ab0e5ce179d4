// SPDX-License-Identifier: Apache-2.0
#include "policy/facts/id_set.hpp"

#include <algorithm>
#include <bit>
#include <cassert>
#include <charconv>
#include <optional>

#include "policy/facts/bits.hpp"

namespace ka::policy {
namespace {

constexpr int kWordBits = 64;

std::size_t word_of(int id) { return static_cast<std::size_t>(id) / kWordBits; }

std::uint64_t bit_of(int id) { return std::uint64_t{1} << (static_cast<unsigned>(id) % kWordBits); }

auto fail(std::size_t position, std::string reason) {
  return unexpected(ParseError{position, std::move(reason)});
}

/// One trailing newline is how every kernel file ends.
std::string_view without_newline(std::string_view text) {
  return text.ends_with('\n') ? text.substr(0, text.size() - 1) : text;
}

struct Cursor {
  std::string_view text;
  std::size_t at = 0;

  bool done() const { return at == text.size(); }
  bool accept(char wanted) {
    if (done() || text[at] != wanted) return false;
    ++at;
    return true;
  }
};

Expected<int, ParseError> read_id(Cursor& cursor) {
  const char* begin = cursor.text.data() + cursor.at;
  const char* end = cursor.text.data() + cursor.text.size();
  if (begin == end || *begin < '0' || *begin > '9') return fail(cursor.at, "expected a number");
  unsigned value = 0;
  const auto [stop, error] = std::from_chars(begin, end, value);
  if (error != std::errc{} || value >= static_cast<unsigned>(kMaxIds)) {
    return fail(cursor.at, "number is above " + std::to_string(kMaxIds - 1));
  }
  cursor.at += static_cast<std::size_t>(stop - begin);
  return static_cast<int>(value);
}

struct IdRange {
  int first = 0;
  int last = 0;
};

Expected<IdRange, ParseError> read_range(Cursor& cursor) {
  const std::size_t start = cursor.at;
  const auto first = read_id(cursor);
  if (!first) return unexpected(first.error());
  if (!cursor.accept('-')) return IdRange{*first, *first};
  const auto last = read_id(cursor);
  if (!last) return unexpected(last.error());
  if (*last < *first) return fail(start, "range ends before it starts");
  return IdRange{*first, *last};
}

int hex_value(char digit) {
  if (digit >= '0' && digit <= '9') return digit - '0';
  if (digit >= 'a' && digit <= 'f') return digit - 'a' + 10;
  if (digit >= 'A' && digit <= 'F') return digit - 'A' + 10;
  return -1;
}

/// The offset of the first byte that is neither a hex digit nor a comma in its place.
std::optional<ParseError> check_mask_shape(std::string_view text) {
  if (text.empty()) return ParseError{0, "expected a hex digit"};
  std::size_t digits = 0;
  const bool grouped = text.find(',') != std::string_view::npos;
  for (std::size_t i = text.size(); i-- > 0;) {
    if (text[i] == ',') {
      if (digits != 8) return ParseError{i + 1, "a group has 8 hex digits"};
      digits = 0;
    } else if (hex_value(text[i]) < 0) {
      return ParseError{i, "expected a hex digit"};
    } else if (++digits > 8 && grouped) {
      return ParseError{i, "a group has 8 hex digits"};
    }
  }
  if (digits == 0) return ParseError{0, "expected a hex digit"};
  return std::nullopt;
}

void append_range(std::string& text, int first, int last) {
  if (!text.empty()) text += ',';
  text += std::to_string(first);
  if (last > first) text += '-' + std::to_string(last);
}

}  // namespace

template <typename Tag>
IdSet<Tag>::IdSet(std::initializer_list<int> ids) {
  for (const int id : ids) add(id);
}

template <typename Tag>
IdSet<Tag> IdSet<Tag>::range(int first, int last) {
  IdSet set;
  for (int id = last; id >= first; --id) set.add(id);
  return set;
}

template <typename Tag>
int IdSet<Tag>::size() const {
  int count = 0;
  for (const std::uint64_t word : low_) count += bit_count(word);
  for (const std::uint64_t word : high_) count += bit_count(word);
  return count;
}

template <typename Tag>
bool IdSet<Tag>::contains(int id) const {
  return id >= 0 && word_of(id) < end_word() && (word(word_of(id)) & bit_of(id)) != 0;
}

template <typename Tag>
int IdSet<Tag>::last() const {
  for (std::size_t at = end_word(); at-- > 0;) {
    if (word(at) == 0) continue;
    return static_cast<int>(at) * kWordBits + kWordBits - 1 - std::countl_zero(word(at));
  }
  return -1;
}

template <typename Tag>
int IdSet<Tag>::next(int from) const {
  if (from < 0) from = 0;
  std::uint64_t above = ~std::uint64_t{0} << (static_cast<unsigned>(from) % kWordBits);
  for (std::size_t at = word_of(from); at < end_word(); ++at) {
    const std::uint64_t members = word(at) & above;
    if (members != 0) return static_cast<int>(at) * kWordBits + std::countr_zero(members);
    above = ~std::uint64_t{0};
  }
  return -1;
}

template <typename Tag>
void IdSet<Tag>::add(int id) {
  assert(id >= 0 && id < kMaxIds);
  if (word_of(id) >= end_word()) high_.resize(word_of(id) + 1 - kLowWords);
  word(word_of(id)) |= bit_of(id);
}

template <typename Tag>
void IdSet<Tag>::remove(int id) {
  if (!contains(id)) return;
  word(word_of(id)) &= ~bit_of(id);
  trim();
}

template <typename Tag>
bool IdSet<Tag>::subset_of(const IdSet& other) const {
  if (high_.size() > other.high_.size()) return false;
  for (std::size_t at = 0; at < end_word(); ++at) {
    if ((word(at) & ~other.word(at)) != 0) return false;
  }
  return true;
}

template <typename Tag>
bool IdSet<Tag>::intersects(const IdSet& other) const {
  const std::size_t common = std::min(end_word(), other.end_word());
  for (std::size_t at = 0; at < common; ++at) {
    if ((word(at) & other.word(at)) != 0) return true;
  }
  return false;
}

template <typename Tag>
IdSet<Tag>& IdSet<Tag>::operator|=(const IdSet& other) {
  for (std::size_t i = 0; i < kLowWords; ++i) low_[i] |= other.low_[i];
  if (other.high_.size() > high_.size()) high_.resize(other.high_.size());
  for (std::size_t i = 0; i < other.high_.size(); ++i) high_[i] |= other.high_[i];
  return *this;
}

template <typename Tag>
IdSet<Tag>& IdSet<Tag>::operator&=(const IdSet& other) {
  for (std::size_t i = 0; i < kLowWords; ++i) low_[i] &= other.low_[i];
  if (high_.size() > other.high_.size()) high_.resize(other.high_.size());
  for (std::size_t i = 0; i < high_.size(); ++i) high_[i] &= other.high_[i];
  trim();
  return *this;
}

template <typename Tag>
IdSet<Tag>& IdSet<Tag>::operator-=(const IdSet& other) {
  for (std::size_t i = 0; i < kLowWords; ++i) low_[i] &= ~other.low_[i];
  const std::size_t common = std::min(high_.size(), other.high_.size());
  for (std::size_t i = 0; i < common; ++i) high_[i] &= ~other.high_[i];
  trim();
  return *this;
}

template <typename Tag>
std::vector<std::uint64_t> IdSet<Tag>::words() const {
  std::vector<std::uint64_t> words(static_cast<std::size_t>(last() + kWordBits) / kWordBits);
  for (std::size_t at = 0; at < words.size(); ++at) words[at] = word(at);
  return words;
}

template <typename Tag>
IdSet<Tag> IdSet<Tag>::from_words(std::span<const std::uint64_t> words) {
  IdSet set;
  words = words.first(std::min<std::size_t>(words.size(), kMaxIds / kWordBits));
  if (words.size() > kLowWords) set.high_.assign(words.begin() + kLowWords, words.end());
  std::ranges::copy(words.first(std::min(words.size(), kLowWords)), set.low_.begin());
  set.trim();
  return set;
}

template <typename Tag>
void IdSet<Tag>::trim() {
  while (!high_.empty() && high_.back() == 0) high_.pop_back();
}

template <typename Tag>
Expected<IdSet<Tag>, ParseError> parse_list(std::string_view text) {
  Cursor cursor{without_newline(text)};
  IdSet<Tag> set;
  if (cursor.done()) return set;
  do {
    const auto range = read_range(cursor);
    if (!range) return unexpected(range.error());
    for (int id = range->last; id >= range->first; --id) set.add(id);
  } while (cursor.accept(','));
  if (!cursor.done()) return fail(cursor.at, "expected ',' or the end");
  return set;
}

template <typename Tag>
std::string format_list(const IdSet<Tag>& set) {
  std::string text;
  for (int first = set.first(); first >= 0;) {
    int last = first;
    while (set.contains(last + 1)) ++last;
    append_range(text, first, last);
    first = set.next(last + 1);
  }
  return text;
}

template <typename Tag>
Expected<IdSet<Tag>, ParseError> parse_mask(std::string_view text) {
  text = without_newline(text);
  if (auto error = check_mask_shape(text)) return unexpected(*std::move(error));
  IdSet<Tag> set;
  int base = 0;
  for (std::size_t i = text.size(); i-- > 0;) {
    if (text[i] == ',') continue;
    const int value = hex_value(text[i]);
    for (int bit = 0; bit < 4; ++bit) {
      if ((value >> bit & 1) == 0) continue;
      if (base + bit >= kMaxIds) return fail(i, "bit is above " + std::to_string(kMaxIds - 1));
      set.add(base + bit);
    }
    base += 4;
  }
  return set;
}

template <typename Tag>
std::string format_mask(const IdSet<Tag>& set) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  if (set.empty()) return "0";
  std::string text;
  const auto words = set.words();
  for (int nibble = set.last() / 4; nibble >= 0; --nibble) {
    const std::uint64_t word = words[static_cast<std::size_t>(nibble) / 16];
    text += kDigits[(word >> (static_cast<unsigned>(nibble) % 16 * 4)) & 0xf];
    if (nibble > 0 && nibble % 8 == 0) text += ',';
  }
  return text;
}

template class IdSet<CpuTag>;
template class IdSet<NodeTag>;
template class IdSet<VcpuTag>;
template class IdSet<GuestCpuTag>;

template Expected<CpuSet, ParseError> parse_list(std::string_view);
template Expected<NodeSet, ParseError> parse_list(std::string_view);
template Expected<VcpuSet, ParseError> parse_list(std::string_view);
template Expected<GuestCpuSet, ParseError> parse_list(std::string_view);
template std::string format_list(const CpuSet&);
template std::string format_list(const NodeSet&);
template std::string format_list(const VcpuSet&);
template std::string format_list(const GuestCpuSet&);
template Expected<CpuSet, ParseError> parse_mask(std::string_view);
template Expected<NodeSet, ParseError> parse_mask(std::string_view);
template Expected<VcpuSet, ParseError> parse_mask(std::string_view);
template Expected<GuestCpuSet, ParseError> parse_mask(std::string_view);
template std::string format_mask(const CpuSet&);
template std::string format_mask(const NodeSet&);
template std::string format_mask(const VcpuSet&);
template std::string format_mask(const GuestCpuSet&);

}  // namespace ka::policy
