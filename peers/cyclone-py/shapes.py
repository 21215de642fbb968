"""The shapes demonstration on Eclipse Cyclone DDS, with the options and lines of the OMG's interoperability suite.

    shapes.py -P -t Square -c RED
    shapes.py -S -t Square

What Cyclone DDS or its Python does not have ends it with the line `<what> = not supported`. It uses the loopback interface alone.
"""

import argparse
import sys
import threading
import time
from dataclasses import dataclass

from cyclonedds.core import DDSException, InstanceState, Listener, Policy, Qos
from cyclonedds.domain import Domain, DomainParticipant
from cyclonedds.idl import IdlStruct
from cyclonedds.idl import annotations as annotate
from cyclonedds.idl import types
from cyclonedds.pub import DataWriter, Publisher
from cyclonedds.sub import DataReader, Subscriber
from cyclonedds.topic import Topic
from cyclonedds.util import duration

CONFIGURATION = """<CycloneDDS><Domain><General>
    <Interfaces><NetworkInterface name="lo" multicast="true"/></Interfaces></General></Domain></CycloneDDS>"""
LAST_WORDS_S = 1
# How long an end of instances is there to be read before the writer leaves, which is another end.
END_SHOWN_S = 0.4
TAKEN_MAX = 1000
PRINTING = threading.Lock()


@dataclass
@annotate.appendable
class Shape(IdlStruct, typename="ShapeType"):
    """As `shape.idl` of the suite describes it."""

    color: types.bounded_str[128]
    annotate.key("color")
    x: types.int32
    y: types.int32
    shapesize: types.int32
    additional_payload_size: types.sequence[types.uint8]


def say(line):
    """Prints a line at once: it is read through a pipe."""
    with PRINTING:
        print(line, flush=True)


class News(Listener):
    """Prints statuses of the endpoints of a topic."""

    def __init__(self, topic):
        super().__init__()
        self.topic = topic

    def tell(self, name, text):
        say(f"{name}() topic: '{self.topic}'  type: 'ShapeType' : {text}")

    def on_publication_matched(self, writer, status):
        self.tell("on_publication_matched", f"matched readers {status.current_count} (change = {status.current_count_change})")

    def on_subscription_matched(self, reader, status):
        self.tell("on_subscription_matched", f"matched writers {status.current_count} (change = {status.current_count_change})")

    def on_offered_incompatible_qos(self, writer, status):
        self.tell("on_offered_incompatible_qos", f"{status.last_policy_id}")

    def on_requested_incompatible_qos(self, reader, status):
        self.tell("on_requested_incompatible_qos", f"{status.last_policy_id}")

    def on_offered_deadline_missed(self, writer, status):
        self.tell("on_offered_deadline_missed", f"(total = {status.total_count}, change = {status.total_count_change})")

    def on_requested_deadline_missed(self, reader, status):
        self.tell("on_requested_deadline_missed", f"(total = {status.total_count}, change = {status.total_count_change})")

    def on_liveliness_lost(self, writer, status):
        self.tell("on_liveliness_lost", f"(total = {status.total_count}, change = {status.total_count_change})")

    def on_liveliness_changed(self, reader, status):
        self.tell("on_liveliness_changed", f"(alive = {status.alive_count}, not_alive = {status.not_alive_count})")


def missing(options):
    """What is asked for and not there."""
    if options.S and (options.cft or options.c):
        return "content filtered topic"
    if options.coherent_sample_count:
        return "coherent sets"
    return "datafrag-size" if options.datafrag_size else None


SCOPES = {
    "i": Policy.PresentationAccessScope.Instance,
    "t": Policy.PresentationAccessScope.Topic,
    "g": Policy.PresentationAccessScope.Group,
}
DURABILITIES = {
    "v": Policy.Durability.Volatile,
    "l": Policy.Durability.TransientLocal,
    "t": Policy.Durability.Transient,
    "p": Policy.Durability.Persistent,
}


def group_qos(options):
    """PRESENTATION and PARTITION, which belong to publishers and subscribers."""
    policies = [SCOPES[options.access_scope](coherent_access=options.coherent, ordered_access=options.ordered)]
    if options.p:
        policies.append(Policy.Partition([options.p]))
    return Qos(*policies)


def endpoint_qos(options):
    history = Policy.History.KeepAll if options.k == 0 else Policy.History.KeepLast(options.k)
    policies = [
        Policy.Reliability.BestEffort if options.b else Policy.Reliability.Reliable(duration(seconds=10)),
        DURABILITIES[options.D],
        history,
        Policy.DataRepresentation(use_cdrv0_representation=options.x == 1, use_xcdrv2_representation=options.x == 2),
        Policy.Ownership.Exclusive if options.s >= 0 else Policy.Ownership.Shared,
    ]
    if options.f:
        policies.append(Policy.Deadline(duration(milliseconds=options.f)))
    if options.P:
        policies.append(Policy.WriterDataLifecycle(autodispose=options.final_instance_state != "u"))
        if options.s >= 0:
            policies.append(Policy.OwnershipStrength(options.s))
        if options.lifespan:
            policies.append(Policy.Lifespan(duration(milliseconds=options.lifespan)))
        if options.D != "v":
            # What Cyclone DDS replays is bounded by DURABILITY_SERVICE, one sample by default, not by HISTORY.
            policies.append(Policy.DurabilityService(0, history, -1, -1, -1))
    elif options.time_filter:
        policies.append(Policy.TimeBasedFilter(duration(milliseconds=options.time_filter)))
    return Qos(*policies)


def numbered(name, count):
    """The name alone, then with the numbers from 1."""
    return [name] + [f"{name}{number}" for number in range(1, count)]


def line(topic, shape):
    octets = shape.additional_payload_size
    last = f" {{{octets[-1]}}}" if len(octets) else ""
    return f"{topic:<10} {shape.color:<10} {shape.x:03} {shape.y:03} [{shape.shapesize}]{last}"


def iterations(options):
    count = 0
    while options.num_iterations is None or count < options.num_iterations:
        yield count
        count += 1


def size_at(options, iteration):
    if options.z:
        return options.z
    return iteration % options.size_modulo + 1 if options.size_modulo else iteration + 1


def publish(options, participant):
    container = Publisher(participant, qos=group_qos(options))
    writers = []
    for name in numbered(options.t, options.num_topics):
        say(f"Create topic: {name}")
        say(f"Create writer for topic: {name} color: {options.c}")
        topic = Topic(participant, name, Shape)
        writers.append((name, DataWriter(container, topic, qos=endpoint_qos(options), listener=News(name))))
    colors = numbered(options.c, options.num_instances)
    octets = b"\xff" * options.additional_payload_size
    for iteration in iterations(options):
        at, size = iteration % 200, size_at(options, iteration)
        for name, writer in writers:
            for color in colors:
                shape = Shape(color=color, x=at, y=at, shapesize=size, additional_payload_size=octets)
                writer.write(shape)
                if options.w:
                    say(line(name, shape))
        time.sleep(options.write_period / 1000)
    for _, writer in writers:
        for color in colors:
            shape = Shape(color=color, x=0, y=0, shapesize=0, additional_payload_size=b"")
            if options.final_instance_state == "u":
                writer.unregister_instance(shape)
            elif options.final_instance_state == "d":
                writer.dispose(shape)
    for _, writer in writers:
        if not options.b:
            writer.wait_for_acks(duration(seconds=LAST_WORDS_S))
    if options.final_instance_state:
        time.sleep(END_SHOWN_S)


ENDED = {
    InstanceState.NotAliveDisposed: "NOT_ALIVE_DISPOSED_INSTANCE_STATE",
    InstanceState.NotAliveNoWriters: "NOT_ALIVE_NO_WRITERS_INSTANCE_STATE",
}


def subscribe(options, participant):
    container = Subscriber(participant, qos=group_qos(options))
    readers = []
    for name in numbered(options.t, options.num_topics):
        say(f"Create topic: {name}")
        say(f"Create reader for topic: {name}")
        topic = Topic(participant, name, Shape)
        readers.append((name, DataReader(container, topic, qos=endpoint_qos(options), listener=News(name))))
    for _ in iterations(options):
        for name, reader in readers:
            for item in reader.read(N=TAKEN_MAX) if options.R else reader.take(N=TAKEN_MAX):
                info = item.sample_info
                if info.valid_data:
                    say(line(name, item))
                # An end is told with the last sample where that was not read before, else alone.
                if info.instance_state in ENDED:
                    color = item.color if info.valid_data else item.key_sample.color
                    say(f"{name:<10} {color:<10} {ENDED[info.instance_state]}")
        time.sleep(options.read_period / 1000)


def arguments():
    parser = argparse.ArgumentParser(allow_abbrev=False, description=__doc__.splitlines()[0])
    for flag in ("-P", "-S", "-b", "-r", "-w", "-R", "--take-read", "--coherent", "--ordered"):
        parser.add_argument(flag, action="store_true")
    for option, default in (("-d", 0), ("-k", 1), ("-f", 0), ("-s", -1), ("-x", 1), ("-z", 20)):
        parser.add_argument(option, type=int, default=default)
    for option in ("-t", "-c", "-p", "-v", "--cft"):
        parser.add_argument(option)
    parser.add_argument("-D", choices=sorted(DURABILITIES), default="v")
    for option in ("--size-modulo", "--lifespan", "--num-iterations", "--datafrag-size"):
        parser.add_argument(option, type=int)
    for option, default in (("--write-period", 33), ("--read-period", 100), ("--num-instances", 1), ("--num-topics", 1)):
        parser.add_argument(option, type=int, default=default)
    for option in ("--time-filter", "--coherent-sample-count", "--additional-payload-size", "--periodic-announcement"):
        parser.add_argument(option, type=int, default=0)
    parser.add_argument("--final-instance-state", choices=["u", "d"])
    parser.add_argument("--access-scope", choices=sorted(SCOPES), default="i")
    options = parser.parse_args()
    if options.P == options.S:
        parser.error("one of -P and -S has to be given")
    if not options.t:
        parser.error("-t TOPIC has to be given")
    options.c = options.c or ("BLUE" if options.P else None)
    return options


def main():
    options = arguments()
    if what := missing(options):
        say(f"    {what} = not supported")
        return 1
    domain = Domain(options.d, CONFIGURATION)
    participant = DomainParticipant(options.d)
    try:
        (publish if options.P else subscribe)(options, participant)
    except DDSException as error:
        if error.code != DDSException.DDS_RETCODE_UNSUPPORTED:
            raise
        say(f"    {error.msg} = not supported")
        return 1
    except KeyboardInterrupt:
        pass
    say("Done.")
    del participant, domain
    return 0


if __name__ == "__main__":
    sys.exit(main())
