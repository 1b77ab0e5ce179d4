// SPDX-License-Identifier: Apache-2.0
#include "guest-agent/image/image.hpp"

#include <random>

#include "guest-agent/image/archive.hpp"
#include "guest-agent/image/contents.hpp"
#include "guest-agent/image/drop_in.hpp"
#include "guest-agent/image/initrd.hpp"
#include "tests/catch.hpp"
#include "tests/temp_dir.hpp"

using namespace ka;
using Kind = image::Item::Kind;

namespace {

const std::string kAgent = std::string(
    "\x7f"
    "ELF...kata-affinity-agent 1.2.3\0...",
    36);

std::string base_archive() {
  return image::pack(
      {{Kind::kDirectory, "bin", 0755, {}}, {Kind::kFile, "init", 0755, "#!/bin/sh\n"}});
}

std::vector<image::Member> members_of(std::string_view bytes) {
  auto members = image::read_archive(bytes);
  REQUIRE(members);
  return std::move(*members);
}

/// A root of one partition, in sectors, behind a DOS partition table.
std::string disk(std::size_t begin, std::size_t size, bool has_hashes) {
  std::string bytes((begin + size) * 512, '\0');
  bytes[446 + 4] = '\x83';
  bytes[446 + 8] = static_cast<char>(begin);
  bytes[446 + 12] = static_cast<char>(size);
  if (has_hashes) bytes[462 + 12] = 1;
  bytes[510] = '\x55';
  bytes[511] = '\xaa';
  return bytes;
}

std::string refusal(const std::string& bytes) {
  const tests::TempDir files;
  files.write("image", bytes);
  const auto report = image::check_image(files.path() / "image");
  REQUIRE_FALSE(report);
  CHECK(report.error().message.find('\n') == std::string::npos);
  return report.error().message;
}

}  // namespace

TEST_CASE("a packed archive is read back, with a hard link as a second name") {
  const auto packed = image::pack({{Kind::kDirectory, "d", 0755, {}},
                                   {Kind::kFile, "d/file", 0755, "abc"},
                                   {Kind::kHardLink, "d/name", 0755, "d/file"},
                                   {Kind::kLink, "link", 0777, "d/file"}});
  CHECK(packed.size() % 4 == 0);
  const auto members = members_of(packed);
  REQUIRE(members.size() == 4);
  CHECK(members[0].mode == 0040755);
  CHECK(members[1].data == "abc");
  CHECK((members[2].inode == members[1].inode && members[2].data.empty()));
  CHECK(members[3].inode != members[1].inode);
  CHECK((members[3].mode == 0120777 && members[3].data == "d/file"));
}

TEST_CASE("an initrd with the agent keeps its content, and is recognized") {
  for (const std::string& padding : {std::string(), std::string(3, '\0'), std::string(512, '\0')}) {
    const std::string before = base_archive() + padding;
    const auto after = image::add_to_initrd(before, kAgent);
    REQUIRE(after);
    CHECK(after->starts_with(before));
    const auto read = image::read_initrd(*after);
    REQUIRE(read);
    CHECK(read->agent == "1.2.3");
    CHECK(image::read_initrd(before)->agent.empty());
    const auto again = image::add_to_initrd(*after, kAgent);
    CHECK(again == after);
  }
}

TEST_CASE("an initrd packed with the agent is recognized too") {
  const auto baked = image::pack({{Kind::kFile, "usr/bin/kata-affinity-agent", 0755, kAgent}});
  CHECK(image::read_initrd(baked + base_archive())->agent == "1.2.3");
}

TEST_CASE("a truncated initrd is rejected") {
  const std::string whole = *image::add_to_initrd(base_archive(), kAgent);
  const std::string before = base_archive();
  for (std::size_t size = 1; size < whole.size(); ++size) {
    const auto read = image::read_initrd(std::string_view(whole).substr(0, size));
    // Where our archive is cut off the rest says so; where nothing of it is left it is the old one.
    const bool is_before = size == before.size();
    CHECK((is_before ? read.has_value() : !read || size < before.size() + 4));
  }
}

TEST_CASE("random bytes are rejected as an image in one line") {
  std::mt19937 random(1);  // NOLINT(cert-msc51-cpp): the same bytes each time
  for (int i = 0; i < 200; ++i) {
    std::string bytes(1 + random() % 8192, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random());
    if (i % 2 == 0) bytes.replace(0, std::min<std::size_t>(6, bytes.size()), "070701");
    refusal(bytes);
  }
  CHECK(refusal("").find("neither an initrd nor a disk image") != std::string::npos);
}

TEST_CASE("unsupported disks are rejected with the reason") {
  CHECK(refusal(disk(8, 200, false).substr(0, 4096)).find("truncated") != std::string::npos);
  CHECK(refusal(disk(8, 16, false)).find("unknown file system") != std::string::npos);
  CHECK(refusal(disk(0, 16, false)).find("no first partition") != std::string::npos);
  std::string gpt = disk(1, 16, false);
  gpt[446 + 4] = '\xee';
  CHECK(refusal(gpt).find("GUID partition table") != std::string::npos);
  std::string xfs = disk(8, 16, false);
  xfs.replace(8 * 512, 4, "XFSB");
  CHECK(refusal(xfs).find("xfs") != std::string::npos);
  std::string long_ext4 = disk(8, 16, false);
  long_ext4.replace(8 * 512 + 1024 + 0x38, 2, "\x53\xef");
  long_ext4[8 * 512 + 1024 + 4] = 100;  // blocks of 1 KiB
  CHECK(refusal(long_ext4).find("truncated") != std::string::npos);
}

TEST_CASE("programs other than the agent are not added to images") {
  const tests::TempDir files;
  files.write("image", base_archive());
  files.write("other", "#!/bin/sh\n");
  files.write("agent", kAgent);
  for (const auto& [name, input_error] : {std::pair{"other", "is not a kata-affinity-agent"},
                                          std::pair{"agent", "is not a static program"}}) {
    const auto made =
        image::add_agent(files.path() / "image", files.path() / "new", files.path() / name);
    REQUIRE_FALSE(made);
    CHECK(made.error().message.find(input_error) != std::string::npos);
  }
  CHECK_FALSE(std::filesystem::exists(files.path() / "new"));
}

TEST_CASE("the agent's version is found within other text") {
  CHECK(image::agent_version(kAgent) == "1.2.3");
  CHECK(image::agent_version("kata-affinity-agent prestart|poststop") == "");
  CHECK(image::agent_version("kata-affinity-agent 1.2") == "");  // not the end of a word
}

TEST_CASE("the drop-in selects the image, and keeps other kernel parameters") {
  image::KataSettings kata;
  kata.kernel_params = "agent.log=debug init=/usr/bin/kata-affinity-agent";
  kata.guest_hook_path = image::kHookPath;
  const auto initrd =
      image::drop_in(kata, {.kind = image::Report::Kind::kInitrd, .path = "/a \"b\""});
  REQUIRE(initrd);
  CHECK(image::is_drop_in(*initrd));
  CHECK(initrd->find("[hypervisor.qemu]\nguest_hook_path = \"/usr/libexec/kata-affinity/hooks\"\n"
                     "image = \"\"\ninitrd = \"/a \\\"b\\\"\"\n"
                     "kernel_params = \"agent.log=debug rdinit=/usr/bin/kata-affinity-agent\"\n") !=
        std::string::npos);
  const auto disk_text = image::drop_in(kata, {.kind = image::Report::Kind::kDisk, .path = "/i"});
  CHECK(disk_text->find("kernel_params") == std::string::npos);
  CHECK(disk_text->find("image = \"/i\"\ninitrd = \"\"") != std::string::npos);
  const auto extension = image::drop_in(
      kata,
      {.kind = image::Report::Kind::kExtension, .path = "/e", .verity_params = "root_hash=1"});
  CHECK(extension->find("guest_hook_path = \"/run/kata-extensions/kata-affinity/hooks\"") !=
        std::string::npos);
  CHECK(extension->find("[[hypervisor.qemu.guest_extension_images]]\nname = \"kata-affinity\"\n"
                        "path = \"/e\"\nverity_params = \"root_hash=1\"\n") != std::string::npos);
}

TEST_CASE("conflicting Kata settings are named") {
  image::KataSettings kata;
  kata.kernel_verity_params = "root_hash=1";
  CHECK(image::drop_in(kata, {}).error().message.find("kernel_verity_params") != std::string::npos);
  CHECK(image::drop_in(kata, {.kind = image::Report::Kind::kExtension}));
  kata.guest_hook_path = "/opt/hooks";
  CHECK(image::drop_in(kata, {.kind = image::Report::Kind::kExtension}).error().code ==
        base::ErrorCode::kConflict);
}
