// SPDX-License-Identifier: Apache-2.0
// A log whose reader has stopped or is gone. Where a line is waited for, SIGALRM ends the test.
#include "base/log/output.hpp"

#include <fcntl.h>
#include <pty.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include <csignal>
#include <optional>
#include <string>

#include "base/fd.hpp"
#include "base/files.hpp"
#include "base/unix_socket.hpp"
#include "tests/catch.hpp"
#include "tests/temp_dir.hpp"
#include "tests/text.hpp"

using namespace ka::log;
using ka::base::Fd;
using ka::tests::contains;

namespace {

/// More than pipes, sockets and terminals hold.
constexpr int kMany = 20000;

struct Limit {
  Limit() { ::alarm(20); }
  Limit(const Limit&) = delete;
  Limit& operator=(const Limit&) = delete;
  ~Limit() { ::alarm(0); }
};

/// What a program writes to, and the end that reads it.
struct Ends {
  Fd writer, reader;
};

Ends make_pipe() {
  int ends[2];
  REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
  return {Fd(ends[1]), Fd(ends[0])};
}

Ends make_sockets() {
  int ends[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
  return {Fd(ends[0]), Fd(ends[1])};
}

Ends make_terminal() {
  int terminal = -1, program = -1;
  termios raw{};
  ::cfmakeraw(&raw);
  REQUIRE(::openpty(&terminal, &program, nullptr, &raw, nullptr) == 0);
  return {Fd(program), Fd(terminal)};
}

/// All that can be read now.
std::string drain(const Fd& fd) {
  ::fcntl(fd.get(), F_SETFL, O_NONBLOCK);
  std::string text;
  char block[65536];
  for (ssize_t size; (size = ::read(fd.get(), block, sizeof block)) > 0;) {
    text.append(block, static_cast<std::size_t>(size));
  }
  return text;
}

/// A terminal hands on what was written to it a moment later.
std::string read_until(const Fd& fd, const std::string& part) {
  std::string text;
  while (!contains(text, part)) text += drain(fd);
  return text;
}

void write_many(Output& output) {
  for (int i = 0; i < kMany; ++i) output.write(Level::kInfo, "a line", {});
}

std::size_t count(const std::string& text, std::string_view part) {
  std::size_t found = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

/// Fills it, reads it, and checks that each line was seen or counted as lost.
void check_stopped_reader(const Ends& ends) {
  const Limit limit;
  const int flags = ::fcntl(ends.writer.get(), F_GETFL);
  Output output(ends.writer.get(), nullptr);
  write_many(output);
  const std::size_t seen = count(drain(ends.reader), "<6>a line\n");
  CHECK(seen > 0);
  output.write(Level::kError, "the next", {});
  output.write(Level::kError, "the last", {});
  const std::string text = drain(ends.reader);
  CHECK(contains(text, "<4>" + std::to_string(kMany - static_cast<int>(seen)) +
                           " lines of the log were lost"));
  CHECK(text.find("were lost") < text.find("<3>the next"));
  CHECK(count(text, "were lost") == 1);
  CHECK(contains(text, "<3>the last"));
  CHECK(::fcntl(ends.writer.get(), F_GETFL) == flags);
}

/// As if a descriptor could not be opened once more.
struct NoDescriptors {
  NoDescriptors() {
    ::getrlimit(RLIMIT_NOFILE, &before);
    const rlimit none{.rlim_cur = 0, .rlim_max = before.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &none);
  }
  NoDescriptors(const NoDescriptors&) = delete;
  NoDescriptors& operator=(const NoDescriptors&) = delete;
  ~NoDescriptors() { ::setrlimit(RLIMIT_NOFILE, &before); }

  rlimit before{};
};

}  // namespace

TEST_CASE("lines that a stopped reader leaves no room for are lost and counted") {
  SECTION("a pipe") { check_stopped_reader(make_pipe()); }
  SECTION("a socket") { check_stopped_reader(make_sockets()); }
}

TEST_CASE("a terminal that nobody reads loses lines and goes on") {
  const Limit limit;
  const Ends ends = make_terminal();
  const int flags = ::fcntl(ends.writer.get(), F_GETFL);
  Output output(ends.writer.get(), nullptr);
  write_many(output);
  std::string text;
  while (!contains(text, " lines of the log were lost\n<3>another\n")) {
    text += drain(ends.reader);
    output.write(Level::kError, "another", {});
  }
  CHECK(text.starts_with("<6>a line\n"));
  CHECK(::fcntl(ends.writer.get(), F_GETFL) == flags);
}

TEST_CASE("a terminal that was stopped (^S) loses lines and goes on") {
  const Limit limit;
  const Ends ends = make_terminal();
  Output output(ends.writer.get(), nullptr);
  REQUIRE(::tcflow(ends.writer.get(), TCOOFF) == 0);
  output.write(Level::kInfo, "unseen", {});
  REQUIRE(::tcflow(ends.writer.get(), TCOON) == 0);
  output.write(Level::kInfo, "seen", {});
  CHECK(read_until(ends.reader, "seen\n") == "<4>1 line of the log was lost\n<6>seen\n");
}

TEST_CASE("a pipe that cannot be opened once more does not block either") {
  const Ends ends = make_pipe();
  const Limit limit;
  std::optional<Output> output;
  {
    const NoDescriptors none;
    output.emplace(ends.writer.get(), nullptr);
  }
  write_many(*output);
  CHECK(contains(drain(ends.reader), "<6>a line\n"));
  output->write(Level::kInfo, "the next", {});
  CHECK(drain(ends.reader).ends_with(" lines of the log were lost\n<6>the next\n"));
}

TEST_CASE("a line that was cut ends before the next one") {
  const Limit limit;
  const Ends ends = make_pipe();
  Stream stream(ends.writer.get());
  const std::string big(1 << 20, 'x');
  CHECK_FALSE(stream.put(big + '\n'));
  CHECK(drain(ends.reader).find_first_not_of('x') == std::string::npos);
  CHECK(stream.put("next\n"));
  CHECK(stream.put("last\n"));
  CHECK(drain(ends.reader) == "\nnext\nlast\n");
}

TEST_CASE("a reader that is gone does not end the program") {
  Ends sockets = make_sockets();
  sockets.reader.reset();
  Output(sockets.writer.get(), nullptr).write(Level::kInfo, "to nobody", {});
  Ends pipe = make_pipe();
  pipe.reader.reset();
  const auto before = std::signal(SIGPIPE, SIG_IGN);
  Output(pipe.writer.get(), nullptr).write(Level::kInfo, "to nobody", {});
  std::signal(SIGPIPE, before);
}

TEST_CASE("a file gets each line whole") {
  const ka::tests::TempDir dir;
  const Fd file(::open((dir.path() / "log").c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600));
  Output output(file.get(), nullptr);
  const std::string big(100000, 'x');
  output.write(Level::kInfo, big, {});
  output.write(Level::kInfo, "next", {});
  CHECK(ka::base::read_file(dir.path() / "log") == "<6>" + big + "\n<6>next\n");
}

TEST_CASE("a journald that does not read neither blocks nor hides that lines were lost") {
  const Limit limit;
  const ka::tests::TempDir dir;
  const auto address = ka::base::unix_address(dir.path() / "socket");
  REQUIRE(address);
  const Fd journald(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  REQUIRE(::bind(journald.get(), reinterpret_cast<const sockaddr*>(&*address), sizeof *address) ==
          0);
  const Ends stream = make_sockets();
  struct stat is{};
  REQUIRE(::fstat(stream.writer.get(), &is) == 0);
  Output output(stream.writer.get(),
                (std::to_string(is.st_dev) + ':' + std::to_string(is.st_ino)).c_str(),
                dir.path() / "socket");
  write_many(output);
  CHECK(contains(drain(journald), "MESSAGE=a line\n"));
  CHECK(contains(drain(stream.reader), "<6>a line\n"));
  output.write(Level::kInfo, "the next", {});
  const std::string text = drain(journald);
  CHECK(contains(text, " lines of the log were lost\nPRIORITY=4\n"));
  CHECK(contains(text, "MESSAGE=the next\n"));
}
