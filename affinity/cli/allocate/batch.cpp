// SPDX-License-Identifier: Apache-2.0
#include "affinity/cli/allocate/batch.hpp"

#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>
#include <fstream>
#include <iostream>
#include <optional>

#include "base/json/json.hpp"

namespace ka::cli {
namespace {

/// Takes "id" out of a document, since what reads the rest knows no such key.
std::optional<boost::json::value> extract_id(boost::json::value& document) {
  auto* object = document.if_object();
  if (object == nullptr) return std::nullopt;
  const auto found = object->find("id");
  if (found == object->end()) return std::nullopt;
  boost::json::value id = std::move(found->value());
  object->erase(found);
  return id;
}

base::Result<boost::json::object> answer_line(const std::string& line, const std::string& name,
                                              int number, const AnswerLine& answer,
                                              std::optional<boost::json::value>& id) {
  auto document = base::parse_json(line, name, number);
  if (!document) return unexpected(std::move(document.error()));
  id = extract_id(*document);
  return answer(*document);
}

}  // namespace

Exit run_batch(const std::string& input, Output& output, const AnswerLine& answer) {
  std::ifstream file;
  if (input != "-") {
    file.open(input);
    if (!file)
      return output.fail({base::ErrorCode::kInvalid, base::system_error(errno, input).message, 0});
  }
  std::istream& lines = input == "-" ? std::cin : file;
  Exit end = Exit::kDone;
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    std::optional<boost::json::value> id;
    auto answered = answer_line(line, display_name(input), number, answer, id);
    boost::json::object document;
    if (id) document["id"] = std::move(*id);
    if (answered) {
      for (auto& [key, value] : *answered) document[key] = std::move(value);
    } else {
      document["line"] = number;
      document["invalid"] = answered.error().message;
      end = Exit::kWrong;
    }
    output.print(boost::json::serialize(document) + '\n');
  }
  return end;
}

}  // namespace ka::cli
