"""Asks Cyclone DDS which pairs of types match: `pairs.py FILE` prints FILE with its verdicts, yes or no, before each pair.

A line is `verdict | IDL of the writer's type T | IDL of the reader's`. Each pair gets a topic with a writer and a reader in two
participants; the types of both have other names, so that assignability alone decides. Of IDL, what the file needs is understood.

`pairs.py FILE writers` and `pairs.py FILE readers` have one end of each pair, of the type `w<number>::T` or `r<number>::T` on the topic
`pair<number>` in XCDR2, and leave the other to somebody else: they print `ready`, and the verdicts once a line comes in.
"""

import os
import re
import sys
import time
from typing import Optional

from cyclonedds.core import Policy, Qos
from cyclonedds.domain import DomainParticipant
from cyclonedds.idl import annotations as annotate
from cyclonedds.idl import make_idl_bitmask, make_idl_enum, make_idl_struct, make_idl_union, types
from cyclonedds.pub import DataWriter
from cyclonedds.sub import DataReader
from cyclonedds.topic import Topic

DOMAIN = int(os.environ.get("PAIRS_DOMAIN", "77"))
SETTLE_S = 8

PRIMITIVES = {
    "boolean": bool,
    "octet": types.byte,
    "char": types.char,
    "uint8": types.uint8,
    "short": types.int16,
    "long": types.int32,
    "unsigned long": types.uint32,
    "float": types.float32,
    "double": types.float64,
    "string": str,
}
DEFINITION = re.compile(
    r"(?P<annotations>(?:@\w+(?:\(\w+\))?\s+)*)(?P<kind>struct|union|enum|bitmask)\s+(?P<name>\w+)\s*"
    r"(?:switch\s*\((?P<switch>[\w ]+)\)\s*)?\{(?P<body>[^}]*)\}\s*;"
)
MEMBER = re.compile(r"(?P<annotations>(?:@\w+(?:\(\w+\))?\s+)*)(?P<type>.+?)\s+(?P<name>\w+)(?P<dimensions>(?:\[\d+\])*)$")


def words(text):
    """Annotations with their values, None where they have none."""
    return {name: value or None for name, value in re.findall(r"@(\w+)(?:\((\w+)\))?", text)}


def type_of(text, known):
    text = text.strip()
    if found := re.fullmatch(r"string<(\d+)>", text):
        return types.bounded_str[int(found[1])]
    if found := re.fullmatch(r"sequence<(.+?)(?:,\s*(\d+))?>", text):
        element = type_of(found[1], known)
        return types.sequence[element, int(found[2])] if found[2] else types.sequence[element]
    return known.get(text) or PRIMITIVES[text]


def structure(name, found, known):
    fields, annotations = {}, {}
    for text in filter(None, map(str.strip, found["body"].split(";"))):
        member = MEMBER.match(text)
        of, own = type_of(member["type"], known), words(member["annotations"])
        for count in reversed(re.findall(r"\d+", member["dimensions"])):
            of = types.array[of, int(count)]
        told = {word: True for word in ("key", "must_understand") if word in own}
        if "id" in own:
            told["id"] = int(own["id"])
        fields[member["name"]] = Optional[of] if "optional" in own else of
        annotations[member["name"]] = told
    return make_idl_struct(found["name"], name, fields, field_annotations=annotations)


def union(name, found, known):
    cases = re.findall(r"case (\d+): (.+?) (\w+);", found["body"])
    fields = {member: types.case[int(label), type_of(of, known)] for label, of, member in cases}
    return make_idl_union(found["name"], name, fields, PRIMITIVES[found["switch"]])


def defined(text, scope):
    """The type T of a text."""
    known = {}
    for found in DEFINITION.finditer(text):
        own, name = words(found["annotations"]), f"{scope}.{found['name']}"
        names = [word.strip() for word in found["body"].split(",")]
        match found["kind"]:
            case "struct":
                made = structure(name, found, known)
            case "union":
                made = union(name, found, known)
            case "enum":
                made = make_idl_enum(found["name"], name, {word: number for number, word in enumerate(names)})
            case _:
                made = make_idl_bitmask(found["name"], name, names)
        for word in ("final", "appendable", "mutable"):
            if word in own:
                made = getattr(annotate, word)(made)
        if "bit_bound" in own:
            made = annotate.bit_bound(int(own["bit_bound"]))(made)
        known[found["name"]] = made
    return known["T"]


def read(path):
    with open(path) as file:
        return [[part.strip() for part in line.split("|")][1:] for line in file if line.strip()]


def writers_of(participant, pairs):
    """A writer for each pair, in XCDR2: XCDR1 permits fewer differences between nested types."""
    qos = Qos(Policy.DataRepresentation(use_cdrv0_representation=False, use_xcdrv2_representation=True))
    types_of = [defined(of_writer, f"w{number}") for number, (of_writer, _) in enumerate(pairs)]
    topics = [Topic(participant, f"pair{number}", of) for number, of in enumerate(types_of)]
    return [DataWriter(participant, topic, qos=qos) for topic in topics]


def readers_of(participant, pairs):
    """A reader for each pair, of both encodings."""
    types_of = [defined(of_reader, f"r{number}") for number, (_, of_reader) in enumerate(pairs)]
    topics = [Topic(participant, f"pair{number}", of) for number, of in enumerate(types_of)]
    return [DataReader(participant, topic) for topic in topics]


def tell(pairs, matched):
    for (of_writer, of_reader), others in zip(pairs, matched):
        print(f"{'yes' if others else 'no'} | {of_writer} | {of_reader}", flush=True)


def main(path, side=None):
    pairs = read(path)
    one = DomainParticipant(DOMAIN)
    if side is None:
        other = DomainParticipant(DOMAIN)
        writers, readers = writers_of(one, pairs), readers_of(other, pairs)
        time.sleep(SETTLE_S)
        tell(pairs, [writer.get_matched_subscriptions() for writer in writers])
        return
    ends = writers_of(one, pairs) if side == "writers" else readers_of(one, pairs)
    print("ready", flush=True)
    sys.stdin.readline()
    if side == "writers":
        tell(pairs, [writer.get_matched_subscriptions() for writer in ends])
    else:
        tell(pairs, [reader.get_matched_publications() for reader in ends])


main(*sys.argv[1:])
