"""A type of many and large type objects on Cyclone DDS: `library.py pub|sub PARTS MEMBERS`, on eth0 and in domain 0.

The type `library::Whole` has PARTS sequences of structures with MEMBERS numbers each. `pub` writes it on the topic `whole` five times a
second; `sub` learns it from a writer of the topic, and prints lines of JSON:

    {"event": "ready"}
    {"event": "type", "parts": 60, "members": 40}     sub: the type as it was learned, with the members of a part
    {"event": "sample", "id": 7}                      sub
"""

import json
import sys
import time

from cyclonedds.builtin import BuiltinDataReader, BuiltinTopicDcpsPublication
from cyclonedds.core import Policy, Qos
from cyclonedds.domain import Domain, DomainParticipant
from cyclonedds.dynamic import get_types_for_typeid
from cyclonedds.idl import annotations as annotate
from cyclonedds.idl import make_idl_struct, types
from cyclonedds.pub import DataWriter
from cyclonedds.sub import DataReader
from cyclonedds.topic import Topic
from cyclonedds.util import duration

CONFIGURATION = """<CycloneDDS><Domain><General>
    <Interfaces><NetworkInterface name="eth0" multicast="true"/></Interfaces></General></Domain></CycloneDDS>"""
TOPIC = "whole"
PATIENCE_S = 80


def say(event, **fields):
    print(json.dumps({"event": event, **fields}), flush=True)


def library(parts, members):
    """The type, and a value of it."""
    fields = {"id": types.int32}
    for part in range(parts):
        of = {f"member_with_a_long_name_{member}": types.int32 for member in range(members)}
        made = make_idl_struct(f"Part_{part}", f"library.Part_{part}", of)
        fields[f"part_{part}"] = types.sequence[annotate.final(made)]
    whole = annotate.appendable(make_idl_struct("Whole", "library.Whole", fields))
    return whole, whole(id=7, **{name: [] for name in fields if name != "id"})


def publish(participant, parts, members):
    whole, value = library(parts, members)
    writer = DataWriter(participant, Topic(participant, TOPIC, whole))
    say("ready")
    while True:
        writer.write(value)
        time.sleep(0.2)


def learn(participant):
    """The type that a writer of the topic announces: asked for until all of it is there."""
    reader = BuiltinDataReader(participant, BuiltinTopicDcpsPublication)
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        for announced in reader.read(N=100):
            if announced.topic_name == TOPIC and announced.type_id is not None:
                return get_types_for_typeid(participant, announced.type_id, duration(seconds=PATIENCE_S))
        time.sleep(0.05)
    sys.exit("no writer announces a type")


def subscribe(participant, parts, members):
    say("ready")
    whole, named = learn(participant)
    of_parts = [of for name, of in named.items() if "Part_" in name]
    told = {len(of.__annotations__) for of in of_parts}
    say("type", parts=len(of_parts), members=told.pop() if len(told) == 1 else sorted(told))
    qos = Qos(Policy.Reliability.Reliable(duration(seconds=10)))
    reader = DataReader(participant, Topic(participant, TOPIC, whole), qos=qos)
    while True:
        for value in reader.take(N=100):
            say("sample", id=value.id)
        time.sleep(0.05)


def main(role, parts, members):
    domain = Domain(0, CONFIGURATION)
    run = publish if role == "pub" else subscribe
    run(DomainParticipant(0), int(parts), int(members))
    del domain


main(*sys.argv[1:])
