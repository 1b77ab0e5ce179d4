# SPDX-License-Identifier: Apache-2.0
"""How each system call may fail on a node that is out of something, hardened or broken: from its man page, without errors
that only a wrong argument has (EBADF, EFAULT), and without those that say that something is gone, which would be a lie."""

NO_DESCRIPTOR = ["EMFILE", "ENFILE", "ENOMEM"]
NO_LOOK = ["EACCES", "ENOMEM", "EIO"]
NO_WRITE = ["ENOSPC", "EROFS", "EACCES"]
NO_MEMORY = ["ENOMEM", "ENOBUFS"]

ERRNOS = {
    "accept": [*NO_DESCRIPTOR, "ECONNABORTED", "EINTR"],
    "accept4": [*NO_DESCRIPTOR, "ECONNABORTED", "EINTR"],
    "access": NO_LOOK,
    "bind": ["EADDRINUSE", "EACCES", "EROFS", "ENOMEM"],
    "clock_nanosleep": ["EINTR"],
    "clone": ["EAGAIN", "ENOMEM"],
    "clone3": ["EAGAIN", "ENOMEM", "ENOSYS"],
    "connect": ["ECONNREFUSED", "EACCES", "EAGAIN", "EINTR", "ETIMEDOUT"],
    "dup": ["EMFILE"],
    "epoll_create1": NO_DESCRIPTOR,
    "epoll_ctl": ["ENOSPC", "ENOMEM"],
    "epoll_pwait": ["EINTR"],
    "epoll_wait": ["EINTR"],
    "eventfd2": NO_DESCRIPTOR,
    "faccessat2": [*NO_LOOK, "ENOSYS"],
    "fallocate": ["ENOSPC", "EIO", "EINTR"],
    "fchmod": ["EPERM", "EROFS", "EIO"],
    "fchown": ["EPERM", "EROFS", "EIO"],
    "fcntl": ["EMFILE"],
    "fdatasync": ["EIO", "ENOSPC", "EINTR"],
    "flock": ["EAGAIN", "ENOLCK", "EINTR"],
    "fstat": ["ENOMEM", "EIO"],
    "fstatfs": ["ENOMEM", "EIO", "EINTR"],
    "fsync": ["EIO", "ENOSPC", "EINTR"],
    "getdents64": ["EIO", "ENOMEM"],
    "get_mempolicy": ["ENOSYS", "EPERM"],
    "getpeername": NO_MEMORY,
    "getpriority": ["EPERM", "ESRCH"],
    "getrandom": ["EAGAIN", "EINTR", "ENOSYS"],
    "getsockname": NO_MEMORY,
    "getsockopt": NO_MEMORY,
    "inotify_add_watch": ["ENOSPC", "ENOMEM", "EACCES"],
    "inotify_init1": NO_DESCRIPTOR,
    "ioctl": ["ENOTTY", "EPERM", "EIO"],
    "listen": ["EADDRINUSE", "ENOMEM"],
    "mkdir": NO_WRITE,
    "mlockall": ["ENOMEM", "EPERM", "EAGAIN"],
    "mmap": ["ENOMEM", "EAGAIN", "ENFILE"],
    "mprotect": ["ENOMEM", "EACCES"],
    "newfstatat": NO_LOOK,
    "openat": [*NO_DESCRIPTOR, "EACCES", "EINTR", "EIO", "ENOSPC"],
    "pidfd_getfd": [*NO_DESCRIPTOR, "EPERM", "ENOSYS"],
    "pidfd_open": [*NO_DESCRIPTOR, "ENOSYS"],
    "pipe2": NO_DESCRIPTOR,
    "poll": ["EINTR", "ENOMEM"],
    "ppoll": ["EINTR", "ENOMEM"],
    "prctl": ["EPERM", "EINVAL"],
    "pread64": ["EIO", "EINTR", "ENOMEM"],
    "prlimit64": ["EPERM"],
    "pwrite64": ["EIO", "ENOSPC", "EINTR"],
    "read": ["EIO", "EINTR", "ENOMEM"],
    "readlink": NO_LOOK,
    "readlinkat": NO_LOOK,
    "recvfrom": ["ECONNRESET", "EINTR", "ENOMEM"],
    "recvmsg": ["ECONNRESET", "EINTR", "ENOMEM"],
    "rename": NO_WRITE,
    "renameat2": NO_WRITE,
    "sched_getaffinity": ["EPERM", "ESRCH", "ENOMEM"],
    "sched_setaffinity": ["EINVAL", "EPERM", "EAGAIN", "ESRCH", "ENOMEM"],
    "sched_setscheduler": ["EPERM", "EINVAL"],
    "sendmsg": ["EPIPE", "ECONNRESET", "EINTR", "ENOBUFS"],
    "sendto": ["EPIPE", "ECONNRESET", "EINTR", "ENOBUFS"],
    "setpriority": ["EPERM", "EACCES", "ESRCH"],
    "setsockopt": NO_MEMORY,
    "set_mempolicy": ["ENOMEM", "ENOSYS", "EPERM"],
    "shutdown": ["ENOTCONN"],
    "socket": [*NO_DESCRIPTOR, "ENOBUFS", "EACCES"],
    "socketpair": NO_DESCRIPTOR,
    "statfs": ["EACCES", "ENOMEM", "EIO", "EINTR"],
    "statx": [*NO_LOOK, "ENOSYS"],
    "tgkill": ["EPERM", "EAGAIN"],
    "timerfd_create": NO_DESCRIPTOR,
    "unlink": ["EROFS", "EBUSY", "EACCES", "EIO"],
    "wait4": ["EINTR"],
    "waitid": ["EINTR"],
    "write": ["EIO", "ENOSPC", "EINTR", "EPIPE"],
    "writev": ["EIO", "ENOSPC", "EINTR", "EPIPE"],
}
# Memory, and a filter of system calls.
ANY_OTHER = ["ENOMEM", "EPERM"]
# They have no way to fail (brk answers with the old break, never an errno; close has closed whatever it says), or failing them
# tells of the C library alone.
NEVER_FAIL = {"brk", "exit", "exit_group", "execve", "rt_sigreturn", "restart_syscall", "arch_prctl", "set_tid_address",
              "set_robust_list", "rseq", "futex", "rt_sigaction", "rt_sigprocmask", "getpid", "gettid", "geteuid", "getuid",
              "getegid", "getgid",
              "umask", "munmap", "close", "sched_yield", "madvise", "uname"}

# Signals, and peers that leave, come once.
PASSING = {"EINTR", "ECONNABORTED", "ECONNRESET", "EPIPE"}


def errnos_of(call):
    return ERRNOS.get(call, ANY_OTHER)


def may_be(call, errno, when):
    """A kernel without a call never has it; without any memory the dynamic loader dies before a word can be said."""
    if errno == "ENOSYS":
        return when == "1+"
    for_good = when.endswith("+")
    return not for_good or (errno not in PASSING and (call, when) not in (("mmap", "1+"), ("mprotect", "1+")))
