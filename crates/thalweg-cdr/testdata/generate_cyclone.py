#!/usr/bin/env python3
"""Writes cyclone-11.0.1.txt: what Cyclone DDS makes of the values of tests/it/golden.rs.

    python3 -m venv venv && venv/bin/pip install cyclonedds==11.0.1
    venv/bin/python generate_cyclone.py > cyclone-11.0.1.txt

A line is: type, value, encoding (x1le, x1be, x2le, x2be), part (data or key), and the payload in hexadecimal; or type,
value, "wire", part (data, key, keyhash) and what Cyclone's C library sent of it over the loopback interface.
"""

import os
import re
import struct
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from typing import Dict, Optional

from cyclonedds.idl import IdlEnum, IdlStruct, IdlUnion
from cyclonedds.idl._support import Endianness
from cyclonedds.idl import annotations as annotate
from cyclonedds.idl.types import (
    array, bounded_str, case, char, default, float32, float64, int8, int16, int32, int64, sequence, uint8, uint16,
    uint32, uint64,
)


@dataclass
@annotate.appendable
class ShapeType(IdlStruct, typename="ShapeType"):
    color: bounded_str[128]
    annotate.key("color")
    x: int32
    y: int32
    shapesize: int32
    additional_payload_size: sequence[uint8]


@dataclass
@annotate.final
class Numbers(IdlStruct, typename="Numbers"):
    a: bool
    b: uint64
    c: int8
    d: int16
    e: uint8
    f: float64
    g: char
    h: uint16
    i: float32
    j: int64
    k: uint32
    l: int32


class Color(IdlEnum, typename="Color", default="Green"):
    Red = 0
    Green = 5
    Blue = 6


@annotate.bit_bound(8)
class Small(IdlEnum, typename="Small", default="One"):
    One = 1
    Two = 2


@annotate.bit_bound(16)
class Medium(IdlEnum, typename="Medium", default="Near"):
    Near = 1
    Far = 300


@dataclass
@annotate.final
class Point(IdlStruct, typename="Point"):
    x: float64
    y: float32


@dataclass
@annotate.appendable
class Note(IdlStruct, typename="Note"):
    level: uint8
    text: str


@dataclass
@annotate.final
class Sequences(IdlStruct, typename="Sequences"):
    bytes: sequence[uint8]
    shorts: sequence[int16]
    longs: sequence[uint32]
    doubles: sequence[float64]
    bools: sequence[bool]
    texts: sequence[str]
    points: sequence[Point]
    notes: sequence[Note]
    colors: sequence[Color]
    nested: sequence[sequence[uint16]]
    bounded: sequence[int64, 3]


@dataclass
@annotate.final
class Arrays(IdlStruct, typename="Arrays"):
    bytes: array[uint8, 3]
    matrix: array[array[int32, 3], 2]
    doubles: array[float64, 2]
    texts: array[str, 2]
    grid: array[array[str, 2], 2]
    points: array[Point, 2]
    rows: sequence[array[int16, 3]]
    last: uint8


@dataclass
@annotate.final
class Enums(IdlStruct, typename="Enums"):
    color: Color
    first: uint8
    second: Color


@dataclass
@annotate.final
class BoundedEnums(IdlStruct, typename="BoundedEnums"):
    small: Small
    medium: Medium
    color: Color
    smalls: sequence[Small]


class Choice(IdlUnion, discriminator=int32, typename="Choice"):
    number: case[1, int64]
    text: case[[2, 3], str]
    other: default[uint8]


@annotate.appendable
class Growing(IdlUnion, discriminator=Color, typename="Growing"):
    point: case[Color.Red, Point]
    note: case[Color.Blue, Note]


@dataclass
@annotate.final
class Unions(IdlStruct, typename="Unions"):
    lead: uint8
    first: Choice
    second: Choice
    third: Choice
    fourth: Growing
    fifth: sequence[Growing]


@dataclass
@annotate.final
class FinalOptionals(IdlStruct, typename="FinalOptionals"):
    lead: uint8
    number: Optional[float64]
    text: Optional[str]
    point: Optional[Point]
    last: uint16


@dataclass
@annotate.appendable
class AppendableOptionals(IdlStruct, typename="AppendableOptionals"):
    lead: uint8
    number: Optional[float64]
    text: Optional[str]
    last: uint16


@dataclass
@annotate.mutable
class Mutable(IdlStruct, typename="Mutable"):
    one: uint8
    two: uint16
    four: float32
    annotate.member_id("four", 100)
    annotate.must_understand("four")
    eight: uint64
    text: str
    bytes: sequence[uint8]
    shorts: sequence[int16]
    longs: sequence[int32]
    doubles: sequence[float64]
    texts: sequence[str]
    block: array[uint32, 2]
    point: Point
    note: Note
    maybe: Optional[int32]
    never: Optional[str]
    color: Color
    annotate.member_id("color", 0x123456)
    choice: Choice


@dataclass
@annotate.mutable
class Outer(IdlStruct, typename="Outer"):
    lead: uint8
    inner: Mutable
    list: sequence[Mutable]
    last: uint8


@dataclass
@annotate.mutable
@annotate.autoid("hash")
class Hashed(IdlStruct, typename="Hashed"):
    color: uint32
    shapesize: uint8


@dataclass
@annotate.final
class ShortKey(IdlStruct, typename="ShortKey"):
    data: str
    id: uint8
    annotate.key("id")
    number: uint64
    annotate.key("number")
    rest: sequence[str]


@dataclass
@annotate.final
class Inner(IdlStruct, typename="Inner"):
    ignored: str
    group: uint16
    annotate.key("group")


@dataclass
@annotate.appendable
class NestedKey(IdlStruct, typename="NestedKey"):
    lead: uint8
    inner: Inner
    annotate.key("inner")
    point: Point
    annotate.key("point")
    last: str


@dataclass
@annotate.mutable
class MutableKey(IdlStruct, typename="MutableKey"):
    late: uint32
    annotate.member_id("late", 9)
    annotate.key("late")
    text: str
    annotate.member_id("text", 5)
    early: uint8
    annotate.member_id("early", 2)
    annotate.key("early")


@dataclass
@annotate.appendable
class UnorderedKey(IdlStruct, typename="UnorderedKey"):
    late: uint32
    annotate.member_id("late", 9)
    annotate.key("late")
    text: str
    annotate.member_id("text", 5)
    early: uint8
    annotate.member_id("early", 2)
    annotate.key("early")


@dataclass
@annotate.final
class TextKey(IdlStruct, typename="TextKey"):
    a: bounded_str[11]
    annotate.key("a")
    b: int32


@dataclass
@annotate.final
class LongTextKey(IdlStruct, typename="LongTextKey"):
    a: bounded_str[12]
    annotate.key("a")
    b: int32


@dataclass
@annotate.final
class Maps(IdlStruct, typename="Maps"):
    numbers: Dict[int32, float64]
    last: uint8


def mutable(seed: int) -> Mutable:
    return Mutable(
        one=seed, two=515, four=1.5, eight=0x0102030405060708, text="grün", bytes=[1, 2, 3], shorts=[-1, 2, -3],
        longs=[1, -2], doubles=[0.5], texts=["", "a"], block=[7, 8], point=Point(x=1.25, y=-2.5),
        note=Note(level=3, text="n"), maybe=-7, never=None, color=Color.Blue, choice=Choice(number=-9),
    )


VALUES = {
    "blue": ShapeType(color="BLUE", x=10, y=-20, shapesize=30, additional_payload_size=[]),
    "payload": ShapeType(color="", x=0, y=0, shapesize=1, additional_payload_size=[255, 254, 253]),
    "mixed": Numbers(a=True, b=0x0102030405060708, c=-2, d=-300, e=200, f=-0.1, g="x", h=60000, i=3.5, j=-5,
                     k=4000000000, l=-2000000000),
    "some": Sequences(
        bytes=[1, 2, 3], shorts=[-1, 300], longs=[4000000000], doubles=[0.1, -0.2], bools=[True, False],
        texts=["one", ""], points=[Point(x=1.0, y=2.0), Point(x=3.0, y=4.0)],
        notes=[Note(level=1, text="a"), Note(level=2, text="bc")], colors=[Color.Blue, Color.Red],
        nested=[[1, 2, 3], [], [4]], bounded=[-1, -2, -3]),
    "none": Sequences(bytes=[], shorts=[], longs=[], doubles=[], bools=[], texts=[], points=[], notes=[], colors=[],
                      nested=[], bounded=[]),
    "full": Arrays(
        bytes=[1, 2, 3], matrix=[[1, 2, 3], [4, 5, 6]], doubles=[0.5, 0.25], texts=["a", "bc"],
        grid=[["p", "q"], ["r", "s"]], points=[Point(x=1.0, y=2.0), Point(x=3.0, y=4.0)],
        rows=[[1, 2, 3], [4, 5, 6]], last=9),
    "literals": Enums(color=Color.Green, first=1, second=Color.Blue),
    "bounded": BoundedEnums(small=Small.Two, medium=Medium.Far, color=Color.Blue, smalls=[Small.One, Small.Two]),
    "branches": Unions(
        lead=1, first=Choice(number=-5), second=Choice(text="two"), third=Choice(discriminator=77, value=8),
        fourth=Growing(note=Note(level=4, text="x")),
        fifth=[Growing(point=Point(x=0.5, y=1.5)), Growing(note=Note(level=1, text=""))]),
    "present": FinalOptionals(lead=1, number=2.5, text="abc", point=Point(x=1.0, y=2.0), last=7),
    "absent": FinalOptionals(lead=1, number=None, text=None, point=None, last=7),
    "half": AppendableOptionals(lead=1, number=None, text="t", last=7),
    "members": mutable(1),
    "nested": Outer(lead=5, inner=mutable(2), list=[mutable(3)], last=6),
    "hashed": Hashed(color=1, shapesize=2),
    "short": ShortKey(data="data", id=7, number=0x1122334455667788, rest=["a"]),
    "inner": NestedKey(lead=1, inner=Inner(ignored="no", group=515), point=Point(x=1.5, y=2.5), last="end"),
    "mutable": MutableKey(late=0x01020304, text="text", early=5),
    "unordered": UnorderedKey(late=0x01020304, text="text", early=5),
    "eleven": TextKey(a="abc", b=1),
    "twelve": LongTextKey(a="abc", b=1),
    "map": Maps(numbers={-2: 1.5, 1: 0.5}, last=3),
}

# What Cyclone's core does not know, or the Python binding does not hand to it as the specification has it.
NOT_ON_THE_WIRE = {"map", "hashed"}


def print_serialized():
    for name, value in VALUES.items():
        for encoding, order, version_2 in [
            ("x1le", Endianness.Little, False), ("x1be", Endianness.Big, False),
            ("x2le", Endianness.Little, True), ("x2be", Endianness.Big, True),
        ]:
            typename = type(value).__idl_typename__
            data = value.serialize(endianness=order, use_version_2=version_2)
            print(typename, name, encoding, "data", data.hex())
            type(value).__idl__.populate()
            if not type(value).__idl__.keyless:
                key = value.serialize_key(endianness=order, use_version_2=version_2)
                print(typename, name, encoding, "key", key.hex())


# The second part: samples and disposes as the C library sends them, out of its own packet capture.

CONFIGURATION = """<CycloneDDS><Domain><General><Interfaces><NetworkInterface name="lo"/></Interfaces>
<AllowMulticast>false</AllowMulticast></General><Discovery><ParticipantIndex>auto</ParticipantIndex><Peers>
<Peer address="127.0.0.1"/></Peers></Discovery><Internal><GenerateKeyhash>true</GenerateKeyhash></Internal>
<Tracing><PacketCaptureFile>{capture}</PacketCaptureFile></Tracing></Domain></CycloneDDS>"""
DOMAIN = 113


def entity(participant, value, representation, role):
    from cyclonedds.core import Policy, Qos
    from cyclonedds.topic import Topic
    qos = Qos(Policy.Reliability.Reliable(10**9), Policy.DataRepresentation(
        use_cdrv0_representation=representation == 1, use_xcdrv2_representation=representation == 2))
    topic = Topic(participant, f"{type(value).__idl_typename__}{representation}", type(value), qos=qos)
    return role(participant, topic, qos=qos)


def wire_values():
    for representation in (1, 2):
        for name, value in VALUES.items():
            if name not in NOT_ON_THE_WIRE:
                yield representation, name, value


def be_reader():
    from cyclonedds.domain import DomainParticipant
    from cyclonedds.sub import DataReader
    participant = DomainParticipant(DOMAIN)
    readers = [entity(participant, value, representation, DataReader)
               for representation, name, value in wire_values()]
    print("ready", flush=True)
    sys.stdin.read()
    del readers


def print_sent():
    from cyclonedds.core import DDSException
    from cyclonedds.domain import DomainParticipant
    from cyclonedds.pub import DataWriter
    with tempfile.TemporaryDirectory() as directory:
        capture = os.path.join(directory, "sent.pcap")
        os.environ["CYCLONEDDS_URI"] = CONFIGURATION.format(capture=os.path.join(directory, "reader.pcap"))
        reader = subprocess.Popen([sys.executable, __file__, "reader"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        reader.stdout.readline()
        os.environ["CYCLONEDDS_URI"] = CONFIGURATION.format(capture=capture)
        participant = DomainParticipant(DOMAIN)
        sent = []
        for representation, name, value in wire_values():
            writer = entity(participant, value, representation, DataWriter)
            while not writer.get_matched_subscriptions():
                time.sleep(0.01)
            try:
                writer.write(value)
            except DDSException as error:
                print(type(value).__idl_typename__, representation, error, file=sys.stderr)
                continue
            if not type(value).__idl__.keyless:
                writer.dispose(value)
            writer.wait_for_acks(10**9)
            sent.append((representation, name, value, writer))
        time.sleep(0.3)
        reader.stdin.close()
        reader.wait()
        datas = list(user_data(open(capture, "rb").read()))
        for index, (representation, name, value, writer) in enumerate(sent):
            key = writer.guid.bytes[12:15]
            for entity_id, kind, payload, keyhash in datas:
                if entity_id[:3] == key:
                    keyed = not type(value).__idl__.keyless
                    if kind == "data":
                        print(type(value).__idl_typename__, name, f"wire{representation}", "data", payload.hex())
                        if keyed:
                            print(type(value).__idl_typename__, name, f"wire{representation}", "keyhash", keyhash.hex())
                    elif keyed:
                        print(type(value).__idl_typename__, name, f"wire{representation}", "key", payload.hex())


def user_data(pcap: bytes):
    """The DATA submessages of user writers: entity id, data or key, payload, key hash."""
    at = 24
    seen = set()
    while at < len(pcap):
        length = struct.unpack_from("<I", pcap, at + 8)[0]
        packet = pcap[at + 16:at + 16 + length]
        at += 16 + length
        start = packet.find(b"RTPS")
        if start < 0:
            continue
        offset = start + 20
        while offset + 4 <= len(packet):
            kind, flags, size = struct.unpack_from("<BBH", packet, offset)
            end = offset + 4 + size if size else len(packet)
            body = packet[offset + 4:end]
            offset = end
            if kind != 0x15 or body[11] & 0xc0 == 0xc0:
                continue
            writer, number = body[8:12], body[12:20]
            position = 4 + struct.unpack_from("<H", body, 2)[0]
            keyhash = b""
            if flags & 2:
                while True:
                    pid, plen = struct.unpack_from("<HH", body, position)
                    position += 4
                    if pid == 1:
                        break
                    if pid == 0x70:
                        keyhash = body[position:position + plen]
                    position += plen
            if (writer, number) in seen or not flags & 0xc:
                continue
            seen.add((writer, number))
            yield writer, "data" if flags & 4 else "key", body[position:], keyhash


if __name__ == "__main__":
    if sys.argv[1:] == ["reader"]:
        be_reader()
    else:
        print_serialized()
        print_sent()
