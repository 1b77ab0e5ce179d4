// SPDX-License-Identifier: Apache-2.0
#include "base/ttrpc/envelope.hpp"

#include "base/ttrpc/frame.hpp"
#include "base/ttrpc/wire.hpp"

namespace ka::ttrpc {
namespace {

// Request{service 1, method 2, payload 3, timeout_nano 4, metadata 5}, KeyValue{key 1, value 2},
// Response{status 1, payload 2}, Status{code 1, message 2}.

bool read_entry(std::string_view data, Call& call) {
  auto& [key, value] = call.metadata.emplace_back();
  Reader reader(data);
  while (const auto field = reader.next()) {
    if (field->number == 1 && field->is_bytes) key = field->bytes;
    if (field->number == 2 && field->is_bytes) value = field->bytes;
  }
  return reader.good();
}

bool read_status(std::string_view data, Answer& answer) {
  Reader reader(data);
  while (const auto field = reader.next()) {
    if (field->number == 1 && !field->is_bytes) {
      answer.code = static_cast<Code>(static_cast<std::int32_t>(field->value));
    }
    if (field->number == 2 && field->is_bytes) answer.message = field->bytes;
  }
  return reader.good();
}

/// False where the field is malformed.
bool read(const Field& field, Call& call) {
  if (!field.is_bytes) {
    if (field.number == 4) call.timeout_nano = static_cast<std::int64_t>(field.value);
    return true;
  }
  if (field.number == 1) call.service = field.bytes;
  if (field.number == 2) call.method = field.bytes;
  if (field.number == 3) call.payload = field.bytes;
  return field.number != 5 || read_entry(field.bytes, call);
}

}  // namespace

std::optional<Call> read_call(std::string_view data) {
  Call call;
  Reader reader(data);
  while (const auto field = reader.next()) {
    if (!read(*field, call)) return std::nullopt;
  }
  if (!reader.good()) return std::nullopt;
  return call;
}

std::optional<Answer> read_answer(std::string_view data) {
  Answer answer;
  Reader reader(data);
  while (const auto field = reader.next()) {
    if (!field->is_bytes) continue;
    if (field->number == 1 && !read_status(field->bytes, answer)) return std::nullopt;
    if (field->number == 2) answer.payload = field->bytes;
  }
  if (!reader.good()) return std::nullopt;
  return answer;
}

std::string write_call(std::uint32_t stream, const Call& call) {
  Writer writer;
  writer.text(1, call.service);
  writer.text(2, call.method);
  writer.text(3, call.payload);
  writer.number(4, static_cast<std::uint64_t>(call.timeout_nano));
  for (const auto& [key, value] : call.metadata) {
    Writer entry;
    entry.text(1, key);
    entry.text(2, value);
    writer.message(5, entry.release());
  }
  return encode(stream, kRequest, 0, writer.release());
}

std::string write_answer(std::uint32_t stream, const Answer& answer) {
  Writer writer;
  if (answer.code != Code::kOk) {
    Writer status;
    status.number(1, static_cast<std::uint64_t>(static_cast<std::int64_t>(answer.code)));
    status.text(2, answer.message);
    writer.message(1, status.release());
  }
  writer.text(2, answer.payload);
  return encode(stream, kResponse, 0, writer.release());
}

}  // namespace ka::ttrpc
