"""The resources of the CoAP tests with aiocoap as server; peers/README.md has them."""

import asyncio
import os
import sys
import threading

import aiocoap
from aiocoap import resource
from aiocoap.numbers.codes import Code

BODY = bytes((at * 7 + at // 251) & 255 for at in range(1 << 20))


class Hello(resource.Resource):
    rt = "lamp"

    async def render_get(self, request):
        return text("hello world")


class Slow(resource.Resource):
    async def render_get(self, request):
        milliseconds = int(request.opt.uri_query[0].removeprefix("ms="))
        await asyncio.sleep(milliseconds / 1e3)
        return text("waited")


class Note(resource.ObservableResource):
    def __init__(self):
        super().__init__()
        self.content = b""

    async def render_get(self, request):
        return aiocoap.Message(payload=self.content, content_format=0)

    async def render_put(self, request):
        return self.change(request.payload)

    async def render_post(self, request):
        return self.change(self.content + request.payload)

    async def render_delete(self, request):
        self.change(b"")
        return aiocoap.Message(code=Code.DELETED)

    def change(self, content):
        self.content = content
        self.updated_state()
        return aiocoap.Message(code=Code.CHANGED)


class Body(resource.Resource):
    async def render_get(self, request):
        return aiocoap.Message(payload=BODY, content_format=42)

    async def render_put(self, request):
        return aiocoap.Message(code=Code.CHANGED if request.payload == BODY else Code.BAD_REQUEST)


class Settings(resource.Resource):
    def __init__(self):
        super().__init__()
        self.values = {}

    async def render_fetch(self, request):
        return text(self.values.get(request.payload.decode(), ""))

    async def render_ipatch(self, request):
        name, _, value = request.payload.decode().partition("=")
        self.values[name] = value
        return aiocoap.Message(code=Code.CHANGED)


def text(content):
    return aiocoap.Message(code=Code.CONTENT, payload=content.encode(), content_format=0)


def watch_input():
    """Ends the process with its standard input."""
    while sys.stdin.buffer.read(4096):
        pass
    os._exit(0)


async def main():
    host, _, port = sys.argv[1].rpartition(":")
    site = resource.Site()
    site.add_resource([".well-known", "core"], resource.WKCResource(site.get_resources_as_linkheader))
    site.add_resource(["hello"], Hello())
    site.add_resource(["slow"], Slow())
    site.add_resource(["note"], Note())
    site.add_resource(["body"], Body())
    site.add_resource(["settings"], Settings())
    multicast = sys.argv[2:]
    context = {"multicast": [("224.0.1.187", name) for name in multicast]} if multicast else {}
    await aiocoap.Context.create_server_context(site, bind=(host, int(port)), **context)
    print("serving", flush=True)
    await asyncio.get_running_loop().create_future()


os.environ.setdefault("AIOCOAP_SERVER_TRANSPORT", "udp6")
threading.Thread(target=watch_input, daemon=True).start()
asyncio.run(main())
