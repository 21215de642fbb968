"""Receives a picture stream of RFC 4175 and its RTCP until the BYE, with the standard library alone. It answers each report with an
empty one and its time, which the sender has to repeat.

Usage: reader.py PORT WIDTH HEIGHT FIELDS GROUP_OCTETS GROUP_PIXELS OUTPUT
Writes the frames to OUTPUT and prints what else it found as a line of JSON.
"""
import json, select, socket, struct, sys, time
import rtcp

OWN_SSRC = 0x5EADE4
port, width, height, fields, group_octets, group_pixels = map(int, sys.argv[1:7])
sockets = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2)]
for offset, one in enumerate(sockets):
    one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16 << 20)
    one.bind(("127.0.0.1", port + offset))
media, control = sockets
line_octets = width // group_pixels * group_octets
frame, filled, frames, packets, reports, bye = bytearray(line_octets * height), 0, [], [], [], None
early, names = [], set()
told, round_trips = set(), []


def read_packet(datagram):
    global filled
    first, kind, low, timestamp, ssrc, high = struct.unpack_from("!BBHLLH", datagram)
    assert first == 0x80 and kind & 0x7F == 96, "RTP header"
    packets.append((high << 16 | low, timestamp, ssrc, len(datagram) - 12))
    at, pieces, more = 14, [], True
    while more:
        length, line, offset = struct.unpack_from("!HHH", datagram, at)
        at, more = at + 6, offset >> 15
        pieces.append((length, (line & 0x7FFF) * fields + (line >> 15), offset & 0x7FFF))
    for length, line, offset in pieces:
        assert length % group_octets == 0 and offset % group_pixels == 0, "whole pixel groups"
        start = offset // group_pixels * group_octets
        assert line < height and start + length <= line_octets, "inside of the picture"
        frame[line * line_octets + start : line * line_octets + start + length] = datagram[at : at + length]
        at, filled = at + length, filled + length
    assert at == len(datagram), "pieces fill the packet"
    field_end = len(frame) // fields
    assert bool(kind & 0x80) == (filled % field_end == 0), "the marker ends each field"
    if filled == len(frame):
        frames.append(bytes(frame))
        filled = 0


def read_control(datagram, sender):
    global bye
    for kind, found in rtcp.read(datagram):
        if kind == 200:
            reports.append(found)
        if kind == 201:
            early.append(found)
        if kind == 202:
            names.update(found["names"][report["ssrc"]] for report in reports[-1:] + early)
        if kind == 203:
            bye = found["bye"]
        if kind == 207:
            for ssrc, of_report, delay in found["answers"]:
                assert ssrc == OWN_SSRC and of_report in told, "an answer to a time that was told"
                round_trips.append(rtcp.round_trip_ms(of_report, delay))
    now = rtcp.ntp()
    told.add(rtcp.middle(now))
    own = struct.pack("!L", OWN_SSRC)
    reference = rtcp.packet(207, 0, own + struct.pack("!BBHQ", 4, 0, 2, now))
    control.sendto(rtcp.packet(201, 0, own) + rtcp.named(OWN_SSRC, "reader@studio") + reference, sender)


while bye is None or select.select([media], [], [], 0.2)[0]:
    ready = select.select(sockets, [], [], 60)[0]
    assert ready, "nothing for a minute"
    if media in ready:
        read_packet(media.recv(65536))
    elif control in ready:
        read_control(*control.recvfrom(65536))
first, last = reports[0], reports[-1]
ticks = (last["timestamp"] - first["timestamp"]) % 2**32
print(json.dumps({
    "gaps": sum((after[0] - before[0]) % 2**32 != 1 for before, after in zip(packets, packets[1:])),
    "sources": len({packet[2] for packet in packets} | {report["ssrc"] for report in reports}),
    "timestamps": len({packet[1] for packet in packets}),
    "packets": [len(packets), last["packets"]],
    "octets": [sum(packet[3] for packet in packets), last["octets"]],
    "clock_error_ms": abs(ticks / 90 - (last["sent"] - first["sent"]) * 1000),
    "wall_clock_error_s": abs(time.time() - last["sent"]),
    "names": sorted(names),
    "early": len(early),
    "reports": len(reports),
    "round_trips_ms": sorted(round_trips),
    "bye": bye,
}))
with open(sys.argv[7], "wb") as output:
    output.write(b"".join(frames))
