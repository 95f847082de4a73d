#!/usr/bin/env python3
"""Publishes requests to Penstock with Python's standard library alone.

    publish.py nats://HOST:PORT ENTRY [PREFIX] < requests.jsonl

Each line of the input is one request, a JSON object with the columns of
docs/wire.md; "time" defaults to now. A line that is none is named on standard
error and counted in Penstock-Malformed. Publishing goes on until the input ends;
while it is silent, heartbeats say that this publisher is still there.

The bus is spoken to in NATS's own text protocol, one message at a time. What is
not acknowledged is sent again, the same bytes under the same sequence.
"""

import itertools
import json
import os
import queue
import socket
import sys
import threading
import time
from urllib.parse import urlparse

MAX_ROWS, MAX_BYTES, MAX_AGE = 8192, 512 << 10, 0.1  # of a batch; bytes and s
HEARTBEAT, DISORDER, MAX_SKEW = 1.0, 1.0, 600.0  # s
ACK_TIMEOUT = 10.0  # s
MISSING = (None, "", "-", "null")

MASK = (1 << 64) - 1
P1, P2, P3, P4, P5 = (
    0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5,
)


def rotl(x, n):
    return (x << n | x >> (64 - n)) & MASK


def xxh64(data):
    """XXH64 with seed 0."""
    def mix(acc, lane):
        return rotl((acc + lane * P2) & MASK, 31) * P1 & MASK

    def word(at, size):
        return int.from_bytes(data[at:at + size], "little")

    i, n = 0, len(data)
    if n < 32:
        h = P5
    else:
        acc = [(P1 + P2) & MASK, P2, 0, -P1 & MASK]
        while i + 32 <= n:
            acc = [mix(a, word(i + 8 * k, 8)) for k, a in enumerate(acc)]
            i += 32
        h = sum(rotl(a, r) for a, r in zip(acc, (1, 7, 12, 18))) & MASK
        for a in acc:
            h = ((h ^ mix(0, a)) * P1 + P4) & MASK
    h = (h + n) & MASK
    while i + 8 <= n:
        h = (rotl(h ^ mix(0, word(i, 8)), 27) * P1 + P4) & MASK
        i += 8
    if i + 4 <= n:
        h = (rotl(h ^ word(i, 4) * P1 & MASK, 23) * P2 + P3) & MASK
        i += 4
    for b in data[i:]:
        h = rotl(h ^ b * P5 & MASK, 11) * P1 & MASK
    h = (h ^ h >> 33) * P2 & MASK
    h = (h ^ h >> 29) * P3 & MASK
    return h ^ h >> 32


def partition(row, partitions):
    """The partition of a row: by its owner, else its user, else its trace."""
    owner, user, trace = (row.get(k) if row.get(k) not in MISSING else None for k in ("owner", "user", "trace"))
    key = str(owner or user or "").encode() or bytes.fromhex(trace or "")
    return xxh64(key) % partitions if key else 0


class Bus:
    """A connection to NATS that is made again for ever."""

    def __init__(self, url):
        at = urlparse(url)
        self.at, self.user, self.password = (at.hostname, at.port or 4222), at.username, at.password
        self.sock = None
        self.asked = 0

    def connect(self):
        self.sock = socket.create_connection(self.at, timeout=5)
        self.stream = self.sock.makefile("rb")
        self.stream.readline()  # INFO {…}
        options = {"verbose": False, "pedantic": False, "headers": True, "no_responders": True, "lang": "python",
                   "version": "1", "protocol": 1, "name": "publish.py"}
        if self.user:
            options.update(user=self.user, **{"pass": self.password})
        self.inbox = "_INBOX." + os.urandom(12).hex()
        self.sock.sendall(f"CONNECT {json.dumps(options)}\r\nSUB {self.inbox}.* 1\r\nPING\r\n".encode())

    def ask(self, subject, headers, body):
        """Sends one message and returns the answer to it."""
        try:
            if self.sock is None:
                self.connect()
            self.asked += 1
            reply = f"{self.inbox}.{self.asked}"
            head = "NATS/1.0\r\n" + "".join(f"{k}: {v}\r\n" for k, v in headers.items()) + "\r\n"
            line = f"HPUB {subject} {reply} {len(head)} {len(head) + len(body)}\r\n"
            self.sock.sendall(line.encode() + head.encode() + body + b"\r\n")
            return self.answer(reply, time.monotonic() + ACK_TIMEOUT)
        except (OSError, ValueError) as e:
            self.close()
            raise ConnectionError(e) from e

    def answer(self, reply, until):
        while True:
            left = until - time.monotonic()
            if left <= 0:
                raise OSError("no answer in time")
            self.sock.settimeout(left)
            verb, *args = self.stream.readline().decode().split() or ["closed"]
            if verb == "PING":
                self.sock.sendall(b"PONG\r\n")
            elif verb in ("MSG", "HMSG"):  # subject, sid, …, length of the whole
                message = self.stream.read(int(args[-1]) + 2)[:-2]
                if args[0] == reply:
                    if verb == "HMSG":  # only "503 No Responders" has headers here
                        raise OSError(message.split(b"\r\n")[0].decode())
                    return json.loads(message)
            elif verb == "-ERR" or verb == "closed":
                raise OSError(" ".join(args) or "the connection was closed")

    def close(self):
        if self.sock is not None:
            self.sock.close()
            self.sock = None


class Publisher:
    """One run: everything that this process publishes."""

    def __init__(self, bus, entry, prefix):
        self.bus, self.entry, self.prefix = bus, entry, prefix + "." if prefix else ""
        self.stream = prefix + "_EVENTS" if prefix else "EVENTS"
        info = self.until_answered("$JS.API.STREAM.INFO." + self.stream, {}, b"", "config")
        self.partitions = int(info["config"]["metadata"]["penstock.partitions"])
        self.run = f"{int(time.time() * 1000):012x}{os.urandom(10).hex()}"  # another one at each start
        self.open = [[] for _ in range(self.partitions)]
        self.size = [0] * self.partitions
        self.seq = [0] * self.partitions
        self.horizon = [-2208988800000000] * self.partitions  # what was announced, µs
        self.malformed = 0  # lines since the last batch of partition 0
        self.said = time.monotonic()  # when all partitions had last said something

    def until_answered(self, subject, headers, body, wanted):
        wait = 0.05
        while True:
            try:
                answer = self.bus.ask(subject, headers, body)
                if wanted in answer:
                    return answer
                print(f"{subject}: {answer.get('error')}; trying again", file=sys.stderr)
            except ConnectionError as e:
                print(f"{subject}: {e}; trying again", file=sys.stderr)
            time.sleep(wait)
            wait = min(2 * wait, 1)

    def take(self, line, number):
        try:
            row = json.loads(line)
            if not isinstance(row, dict):
                raise ValueError("not a JSON object")
            if len(line) > MAX_BYTES:
                raise ValueError(f"longer than {MAX_BYTES} bytes")
            self.add(row)
        except (ValueError, TypeError, RecursionError) as e:  # add raises them before it does anything
            print(f"line {number} is left out: {e}", file=sys.stderr)
            self.malformed += 1

    def add(self, row):
        now = time.time()
        if row.get("time") in MISSING:
            row["time"] = int(now * 1e6)
        p = partition(row, self.partitions)
        if isinstance(row["time"], int):  # in µs here
            row["mark"] = 2 if row["time"] > (now + MAX_SKEW) * 1e6 else 1 if row["time"] < self.horizon[p] else 0
        line = json.dumps(row, ensure_ascii=False, separators=(",", ":")).encode()
        if self.size[p] + len(line) > MAX_BYTES or len(self.open[p]) == MAX_ROWS:
            self.cut(p)
        self.open[p].append(line)
        self.size[p] += len(line) + 1

    def watermark(self):
        return int((time.time() - DISORDER) * 1e6)

    def cut(self, p):
        """Closes and sends the batch of a partition."""
        rows, self.open[p], self.size[p] = self.open[p], [], 0
        malformed = {}
        if p == 0 and self.malformed:
            malformed, self.malformed = {"Penstock-Malformed": self.malformed}, 0
        if not rows and not malformed:
            return
        self.seq[p] += 1
        self.horizon[p] = max(self.horizon[p], self.watermark())
        self.until_answered(f"{self.prefix}events.{p}.{self.entry}", {
            "Penstock-Schema": "request/1", "Penstock-Encoding": "jsonl", "Penstock-Run": self.run,
            "Penstock-Seq": self.seq[p], "Penstock-Rows": len(rows), "Penstock-Watermark": self.horizon[p], **malformed,
        }, b"\n".join(rows), "seq")

    def cut_all(self):
        for p in range(self.partitions):
            self.cut(p)

    def mark(self, kind):
        """A heartbeat or the end: holds for all partitions, so everything is cut first."""
        self.cut_all()
        self.horizon = [max(*self.horizon, self.watermark())] * self.partitions
        self.until_answered(f"{self.prefix}events.all.{self.entry}", {
            "Penstock-Schema": "mark/1", "Penstock-Run": self.run, "Penstock-Mark": kind,
            "Penstock-Watermark": self.horizon[0], "Penstock-Upto": ",".join(map(str, self.seq)),
        }, b"", "seq")
        self.said = time.monotonic()


def main():
    args = sys.argv[1:]
    if not 2 <= len(args) <= 3 or not args[0].startswith("nats://"):
        print(__doc__, file=sys.stderr)
        sys.exit(2)
    url, entry, prefix = (args + [""])[:3]
    publisher = Publisher(Bus(url), entry, prefix)
    number = 0
    lines = queue.Queue(100_000)
    threading.Thread(target=lambda: [lines.put(x) for x in itertools.chain(sys.stdin.buffer, [None])], daemon=True).start()
    last_cut = time.monotonic()
    while True:
        try:
            line = lines.get(timeout=MAX_AGE)
            if line is None:
                break
            number += 1
            if line.strip():
                publisher.take(line, number)
        except queue.Empty:
            pass
        now = time.monotonic()
        if now - last_cut >= MAX_AGE:
            publisher.cut_all()
            last_cut = now
        if now - publisher.said >= HEARTBEAT:
            publisher.mark("heartbeat")
    publisher.mark("end")
    print(json.dumps({"run": publisher.run, "sequences": publisher.seq}))


if __name__ == "__main__":
    main()
