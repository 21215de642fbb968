"""The resources of the CoAP measurements with aiocoap; peers/README.md says what such a server does."""

import argparse
import asyncio
import importlib.metadata
import os
import sys
import threading
import time

import aiocoap
from aiocoap import resource


class Greeting(resource.Resource):
    async def render_get(self, request):
        return answer("hello world")


class Slow(resource.Resource):
    async def render_get(self, request):
        milliseconds = number(request, "ms=")
        await asyncio.sleep(milliseconds / 1e3)
        return answer(f"waited {milliseconds} ms")


class Busy(resource.Resource):
    async def render_get(self, request):
        microseconds = number(request, "us=")
        end = time.monotonic() + microseconds / 1e6
        while time.monotonic() < end:
            pass
        return answer(f"computed for {microseconds} us")


def answer(text):
    return aiocoap.Message(payload=text.encode(), content_format=0)


def number(request, prefix):
    """The number in the query, 0 without one."""
    query = request.opt.uri_query
    if not query:
        return 0
    if not query[0].startswith(prefix) or not query[0][len(prefix):].isdigit():
        raise aiocoap.error.BadRequest()
    return int(query[0][len(prefix):])


def watch_input():
    """Ends the process with its standard input."""
    while sys.stdin.buffer.read(4096):
        pass
    os._exit(0)


async def serve(bind):
    host, _, port = bind.rpartition(":")
    site = resource.Site()
    site.add_resource(["request"], Greeting())
    site.add_resource(["slow"], Slow())
    site.add_resource(["busy"], Busy())
    await aiocoap.Context.create_server_context(site, bind=(host, int(port)))
    print(f"serving coap://{bind}", flush=True)
    await asyncio.get_running_loop().create_future()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bind")
    parser.add_argument("--version", action="store_true")
    options = parser.parse_args()
    if options.version:
        print("aiocoap", importlib.metadata.version("aiocoap"))
        return
    if options.bind is None:
        parser.error("--bind ADDRESS:PORT is missing")
    # Datagrams alone: the other transports would open sockets of their own.
    os.environ.setdefault("AIOCOAP_SERVER_TRANSPORT", "udp6")
    threading.Thread(target=watch_input, daemon=True).start()
    asyncio.run(serve(options.bind))


main()
