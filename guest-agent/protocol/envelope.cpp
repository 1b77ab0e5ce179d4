#include "guest-agent/protocol/envelope.hpp"

#include "guest-agent/protocol/wire.hpp"
#include "shim-ext/ttrpc/frame.hpp"

namespace ka::guest {
namespace {

// Request{service 1, method 2, payload 3, timeout_nano 4, metadata 5}, Response{status 1, payload
// 2}, Status{code 1, message 2}.
bool read_status(std::string_view data, Answer& answer) {
  Reader reader(data);
  while (const auto field = reader.next()) {
    if (field->number == 1 && !field->is_bytes) {
      answer.status = static_cast<std::uint32_t>(field->value);
    }
    if (field->number == 2 && field->is_bytes) answer.message = field->bytes;
  }
  return reader.good();
}

}  // namespace

std::optional<Call> read_call(std::string_view data) {
  Call call;
  Reader reader(data);
  while (const auto field = reader.next()) {
    if (!field->is_bytes) continue;
    if (field->number == 1) call.service = field->bytes;
    if (field->number == 2) call.method = field->bytes;
    if (field->number == 3) call.payload = field->bytes;
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
  return ttrpc::encode(stream, ttrpc::kRequest, 0, writer.take());
}

std::string write_answer(std::uint32_t stream, const Answer& answer) {
  Writer writer;
  if (answer.status != 0) {
    Writer status;
    status.number(1, answer.status);
    status.text(2, answer.message);
    writer.message(1, status.take());
  }
  writer.text(2, answer.payload);
  return ttrpc::encode(stream, ttrpc::kResponse, 0, writer.take());
}

}  // namespace ka::guest
