"""Asks Cyclone DDS which pairs of types match: `pairs.py FILE` prints FILE with its verdicts, yes or no, before each pair.

A line is `verdict | IDL of the writer's type T | IDL of the reader's`. Each pair gets a topic with a writer and a reader in two
participants; the types of both have other names, so that assignability alone decides. Of IDL, what the file needs is understood.
"""

import os
import re
import sys
import time
from typing import Optional

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


def main(path):
    with open(path) as file:
        pairs = [[part.strip() for part in line.split("|")][1:] for line in file if line.strip()]
    one, other = DomainParticipant(DOMAIN), DomainParticipant(DOMAIN)
    writers, readers = [], []
    for number, (of_writer, of_reader) in enumerate(pairs):
        writers.append(DataWriter(one, Topic(one, f"pair{number}", defined(of_writer, f"w{number}"))))
        readers.append(DataReader(other, Topic(other, f"pair{number}", defined(of_reader, f"r{number}"))))
    time.sleep(SETTLE_S)
    for writer, (of_writer, of_reader) in zip(writers, pairs):
        verdict = "yes" if writer.get_matched_subscriptions() else "no"
        print(f"{verdict} | {of_writer} | {of_reader}")


main(sys.argv[1])
