# SPDX-License-Identifier: Apache-2.0
"""ttrpc, and as much of protobuf as the task service needs, by hand: a shim is started for every container, and must start quickly."""

import socket
import struct
import threading
from collections.abc import Callable

_HEADER = struct.Struct(">IIBB")  # length, stream, type, flags
_REQUEST, _RESPONSE = 1, 2
_UNKNOWN = 2

Message = dict[int, list]


class RpcError(Exception):
    """An answer that is an error; `code` is gRPC's."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code


def encode(*fields: tuple[int, int | str | bytes]) -> bytes:
    """A message of numbers and of whatever has a length. Zero and the empty are left out, as protobuf does."""
    return b"".join(_field(number, value) for number, value in fields if value)


def decode(content: bytes) -> Message:
    """The fields of a message by their numbers: numbers, and bytes of whatever has a length."""
    fields: Message = {}
    at = 0
    while at < len(content):
        key, at = _read_varint(content, at)
        value: int | bytes
        if key & 7 == 2:
            length, at = _read_varint(content, at)
            value, at = content[at : at + length], at + length
        else:
            value, at = _read_varint(content, at)
        fields.setdefault(key >> 3, []).append(value)
    return fields


def text(message: Message, number: int) -> str:
    """A field that is a text; empty where there is none."""
    return message[number][0].decode() if number in message else ""


def number(message: Message, field: int) -> int:
    """A field that is a number; 0 where there is none."""
    return message[field][0] if field in message else 0


def timestamp(seconds: float) -> bytes:
    """google.protobuf.Timestamp."""
    return encode((1, int(seconds)), (2, int(seconds % 1 * 1e9)))


def serve(listener: socket.socket, call: Callable[[str, Message], bytes]) -> None:
    """Answers for ever. `call` gets a method's name and its request; each call has a thread of its own, since Wait blocks."""
    while True:
        connection, _ = listener.accept()
        threading.Thread(target=_serve_one, args=(connection, call), daemon=True).start()


def _serve_one(connection: socket.socket, call: Callable[[str, Message], bytes]) -> None:
    lock = threading.Lock()
    stream = connection.makefile("rb")
    while len(header := stream.read(_HEADER.size)) == _HEADER.size:
        length, number_of_stream, kind, _ = _HEADER.unpack(header)
        body = stream.read(length)
        if kind == _REQUEST:
            threading.Thread(target=_answer, args=(connection, lock, number_of_stream, body, call), daemon=True).start()
    connection.close()


def _answer(connection: socket.socket, lock: threading.Lock, stream: int, body: bytes, call: Callable[[str, Message], bytes]) -> None:
    request = decode(body)
    try:
        answer = encode((2, call(text(request, 2), decode(request.get(3, [b""])[0]))))
    except RpcError as error:
        answer = encode((1, encode((1, error.code), (2, str(error)))))
    except Exception as error:  # noqa: BLE001: containerd shall read of whatever went wrong
        answer = encode((1, encode((1, _UNKNOWN), (2, repr(error)))))
    with lock:
        try:
            connection.sendall(_HEADER.pack(len(answer), stream, _RESPONSE, 0) + answer)
        except OSError:
            pass  # the client has gone


def _field(number_of_field: int, value: int | str | bytes) -> bytes:
    if isinstance(value, int):
        return _varint(number_of_field << 3) + _varint(value)
    content = value.encode() if isinstance(value, str) else value
    return _varint(number_of_field << 3 | 2) + _varint(len(content)) + content


def _varint(value: int) -> bytes:
    out = b""
    while value > 0x7F:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def _read_varint(content: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = content[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at
