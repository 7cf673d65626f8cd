# SPDX-License-Identifier: Apache-2.0
"""A client of the allocation server's protocol: oldclient.py SOCKET SIZE, where SIZE is that of its messages.

It reads lines and answers each with "ok", after the server's answer in hexadecimal:

    send TYPE DEVICE SIZE BUFFER-TYPE ID [NAME [STACK]]     src/legacy/wire/legacy.h has the types
    ask TYPE DEVICE                                         sends a question and prints its answer
    text LINE                                               sends a line and prints the text that comes back
    bytes HEX                                               sends these bytes and prints what comes until the end
"""

import os
import socket
import struct
import sys

HEAD = struct.Struct("<B3xiQB3xiQQ")
SHORT = struct.Struct("<B3xiQQi4x")  # messages of 32 bytes


def message(size, kind, device=0, length=0, buffer_type=0, address=0, texts=(), pid=None):
    pid = os.getpid() if pid is None else pid
    if size == SHORT.size:
        return SHORT.pack(kind, device, length, address, pid)
    head = HEAD.pack(kind, device, length, buffer_type, pid, address, 0).ljust(72, b"\0")
    for text, room in zip(texts, (64, 512)):
        head += text.encode().ljust(room, b"\0")
    return head.ljust(size, b"\0")


def receive(connection, size):
    data = b""
    while len(data) < size and (part := connection.recv(size - len(data))):
        data += part
    return data


def print_bytes(data):
    for at in range(0, len(data), 32):
        print(data[at : at + 32].hex(" ", 8))


def main():
    path, size = sys.argv[1], int(sys.argv[2])
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(path)
        for line in sys.stdin:
            verb, *words = line.split()
            if verb == "send":
                numbers = [int(word, 0) for word in words[:5]]
                connection.sendall(message(size, *numbers, texts=words[5:]))
            elif verb == "ask":
                connection.sendall(message(size, int(words[0]), int(words[1]), pid=0))
                print_bytes(receive(connection, size))
            elif verb == "text":
                connection.sendall(" ".join(words).encode() + b"\n")
                answer = b""
                while not answer.endswith(b"\n\n") and (part := connection.recv(4096)):
                    answer += part
                print(answer.decode().rstrip("\n"))
            else:
                connection.sendall(bytes.fromhex("".join(words)))
                connection.shutdown(socket.SHUT_WR)
                print_bytes(receive(connection, 1 << 20))
            print("ok", flush=True)


main()
