// SPDX-License-Identifier: Apache-2.0
#include "affinity/cli/terminal/output.hpp"

#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>
#include <fstream>
#include <ostream>

#include "base/files.hpp"
#include "base/json/json.hpp"
#include "base/text.hpp"

namespace ka::cli {
namespace {

constexpr std::size_t kMostBytes = 64u << 20;

}  // namespace

void Output::show(const boost::json::value& document, const std::function<std::string()>& text) {
  if (json_) {
    out_ << boost::json::serialize(document) << '\n';
  } else {
    out_ << fit(text(), screen_().columns);
  }
  out_.flush();
}

void Output::print(const std::string& text) {
  out_ << text;
  out_.flush();
}

void Output::print_message(const std::string& line) {
  err_ << base::printable(line, base::kMaxPath + base::kMaxSentence) << '\n';
}

Exit Output::fail(const base::Error& error) {
  print_message(program_ + ": " + error.message);
  if (error.code == base::ErrorCode::kUnavailable) return Exit::kUnreachable;
  return error.code == base::ErrorCode::kTransient ? Exit::kNo : Exit::kWrong;
}

std::string display_name(const std::string& name) { return name == "-" ? "standard input" : name; }

base::Error about_input(const std::string& name, const base::Error& error) {
  return base::error_in(display_name(name), error);
}

base::Result<std::string> read_input(const std::string& name) {
  return base::read_file(name == "-" ? "/dev/stdin" : name, kMostBytes);
}

base::Result<boost::json::value> read_json_input(const std::string& name) {
  const auto text = read_input(name);
  if (!text) return unexpected(text.error());
  return base::parse_json(*text, display_name(name));
}

base::Result<void> write_output(const std::string& name, const std::string& text) {
  std::ofstream file(name, std::ios::trunc);
  file << text;
  file.close();
  if (file) return {};
  return base::fail(base::ErrorCode::kInvalid, name + ": cannot be written");
}

}  // namespace ka::cli
