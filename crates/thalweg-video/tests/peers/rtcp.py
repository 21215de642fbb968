"""Reads and writes RTCP by RFC 3550, RFC 3611 and RFC 4585, with the standard library alone."""
import struct, time

SECONDS_TO_1970 = 2208988800


def ntp():
    """The time of now in 64 bits."""
    now = time.time_ns()
    return (now // 10**9 + SECONDS_TO_1970) << 32 | (now % 10**9 << 32) // 10**9


def middle(time_of_64_bits):
    """The 32 bits that reports repeat."""
    return time_of_64_bits >> 16 & 0xFFFFFFFF


def round_trip_ms(of_report, delay):
    """Since a report of ours, of which the other end kept the answer for a time; both in 65536ths of a second."""
    units = (middle(ntp()) - of_report - delay) % 2**32
    return (units - 2**32 if units >= 2**31 else units) * 1000 / 65536


def blocks(count, body):
    assert len(body) == 24 * count, "report blocks fill the packet"
    for ssrc, lost, highest, jitter, of_report, delay in struct.iter_unpack("!LLLLLL", body):
        cumulative = (lost & 0xFFFFFF) - (lost >> 23 & 1) * 2**24
        yield {
            "ssrc": ssrc, "fraction": lost >> 24, "lost": cumulative, "highest": highest, "jitter": jitter,
            "of_report": of_report, "delay": delay,
        }


def sender_report(count, body):
    ssrc, time_of_64_bits, timestamp, packets, octets = struct.unpack_from("!LQLLL", body)
    sent = (time_of_64_bits >> 32) - SECONDS_TO_1970 + (time_of_64_bits & 0xFFFFFFFF) / 2**32
    return {
        "ssrc": ssrc, "sent": sent, "timestamp": timestamp, "packets": packets, "octets": octets,
        "blocks": list(blocks(count, body[24:])),
    }


def receiver_report(count, body):
    return {"ssrc": struct.unpack_from("!L", body)[0], "blocks": list(blocks(count, body[4:]))}


def description(count, body):
    """The canonical name of each source, which all have first."""
    names, at = {}, 0
    for _ in range(count):
        ssrc, kind, octets = struct.unpack_from("!LBB", body, at)
        assert kind == 1, "a canonical name comes first"
        names[ssrc] = body[at + 6 : at + 6 + octets].decode()
        at += 4
        while body[at]:
            at += 2 + body[at + 1]
        at += 4 - at % 4
    assert at == len(body), "chunks fill the packet"
    return {"names": names}


def farewell(count, body):
    assert count > 0, "some source leaves"
    sources, reason = struct.unpack_from(f"!{count}L", body), body[4 * count :]
    return {"sources": sources, "bye": reason[1 : 1 + reason[0]].decode() if reason else ""}


def feedback(form, body):
    assert form == 1 and len(body) > 8 and len(body) % 4 == 0, "a generic NACK with entries"
    sender, media = struct.unpack_from("!LL", body)
    asked = []
    for first, following in struct.iter_unpack("!HH", body[8:]):
        asked += [first] + [(first + 1 + bit) % 2**16 for bit in range(16) if following >> bit & 1]
    return {"ssrc": sender, "media": media, "asked": asked}


def extended_report(reserved, body):
    assert reserved == 0, "reserved bits"
    out, at = {"ssrc": struct.unpack_from("!L", body)[0], "answers": []}, 4
    while at < len(body):
        kind, zero, words = struct.unpack_from("!BBH", body, at)
        block = body[at + 4 : at + 4 + 4 * words]
        assert zero == 0 and len(block) == 4 * words, "block header"
        if kind == 4:
            (out["reference"],) = struct.unpack("!Q", block)
        else:
            assert kind == 5 and words % 3 == 0, "reference times and their answers"
            out["answers"] += list(struct.iter_unpack("!LLL", block))
        at += 4 + 4 * words
    return out


READERS = {
    200: sender_report, 201: receiver_report, 202: description, 203: farewell, 205: feedback, 207: extended_report,
}


def read(datagram):
    """The packets of a compound, each with its kind."""
    at, out = 0, []
    while at < len(datagram):
        first, kind, words = struct.unpack_from("!BBH", datagram, at)
        body = datagram[at + 4 : at + 4 + 4 * words]
        assert first >> 6 == 2 and not first & 0x20 and len(body) == 4 * words, "RTCP header"
        assert at > 0 or kind in (200, 201), "a report comes first"
        out.append((kind, READERS[kind](first & 0x1F, body)))
        at += 4 + 4 * words
    return out


def packet(kind, count, body):
    """A packet around a body of whole words."""
    assert len(body) % 4 == 0
    return struct.pack("!BBH", 0x80 | count, kind, len(body) // 4) + body


def named(ssrc, name):
    """The description of a source."""
    item = struct.pack("!LBB", ssrc, 1, len(name)) + name.encode()
    return packet(202, 1, item + bytes(4 - len(item) % 4))
