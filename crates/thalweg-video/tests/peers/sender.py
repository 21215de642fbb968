"""Sends a picture stream of RFC 4175, a packet a line, keeps one packet in seven back, and sends those again that are asked for
(RFC 4585, RFC 4588), with the standard library alone. It answers reference times (RFC 3611).

Usage: sender.py PORT OWN_PORT LINE_OCTETS LINES FRAMES RATE INPUT
Sends frames of INPUT to PORT and prints what it heard from there as a line of JSON. Each port has that of RTCP beside it.
"""
import json, select, socket, struct, sys, time
import rtcp

SSRC, AGAIN_SSRC = 0xCA3E4A, 0xA6A14
port, own_port, line_octets, lines, frames, rate = map(int, sys.argv[1:7])
media, control = (socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2))
media.bind(("127.0.0.1", own_port))
control.bind(("127.0.0.1", own_port + 1))
with open(sys.argv[7], "rb") as source:
    octets = source.read()
sent, kept_back, again, said, bye = {}, set(), set(), [], None
told, round_trips, references, names = set(), [], [], set()
number, timestamp, first_number = 65_400, 0, 65_400


def answer(found):
    for asked in found["asked"]:
        assert found["media"] == SSRC and asked in sent, "a packet of this stream"
        assert asked in kept_back, "a packet that did not come"
        again.add(asked)
        first = struct.pack("!BBH", 0x80, sent[asked][1] & 0x80 | 97, len(again))
        repetition = first + sent[asked][4:8] + struct.pack("!LH", AGAIN_SSRC, asked) + sent[asked][12:]
        media.sendto(repetition, ("127.0.0.1", port))


def hear(until):
    global bye
    while True:
        if not select.select([control], [], [], max(until - time.monotonic(), 0))[0]:
            return
        for kind, found in rtcp.read(control.recv(65536)):
            if kind == 201:
                for block in found["blocks"]:
                    assert block["ssrc"] == SSRC, "a report on this stream"
                    said.append(block)
                    if block["of_report"]:
                        assert block["of_report"] in told, "a report that was sent"
                        round_trips.append(rtcp.round_trip_ms(block["of_report"], block["delay"]))
            if kind == 202:
                names.update(found["names"].values())
            if kind == 205:
                answer(found)
            if kind == 207 and "reference" in found:
                references.append((found["ssrc"], found["reference"], rtcp.ntp()))
            if kind == 203:
                bye = found["bye"]
        if bye is not None:
            return


def report(*, leaves=False):
    now = rtcp.ntp()
    told.add(rtcp.middle(now))
    octets_sent = sum(len(one) - 12 for one in sent.values())
    body = struct.pack("!LQLLL", SSRC, now, timestamp, len(sent), octets_sent & 0xFFFFFFFF)
    out = rtcp.packet(200, 0, body) + rtcp.named(SSRC, "sender@studio")
    if references:
        ssrc, reference, heard = references[-1]
        delay = rtcp.middle(rtcp.ntp()) - rtcp.middle(heard) & 0xFFFFFFFF
        block = struct.pack("!BBHLLL", 5, 0, 3, ssrc, rtcp.middle(reference), delay)
        out += rtcp.packet(207, 0, struct.pack("!L", SSRC) + block)
    if leaves:
        out += rtcp.packet(203, 1, struct.pack("!L", SSRC))
    control.sendto(out, ("127.0.0.1", port + 1))


begun = time.monotonic()
for index in range(frames):
    timestamp = 90_000 * index // rate
    for line in range(lines):
        start = (index * lines + line) * line_octets
        kind = 96 | (line + 1 == lines) << 7
        header = struct.pack("!BBHLLH", 0x80, kind, number % 2**16, timestamp, SSRC, number >> 16)
        packet = header + struct.pack("!HHH", line_octets, line, 0) + octets[start : start + line_octets]
        sent[number % 2**16] = packet
        # The first one has to come, or nobody knows of it; so has the last one.
        is_last = index + 1 == frames and line + 1 == lines
        if number % 7 == 3 and number != first_number and not is_last:
            kept_back.add(number % 2**16)
        else:
            media.sendto(packet, ("127.0.0.1", port))
        number += 1
        hear(begun + (index + line / lines) / rate)
    report()
hear(time.monotonic() + 3 / rate)
report(leaves=True)
hear(time.monotonic() + 5)
last = said[-1]
print(json.dumps({
    "kept_back": len(kept_back),
    "again": len(again),
    "lost": last["lost"],
    "highest": last["highest"],
    "last": number - 1,
    "fractions": sorted({block["fraction"] for block in said}),
    "jitter_max": max(block["jitter"] for block in said),
    "reports": len(said),
    "round_trips_ms": sorted(round_trips),
    "references": len({reference for _, reference, _ in references}),
    "names": sorted(names),
    "bye": bye,
}))
