"""A DDS program on Eclipse Cyclone DDS that the peer tests start beside Thalweg.

`peer.py pub` writes samples, `peer.py sub` takes them; each prints one JSON object a line:

    {"event": "matched", "count": 1}              a publication or subscription matched or went away
    {"event": "incompatible", "policy": 11}       the other side's QoS does not fit; the number is DDS's policy id
    {"event": "deadline", "total": 1}             DEADLINE was missed
    {"event": "liveliness", "alive": 0, "not_alive": 1}   sub: LIVELINESS has changed
    {"event": "written", "sequence": 3}           pub: a sample left
    {"event": "sample", "data": {...}, "state": "ALIVE", "writer": ...}
    {"event": "invalid", "key": {...}, "state": "NOT_ALIVE_DISPOSED"}
    {"event": "done"}

Example: peer.py sub --topic Square --type shape --count 10 --timeout 20
"""

import argparse
import json
import sys
import threading
import time
import zlib
from dataclasses import dataclass

from cyclonedds.core import InstanceState, Listener, Policy, Qos
from cyclonedds.domain import Domain, DomainParticipant
from cyclonedds.idl import IdlStruct
from cyclonedds.idl import annotations as annotate
from cyclonedds.idl import types
from cyclonedds.internal import DDS, c_call, dds_c_t
from cyclonedds.pub import DataWriter, Publisher
from cyclonedds.sub import DataReader, Subscriber
from cyclonedds.topic import Topic
from cyclonedds.util import duration

from machine import Machine, machine, machine_as_json


@dataclass
@annotate.appendable
class ShapeType(IdlStruct, typename="ShapeType"):
    """The keyed type of the shapes demonstration."""

    color: types.bounded_str[128]
    annotate.key("color")
    x: types.int32
    y: types.int32
    shapesize: types.int32


@dataclass
@annotate.mutable
class MutableShape(IdlStruct, typename="ShapeType"):
    """The same under the same name, in an encoding that readers of the appendable type cannot read."""

    color: types.bounded_str[128]
    annotate.key("color")
    x: types.int32
    y: types.int32
    shapesize: types.int32


@dataclass
@annotate.final
class Bytes(IdlStruct, typename="thalweg::Bytes"):
    """Octets without a key: `thalweg pub --type bytes`."""

    data: types.sequence[types.uint8]


@dataclass
@annotate.final
class String(IdlStruct, typename="std_msgs::msg::dds_::String_"):
    """A text as ROS 2 sends it: `thalweg pub --type string`."""

    data: str


@dataclass
@annotate.final
class Record(IdlStruct, typename="thalweg::Record"):
    """A numbered sample of any size with a key: what bursts carry."""

    key: types.uint32
    annotate.key("key")
    number: types.uint32
    data: types.sequence[types.uint8]


STATES = {
    InstanceState.Alive: "ALIVE",
    InstanceState.NotAliveDisposed: "NOT_ALIVE_DISPOSED",
    InstanceState.NotAliveNoWriters: "NOT_ALIVE_NO_WRITERS",
}
TYPES = {"shape": ShapeType, "mutable-shape": MutableShape, "bytes": Bytes, "string": String, "record": Record}
TYPES["machine"] = Machine
PRINTING = threading.Lock()


def say(event, **fields):
    """Prints one JSON line at once: the test reads it through a pipe."""
    with PRINTING:
        print(json.dumps({"event": event, **fields}), flush=True)


class Reports(Listener):
    """Prints what the middleware reports and counts who is matched."""

    def __init__(self):
        super().__init__()
        self.current = 0

    def matched(self, status):
        self.current = status.current_count
        say("matched", count=status.current_count)

    def on_publication_matched(self, writer, status):
        self.matched(status)

    def on_subscription_matched(self, reader, status):
        self.matched(status)

    def on_offered_incompatible_qos(self, writer, status):
        say("incompatible", side="offered", policy=status.last_policy_id)

    def on_requested_incompatible_qos(self, reader, status):
        say("incompatible", side="requested", policy=status.last_policy_id)


    def on_offered_deadline_missed(self, writer, status):
        say("deadline", side="offered", total=status.total_count)

    def on_requested_deadline_missed(self, reader, status):
        say("deadline", side="requested", total=status.total_count)

    def on_liveliness_changed(self, reader, status):
        say("liveliness", alive=status.alive_count, not_alive=status.not_alive_count)


LIVELINESS = {
    "automatic": Policy.Liveliness.Automatic,
    "manual-by-participant": Policy.Liveliness.ManualByParticipant,
    "manual-by-topic": Policy.Liveliness.ManualByTopic,
}


def endpoint_qos(options):
    policies = [
        Policy.Reliability.BestEffort if options.best_effort else Policy.Reliability.Reliable(duration(seconds=10)),
        Policy.Durability.TransientLocal if options.transient_local else Policy.Durability.Volatile,
        Policy.History.KeepLast(options.depth) if options.depth else Policy.History.KeepAll,
        Policy.DataRepresentation(
            use_cdrv0_representation=1 in options.xcdr, use_xcdrv2_representation=2 in options.xcdr
        ),
    ]
    if options.command == "pub":
        policies.append(Policy.WriterDataLifecycle(autodispose=False))
        if options.lifespan:
            policies.append(Policy.Lifespan(duration(seconds=options.lifespan)))
        if options.strength is not None:
            policies.append(Policy.OwnershipStrength(options.strength))
    elif options.time_filter:
        policies.append(Policy.TimeBasedFilter(duration(seconds=options.time_filter)))
    if options.exclusive or options.strength is not None:
        policies.append(Policy.Ownership.Exclusive)
    if options.deadline:
        policies.append(Policy.Deadline(duration(seconds=options.deadline)))
    if options.lease:
        policies.append(LIVELINESS[options.liveliness](duration(seconds=options.lease)))
    if options.transient_local:
        # What Cyclone replays is bounded by DURABILITY_SERVICE, one sample by default, not by HISTORY.
        history = Policy.History.KeepLast(options.depth) if options.depth else Policy.History.KeepAll
        policies.append(Policy.DurabilityService(0, history, -1, -1, -1))
    return Qos(*policies)


def sample(options, index):
    """The index-th sample: colours go round, octets are a pattern that starts at the index."""
    if options.type in ("shape", "mutable-shape"):
        color = options.color[index % len(options.color)]
        return TYPES[options.type](color=color, x=index, y=2 * index, shapesize=options.size)
    if options.type == "machine":
        return machine(index)
    if options.type == "string":
        return String(data=f"text {index}")
    size = options.size
    if options.mixed_sizes:
        size = 20_000 if index % 50 == 49 else 40 + index * 137 % 2960
    pattern = bytes((index + position) & 0xFF for position in range(256))
    octets = (pattern * (size // 256 + 1))[:size]
    if options.type == "record":
        return Record(key=index % 7, number=index, data=octets)
    return Bytes(data=octets)


def as_json(data):
    if isinstance(data, ShapeType):
        return {"color": data.color, "x": data.x, "y": data.y, "shapesize": data.shapesize}
    if isinstance(data, Machine):
        return machine_as_json(data)
    if isinstance(data, String):
        return {"data": data.data}
    if isinstance(data, Bytes):
        octets = bytes(data.data)
        return {"length": len(octets), "first": octets[0] if octets else None, "crc32": zlib.crc32(octets)}
    if isinstance(data, Record):
        octets = bytes(data.data)
        return {"key": data.key, "number": data.number, "length": len(octets), "crc32": zlib.crc32(octets)}
    return {"color": getattr(data, "color", None)}


def key_as_json(data):
    """The key members: the others of a sample that ends an instance are not there."""
    return {"id": data.id, "name": data.name} if isinstance(data, Machine) else as_json(data)


def publish(options, participant, topic, reports):
    container = Publisher(participant, qos=partition_qos(options))
    writer = DataWriter(container, topic, qos=endpoint_qos(options), listener=reports)
    if not wait_until(lambda: reports.current >= options.wait_matched, options.timeout):
        say("done", reason="nobody matched")
        return 2
    # Matching is one-sided: a reader that is matched here may not have matched this writer yet.
    time.sleep(options.settle)
    for index in range(options.count):
        value = sample(options, index)
        writer.write(value)
        say("written", sequence=index)
        if options.rate:
            time.sleep(1.0 / options.rate)
    if options.batch:
        flush(writer)
    for index in range(len(options.color) if options.type == "shape" else 0):
        if options.dispose:
            writer.dispose(sample(options, index))
            say("disposed", color=options.color[index])
        if options.unregister:
            writer.unregister_instance(sample(options, index))
            say("unregistered", color=options.color[index])
    if not options.best_effort:
        acknowledged = writer.wait_for_acks(duration(seconds=options.timeout))
        say("acknowledged", all=bool(acknowledged))
    wait_until(lambda: False, options.linger)
    say("done")
    return 0


class Flush(DDS):
    """Sends what a batching writer has collected: Cyclone's Python has no name of its own for it."""

    @c_call("dds_write_flush")
    def call(self, writer: dds_c_t.entity) -> dds_c_t.returnv:
        pass


def flush(writer):
    code = Flush(writer._ref).call(writer._ref)
    if code != 0:
        raise RuntimeError(f"dds_write_flush: {code}")


def subscribe(options, participant, topic, reports):
    container = Subscriber(participant, qos=partition_qos(options))
    reader = DataReader(container, topic, qos=endpoint_qos(options), listener=reports)
    say("ready")
    taken, end = 0, time.monotonic() + options.timeout
    while time.monotonic() < end and taken < options.count:
        for item in reader.take(N=100):
            info = item.sample_info
            state = STATES.get(info.instance_state, str(info.instance_state))
            if info.valid_data:
                say("sample", data=as_json(item), state=state)
            else:
                say("invalid", key=key_as_json(item.key_sample), state=state)
            taken += 1
        time.sleep(0.005)
    wait_until(lambda: False, options.linger)
    say("done", taken=taken)
    return 0 if taken >= options.count else 2


def partition_qos(options):
    return Qos(Policy.Partition(options.partition)) if options.partition else Qos()


def wait_until(condition, seconds):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() >= end:
            return False
        time.sleep(0.01)
    return True


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["pub", "sub"])
    parser.add_argument("--topic", required=True)
    parser.add_argument("--type", choices=sorted(TYPES), default="shape")
    parser.add_argument("--domain", type=int, default=0)
    parser.add_argument("--interface", default="lo", help="the only interface that it uses")
    parser.add_argument("--peer", action="append", default=[], help="address to ask for; turns multicast off")
    parser.add_argument("--user-data", help="USER_DATA of the participant")
    parser.add_argument("--best-effort", action="store_true")
    parser.add_argument("--transient-local", action="store_true")
    parser.add_argument("--depth", type=int, default=0, help="KEEP_LAST depth; 0 keeps all (default)")
    parser.add_argument("--xcdr", type=int, choices=[1, 2], action="append", help="default: both on sub, 1 on pub")
    parser.add_argument("--partition", action="append")
    parser.add_argument("--color", action="append", help="shape: instances to write (default BLUE)")
    parser.add_argument("--size", type=int, default=64, help="bytes: octets a sample; shape: the shapesize")
    parser.add_argument("--mixed-sizes", action="store_true", help="bytes, record: 40 to 3000 octets, now and then 20000")
    parser.add_argument("--count", type=int, default=10, help="samples to write, or to take before it ends")
    parser.add_argument("--rate", type=float, default=0.0, help="samples a second; 0 as fast as it goes")
    parser.add_argument("--batch", action="store_true", help="pub: collect samples into full datagrams")
    parser.add_argument("--wait-matched", type=int, default=1, help="pub: readers to wait for before the first write")
    parser.add_argument("--settle", type=float, default=1.0, help="pub: seconds from that to the first write")
    parser.add_argument("--lifespan", type=float, help="pub: seconds that a sample is worth reading; default for ever")
    parser.add_argument("--deadline", type=float, help="seconds between samples of an instance at most")
    parser.add_argument("--exclusive", action="store_true", help="OWNERSHIP EXCLUSIVE")
    parser.add_argument("--strength", type=int, help="pub: OWNERSHIP_STRENGTH; implies --exclusive")
    parser.add_argument("--liveliness", choices=sorted(LIVELINESS), default="automatic")
    parser.add_argument("--lease", type=float, help="seconds of LIVELINESS; default for ever")
    parser.add_argument("--time-filter", type=float, help="sub: seconds between samples of an instance at least")
    parser.add_argument("--dispose", action="store_true")
    parser.add_argument("--unregister", action="store_true")
    parser.add_argument("--linger", type=float, default=0.0, help="seconds to stay after the last sample")
    parser.add_argument("--timeout", type=float, default=80.0, help="seconds until it gives up")
    options = parser.parse_args()
    options.color = options.color or ["BLUE"]
    options.xcdr = options.xcdr or ([1] if options.command == "pub" else [1, 2])
    return options


def configuration(options):
    """One interface; discovery by multicast, or by the given peers alone; samples by unicast."""
    peers = "".join(f'<Peer address="{address}"/>' for address in options.peer)
    return f"""<CycloneDDS><Domain><General>
        <Interfaces><NetworkInterface name="{options.interface}" multicast="true"/></Interfaces>
        <AllowMulticast>{"false" if options.peer else "spdp"}</AllowMulticast>
        </General><Internal><WriteBatch>{"true" if options.batch else "false"}</WriteBatch></Internal><Discovery><Peers>{peers}</Peers></Discovery></Domain></CycloneDDS>"""


def main():
    options = arguments()
    domain = Domain(options.domain, configuration(options))
    qos = Qos(Policy.Userdata(options.user_data.encode())) if options.user_data else None
    participant = DomainParticipant(options.domain, qos=qos)
    topic = Topic(participant, options.topic, TYPES[options.type])
    reports = Reports()
    run = publish if options.command == "pub" else subscribe
    code = run(options, participant, topic, reports)
    del topic, participant, domain
    return code


if __name__ == "__main__":
    sys.exit(main())
