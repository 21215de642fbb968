"""A client of the Foxglove WebSocket protocol by Python's websockets: `client.py ADDRESS TOPIC COUNT [PROTOCOL]`.

Prints a line of JSON for the channel of the topic, as it was advertised, and one for each sample:

    {"channel": {"id": 1, "topic": "/chatter", ...}}
    {"sample": "000100000...", "time": 1700000000000000000}
"""

import asyncio
import json
import struct
import sys

import websockets


async def main(address, topic, count, protocol):
    async with websockets.connect(f"ws://{address}", subprotocols=[protocol], max_size=None) as socket:
        assert socket.subprotocol == protocol, socket.subprotocol
        info = json.loads(await socket.recv())
        assert info["op"] == "serverInfo" and info["capabilities"] == [], info
        left = count
        async for message in socket:
            if isinstance(message, str):
                told = json.loads(message)
                for channel in told.get("channels", []):
                    if channel["topic"] == topic:
                        print(json.dumps({"channel": channel}), flush=True)
                        wanted = [{"id": 7, "channelId": channel["id"]}]
                        await socket.send(json.dumps({"op": "subscribe", "subscriptions": wanted}))
                continue
            opcode, subscription, time = struct.unpack_from("<BIQ", message)
            assert (opcode, subscription) == (1, 7), message[:13]
            print(json.dumps({"sample": message[13:].hex(), "time": time}), flush=True)
            left -= 1
            if left == 0:
                return


asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3]), *(sys.argv[4:5] or ["foxglove.sdk.v1"])))
