// SPDX-License-Identifier: Apache-2.0
// QMP as bytes and messages (QEMU, docs/interop/qmp-spec.txt): no socket here.
#pragma once

#include <boost/json/stream_parser.hpp>
#include <boost/json/value.hpp>
#include <cstddef>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.hpp"

namespace ka::qmp {

/// A QMP server's first message. A server busy with another client sends none.
struct Greeting {
  std::string version;  ///< "7.2.22"
};

struct Answer {
  std::string id;
  base::Result<boost::json::value> result;  ///< an error of QEMU's is kUnavailable, in its words
};

struct Event {
  std::string name;
  std::string data;  ///< JSON text, "{}" where there is none
};

using Message = std::variant<Greeting, Answer, Event>;

/// A message is at most this long, and its values nest at most kMaxDepth deep.
inline constexpr std::size_t kMaxMessage = 1 << 20;
inline constexpr std::size_t kMaxDepth = 32;

/// What one JSON document means. kInvalid for anything that is no QMP message.
base::Result<Message> interpret(const boost::json::value& document);

/// Cuts a stream into messages. Documents may span lines (`-qmp-pretty`) and reads.
class Reader {
 public:
  /// The messages that end within `bytes`. After an error the stream cannot be read on: it is out
  /// of step.
  base::Result<std::vector<Message>> feed(std::string_view bytes);

 private:
  base::Result<std::string_view> feed_document(std::string_view bytes);

  boost::json::stream_parser parser_ = make_parser();
  std::size_t length_ = 0;  ///< of the document that has begun

  static boost::json::stream_parser make_parser();
};

/// A command as it goes over the wire.
std::string format_command(std::string_view name, const boost::json::object& arguments,
                           std::string_view id);

}  // namespace ka::qmp
