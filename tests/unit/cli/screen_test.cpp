// SPDX-License-Identifier: Apache-2.0
#include "affinity/cli/terminal/screen.hpp"

#include "tests/catch.hpp"

using namespace ka;

TEST_CASE("a line is broken at blanks and after commas, and continues indented") {
  CHECK(cli::wrapped("one two three four", 9, 2) == "one two\n  three\n  four");
  CHECK(cli::wrapped("0-1,4-5,8-9,12-13", 8, 0) == "0-1,4-5,\n8-9,\n12-13");
  CHECK(cli::wrapped("short", 9, 2) == "short");
  CHECK(cli::wrapped("", 9, 2).empty());
}

TEST_CASE("a word longer than the line stays whole") {
  CHECK(cli::wrapped("abcdefghij kl", 5, 3) == "abcdefghij\n   kl");
  CHECK(cli::wrapped("abcdefghij", 5, 3) == "abcdefghij");
  CHECK(cli::wrapped("   abcdefghij", 5, 8) == "   abcdefghij");
  CHECK(cli::wrapped("abc      ", 5, 8) == "abc      ");
}

TEST_CASE("a terminal's text is wrapped line by line; a file's is not") {
  CHECK(cli::fit("  a bb ccc\nd\n", 8) == "  a bb\n      ccc\nd\n");
  CHECK(cli::fit("\n\nx\n", 8) == "\n\nx\n");
  const std::string wide = std::string(300, 'x') + " y\n";
  CHECK(cli::fit(wide, 0) == wide);
}

TEST_CASE("without a terminal there is no width") { CHECK_FALSE(cli::screen_of(-1).is_terminal()); }
