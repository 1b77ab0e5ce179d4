// SPDX-License-Identifier: Apache-2.0
#include "vmm/qmp/message.hpp"

#include <algorithm>
#include <boost/json/serialize.hpp>

#include "base/json/lookup.hpp"
#include "base/text.hpp"

namespace ka::qmp {
namespace {

namespace json = boost::json;

constexpr std::string_view kBlanks = " \t\r\n";

auto malformed(const std::string& what) {
  return base::fail(base::ErrorCode::kInvalid, "malformed QMP message: " + what);
}

std::string text_of(const json::value& object, std::string_view name) {
  return base::printable(base::text_in(base::member(object, name)), base::kMaxSentence);
}

base::Result<Message> read_greeting(const json::value& document) {
  const json::value& qemu = base::value_at(document, "/QMP/version/qemu");
  std::string text;
  for (const char* part : {"major", "minor", "micro"}) {
    const json::value& number = base::member(qemu, part);
    if (!number.is_int64()) return malformed("a greeting without version");
    text += (text.empty() ? "" : ".") + std::to_string(number.get_int64());
  }
  return Message{Greeting{std::move(text)}};
}

base::Result<Message> read_event(const json::value& document) {
  std::string name = text_of(document, "event");
  if (name.empty()) return malformed("an event without name");
  const json::value& data = base::member(document, "data");
  return Message{Event{std::move(name), data.is_object() ? json::serialize(data) : "{}"}};
}

base::Result<Message> read_error(const json::value& document) {
  const json::value& error = base::member(document, "error");
  if (!error.is_object()) return malformed("an error that is not an object");
  const std::string text = text_of(error, "class") + ": " + text_of(error, "desc");
  std::string id = text_of(document, "id");
  // QEMU answers so what it could not read: then nothing that we wait for will come.
  if (id.empty()) return malformed("an error without id (" + text + ')');
  return Message{Answer{std::move(id), base::fail(base::ErrorCode::kUnavailable, text)}};
}

}  // namespace

base::Result<Message> interpret(const json::value& document) {
  const json::object* object = document.if_object();
  if (object == nullptr) return malformed("not an object");
  if (object->contains("QMP")) return read_greeting(document);
  if (object->contains("event")) return read_event(document);
  if (object->contains("error")) return read_error(document);
  const json::value* result = object->if_contains("return");
  if (result == nullptr) return malformed("neither greeting, response nor event");
  std::string id = text_of(document, "id");
  if (id.empty()) return malformed("a response without id");
  return Message{Answer{std::move(id), *result}};
}

json::stream_parser Reader::make_parser() {
  json::parse_options options;
  options.max_depth = kMaxDepth;
  return json::stream_parser({}, options);
}

/// Parses up to the end of one document; gives back what follows it.
base::Result<std::string_view> Reader::feed_document(std::string_view bytes) {
  json::error_code error;
  // One byte beyond the limit is enough to see that it is passed.
  const std::size_t room = kMaxMessage + 1 - length_;
  const std::size_t used = parser_.write_some(bytes.data(), std::min(bytes.size(), room), error);
  if (error) return malformed(error.message());
  length_ += used;
  if (length_ > kMaxMessage) return malformed("longer than 1 MiB");
  return bytes.substr(used);
}

base::Result<std::vector<Message>> Reader::feed(std::string_view bytes) {
  std::vector<Message> messages;
  for (;;) {
    if (length_ == 0) bytes.remove_prefix(std::min(bytes.find_first_not_of(kBlanks), bytes.size()));
    if (bytes.empty()) return messages;
    const auto rest = feed_document(bytes);
    if (!rest) return unexpected(rest.error());
    bytes = *rest;
    if (!parser_.done()) continue;
    const json::value document = parser_.release();
    parser_.reset();
    length_ = 0;
    auto message = interpret(document);
    if (!message) return unexpected(std::move(message.error()));
    messages.push_back(std::move(*message));
  }
}

std::string format_command(std::string_view name, const json::object& arguments,
                           std::string_view id) {
  json::object command{{"execute", name}, {"id", id}};
  if (!arguments.empty()) command["arguments"] = arguments;
  return json::serialize(command) + "\r\n";
}

}  // namespace ka::qmp
