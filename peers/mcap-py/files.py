"""Recordings by Python's mcap, mcap-ros2-support and rosbags.

`read FILE` and `read-bag FILE` print a line of JSON for each message, `write FILE` makes a file, and `write-bag FOLDER` a bag.
"""

import json
import sys
from pathlib import Path

from mcap.reader import make_reader
from mcap_ros2.decoder import DecoderFactory
from mcap_ros2.writer import Writer
from rosbags import rosbag2
from rosbags.highlevel import AnyReader
from rosbags.interfaces import Qos, QosDurability, QosHistory, QosLiveliness, QosReliability, QosTime
from rosbags.typesys import Stores, get_typestore


def read(path):
    with open(path, "rb") as file:
        reader = make_reader(file, decoder_factories=[DecoderFactory()])
        summary = reader.get_summary()
        counts = summary.statistics.channel_message_counts if summary else {}
        print(json.dumps({"counted": sum(counts.values()), "chunks": len(summary.chunk_indexes) if summary else 0}))
        for schema, channel, message in reader.iter_messages():
            line = {
                "topic": channel.topic,
                "type": schema.name if schema else None,
                "schema": schema.encoding if schema else None,
                "sequence": message.sequence,
                "bytes": len(message.data),
                "writer": channel.metadata.get("thalweg.writer"),
            }
            if schema and schema.encoding == "ros2msg":
                decode = DecoderFactory().decoder_for(channel.message_encoding, schema)
                line["data"] = decode(message.data).data
            print(json.dumps(line))


def write(path):
    with open(path, "wb") as file:
        writer = Writer(file)
        schema = writer.register_msgdef("std_msgs/msg/String", "string data")
        for number in range(5):
            time = 1_000_000_000 + number * 20_000_000
            writer.write_message("/chatter", schema, {"data": f"word {number}"}, time, time, number)
        writer.finish()


def read_bag(path):
    with AnyReader([Path(path)]) as reader:
        print(json.dumps({"counted": reader.message_count}))
        for connection, time, data in reader.messages():
            qos = connection.ext.offered_qos_profiles[0]
            line = {"topic": connection.topic, "type": connection.msgtype, "time": time, "depth": qos.depth}
            line["reliability"] = qos.reliability.name
            line["data"] = reader.deserialize(data, connection.msgtype).data
            print(json.dumps(line))


def write_bag(path):
    types = get_typestore(Stores.ROS2_JAZZY)
    text = types.types["std_msgs/msg/String"]
    endless = QosTime(9223372036, 854775807)
    qos = Qos(
        QosHistory.KEEP_LAST,
        3,
        QosReliability.RELIABLE,
        QosDurability.TRANSIENT_LOCAL,
        endless,
        endless,
        QosLiveliness.AUTOMATIC,
        endless,
        False,
    )
    with rosbag2.Writer(path, version=9, storage_plugin=rosbag2.StoragePlugin.MCAP) as writer:
        name = "std_msgs/msg/String"
        connection = writer.add_connection("/chatter", name, typestore=types, offered_qos_profiles=[qos])
        for number in range(5):
            time = 1_000_000_000 + number * 20_000_000
            writer.write(connection, time, types.serialize_cdr(text(f"word {number}"), name))


{"read": read, "write": write, "read-bag": read_bag, "write-bag": write_bag}[sys.argv[1]](sys.argv[2])
