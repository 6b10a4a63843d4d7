"""The kernel's table of sockets as addresses and ports."""

from __future__ import annotations

from devbay.runtimes.docker.sockets import listening

TABLE = """\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0B00007F:A2C3 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1 1
   1: 0100007F:1435 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 2 1
   2: 0100007F:1435 0100007F:D2F0 01 00000000:00000000 00:00000000 00000000  1000        0 3 1
  sl  local_address                         remote_address                        st tx_queue rx_queue
   0: 00000000000000000000000000000000:1F40 00000000000000000000000000000000:0000 0A 00000000:00000000 00
   1: 0000000000000000FFFF00000100007F:1F41 00000000000000000000000000000000:0000 0A 00000000:00000000 00
   2: 00000000000000000000000001000000:1F42 00000000000000000000000000000000:0000 0A 00000000:00000000 00
cat: /proc/net/tcp6: No such file or directory
"""


def test_listening_sockets_of_both_families_are_told_and_connections_are_not() -> None:
    assert listening(TABLE) == [
        ("127.0.0.1", 5173),
        ("::", 8000),
        ("127.0.0.1", 8001),
        ("::1", 8002),
        ("127.0.0.11", 41667),
    ]
