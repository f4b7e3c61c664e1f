"""Runs a command without a network: `python -IS launcher.py offline COMMAND...`.

The command ends with this process, and this process with its parent. Where the system lets no user take the network
away, exit status 125 says so.
"""

import ctypes
import fcntl
import os
import signal
import socket
import struct
import sys

NO_NAMESPACE = 125
_NEW_USER, _NEW_NETWORK, _DEATH_SIGNAL = 0x10000000, 0x40000000, 1
_GET_FLAGS, _SET_FLAGS, _UP = 0x8913, 0x8914, 1


def _leave_network(libc: ctypes.CDLL) -> None:
    """Keep only a loopback interface, which tests of distributed programs need. Raises OSError."""
    user, group = os.geteuid(), os.getegid()
    if libc.unshare(_NEW_USER | _NEW_NETWORK):
        raise OSError(ctypes.get_errno(), "unshare")
    for name, content in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
        with open(f"/proc/self/{name}", "w", encoding="ascii") as file:
            file.write(content)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as end:
        request = fcntl.ioctl(end, _GET_FLAGS, struct.pack("16sh14x", b"lo", 0))
        flags = struct.unpack("16sh14x", request)[1]
        fcntl.ioctl(end, _SET_FLAGS, struct.pack("16sh14x", b"lo", flags | _UP))


def main(mode: str, command: list[str]) -> int:
    """Run the command; return its exit status, 128 and its number for a signal."""
    libc = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None
    if libc is not None:
        libc.prctl(_DEATH_SIGNAL, signal.SIGKILL)
        if mode == "offline":
            try:
                _leave_network(libc)
            except OSError:
                return NO_NAMESPACE
    if not command:
        return 0
    if (child := os.fork()) == 0:
        if libc is not None:
            libc.prctl(_DEATH_SIGNAL, signal.SIGKILL)
        try:
            os.execvp(command[0], command)
        except OSError as error:
            sys.stderr.write(f"{command[0]}: {error.strerror}\n")
            os._exit(127)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return status if status >= 0 else 128 - status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
