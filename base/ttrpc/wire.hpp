// SPDX-License-Identifier: Apache-2.0
// protobuf's wire format (protobuf.dev/programming-guides/encoding), as much as our messages need,
// without protobuf. Reading is strict and never allocates.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ka::ttrpc {

/// One field as it came.
struct Field {
  std::uint32_t number = 0;
  bool is_bytes = false;  ///< `bytes` holds, else `value`
  std::uint64_t value = 0;
  std::string_view bytes;
};

/// Takes a message apart, field by field.
class Reader {
 public:
  explicit Reader(std::string_view message) : rest_(message) {}

  /// The next field that is a number or bytes; those of fixed width are skipped, none of our
  /// messages has one. Absent at the end, and where the message is malformed.
  std::optional<Field> next();
  /// After the end: the whole message was well-formed.
  bool good() const { return good_; }

 private:
  std::optional<Field> fail();

  std::string_view rest_;
  bool good_ = true;
};

/// Hands each field to `read_field`, which returns whether it is valid. True: all are, and the
/// message is well-formed.
template <typename ReadField>
bool read_fields(std::string_view message, ReadField read_field) {
  Reader reader(message);
  while (const auto field = reader.next()) {
    if (!read_field(*field)) return false;
  }
  return reader.good();
}

/// Puts a message together. As in proto3, what has its default is left out.
class Writer {
 public:
  void number(std::uint32_t field, std::uint64_t value) {
    if (value != 0) present(field, value);
  }
  /// Also when it is 0.
  void present(std::uint32_t field, std::uint64_t value);
  void text(std::uint32_t field, std::string_view bytes) {
    if (!bytes.empty()) message(field, bytes);
  }
  /// Also when it is empty.
  void message(std::uint32_t field, std::string_view bytes);

  std::string release() { return std::move(out_); }

 private:
  void varint(std::uint64_t value);

  std::string out_;
};

/// The numbers of a packed repeated field; absent if it is malformed.
class PackedReader {
 public:
  explicit PackedReader(std::string_view bytes) : rest_(bytes) {}
  std::optional<std::uint64_t> next();
  bool good() const { return good_; }

 private:
  std::string_view rest_;
  bool good_ = true;
};

}  // namespace ka::ttrpc
