// SPDX-License-Identifier: Apache-2.0
// xfs, which only a kernel reads and writes: it is mounted, where no other process sees it, and
// nothing of the image is followed out of it.
#include <fcntl.h>
#include <linux/openat2.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <optional>

#include "base/fd.hpp"
#include "base/files.hpp"
#include "guest-agent/image/contents.hpp"
#include "guest-agent/image/disk.hpp"
#include "guest-agent/image/program.hpp"
#include "guest-agent/image/work_directory.hpp"

namespace ka::image {
namespace {

namespace fs = std::filesystem;
using base::ErrorCode;
using base::Fd;
using base::Result;
using Kind = Item::Kind;

enum class Access { kRead, kWrite };

/// Of this process alone, so that the mount ends with it, however it ends.
Result<void> leave_mount_namespace() {
  const bool done = ::unshare(CLONE_NEWNS) == 0 &&
                    ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
  if (done) return {};
  return base::fail_errno(errno, "its root file system is xfs, which must be mounted");
}

/// The file system of an image, mounted for as long as this object is there.
class Mounted {
 public:
  explicit Mounted(const fs::path& parent) : work_(parent) {}
  Mounted(const Mounted&) = delete;
  Mounted& operator=(const Mounted&) = delete;
  ~Mounted() { unmount(); }

  Result<void> mount(const fs::path& image, std::uint64_t offset, Access access) {
    if (!work_.good()) return unexpected(work_.error());
    if (auto alone = leave_mount_namespace(); !alone) return alone;
    // An image may be a copy of one that is mounted: nouuid. Not even its log is written:
    // norecovery.
    const std::string options = "loop,nodev,nosuid,noexec,nouuid,offset=" + std::to_string(offset) +
                                (access == Access::kRead ? ",ro,norecovery" : "");
    const auto ended = run({.words = {"mount", "-t", "xfs", "-o", options, "--",
                                      fs::absolute(image).native(), work_.path().native()},
                            .directory = {},
                            .input = {}});
    if (!ended) return unexpected(ended.error());
    if (ended->status != 0) {
      return base::fail(
          ErrorCode::kInvalid,
          "its xfs cannot be mounted: it is damaged, or this kernel does not support xfs");
    }
    root_ = Fd(::open(work_.path().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    return {};
  }

  /// Flushes writes to the image. False: they may be lost.
  bool unmount() {
    if (!root_) return false;
    root_ = Fd();
    return ::umount2(work_.path().c_str(), 0) == 0;
  }

  int root() const { return root_.get(); }

 private:
  WorkDirectory work_;
  Fd root_;
};

/// `path` as it is in the image: a symbolic link leads nowhere else.
Fd open_inside(int root, const fs::path& path, int flags) {
  open_how how{};
  how.flags = static_cast<decltype(how.flags)>(flags | O_CLOEXEC);
  how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS;
  const std::string name = path.empty() ? "." : path.native();
  return Fd(static_cast<int>(::syscall(SYS_openat2, root, name.c_str(), &how, sizeof how)));
}

Fd open_parent(int root, const fs::path& path) {
  return open_inside(root, path.parent_path(), O_PATH | O_DIRECTORY);
}

bool is_regular(const Fd& file) {
  struct stat status{};
  return file && ::fstat(file.get(), &status) == 0 && S_ISREG(status.st_mode);
}

bool write_all(int file, std::string_view data) {
  while (!data.empty()) {
    const ssize_t written = ::write(file, data.data(), data.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    data.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

bool make_file(int parent, const char* name, const Item& item) {
  const Fd file(::openat(parent, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  return file && write_all(file.get(), item.data) && ::fchown(file.get(), 0, 0) == 0 &&
         ::fchmod(file.get(), item.mode) == 0;
}

bool make_hard_link(int root, int parent, const char* name, const fs::path& target) {
  const Fd from = open_parent(root, target);
  return from && ::linkat(from.get(), target.filename().c_str(), parent, name, 0) == 0;
}

/// False, with errno: it is not there now.
bool make_item(int root, const Item& item) {
  const fs::path path(item.path);
  const std::string name = path.filename();
  const Fd parent = open_parent(root, path);
  if (!parent) return false;
  if (item.kind == Kind::kDirectory) {
    return ::mkdirat(parent.get(), name.c_str(), item.mode) == 0 || errno == EEXIST;
  }
  if (::unlinkat(parent.get(), name.c_str(), 0) != 0 && errno != ENOENT) return false;
  switch (item.kind) {
    case Kind::kLink:
      return ::symlinkat(item.data.c_str(), parent.get(), name.c_str()) == 0;
    case Kind::kHardLink:
      return make_hard_link(root, parent.get(), name.c_str(), item.data);
    default:
      return make_file(parent.get(), name.c_str(), item);
  }
}

}  // namespace

Result<Contents> read_xfs(const fs::path& image, std::uint64_t offset) {
  Mounted mounted(fs::temp_directory_path());
  if (auto done = mounted.mount(image, offset, Access::kRead); !done) {
    return unexpected(done.error());
  }
  Contents contents;
  contents.systemd = is_regular(open_inside(mounted.root(), "usr/lib/systemd/systemd", O_PATH));
  const Fd agent = open_inside(mounted.root(), kAgentPath + 1, O_RDONLY | O_NONBLOCK);
  if (!is_regular(agent)) return contents;
  const auto bytes = base::read_file("/proc/self/fd/" + std::to_string(agent.get()), kMostAgent);
  if (!bytes) return unexpected(bytes.error());
  contents.agent = agent_version(*bytes);
  return contents;
}

Result<void> add_to_xfs(const fs::path& image, std::uint64_t offset, const std::string& agent) {
  Mounted mounted(fs::absolute(image).parent_path());
  if (auto done = mounted.mount(image, offset, Access::kWrite); !done) return done;
  for (const Item& item : files_of_root(agent)) {
    if (make_item(mounted.root(), item)) continue;
    return base::fail_errno(errno, "cannot write the agent: /" + item.path);
  }
  if (!mounted.unmount()) return base::fail_errno(errno, "cannot write the agent");
  return {};
}

}  // namespace ka::image
