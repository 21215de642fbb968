"""Recordings by Python's mcap and mcap-ros2-support: `read FILE` prints a line of JSON for each message, `write FILE` makes a bag."""

import json
import sys

from mcap.reader import make_reader
from mcap_ros2.decoder import DecoderFactory
from mcap_ros2.writer import Writer


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


{"read": read, "write": write}[sys.argv[1]](sys.argv[2])
