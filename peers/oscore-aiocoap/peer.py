"""aiocoap with OSCORE, as server and as client, for the tests; peers/README.md says what it does."""

import asyncio
import os
import sys
import threading

import aiocoap
from aiocoap import resource
from aiocoap.credentials import CredentialsMap
from aiocoap.numbers.codes import Code
from aiocoap.oscore_sitewrapper import OscoreSiteWrapper

BODY = bytes((at * 7 + at // 251) & 255 for at in range(20_000))


class Hello(resource.Resource):
    async def render_get(self, request):
        # Only a request that was protected comes from somebody who is known by the keys.
        claims = request.remote.authenticated_claims
        return text("hello " + ("protected" if claims else "unprotected"))


class Note(resource.ObservableResource):
    def __init__(self):
        super().__init__()
        self.content = b""

    async def render_get(self, request):
        return aiocoap.Message(payload=self.content, content_format=0)

    async def render_put(self, request):
        self.content = request.payload
        self.updated_state()
        return aiocoap.Message(code=Code.CHANGED)


class Body(resource.Resource):
    async def render_get(self, request):
        return aiocoap.Message(payload=BODY.hex().encode(), content_format=0)

    async def render_put(self, request):
        is_whole = request.payload == BODY.hex().encode()
        return aiocoap.Message(code=Code.CHANGED if is_whole else Code.BAD_REQUEST)


def text(content):
    return aiocoap.Message(code=Code.CONTENT, payload=content.encode(), content_format=0)


def credentials(name, directory):
    found = CredentialsMap()
    found.load_from_dict({name: {"oscore": {"basedir": directory}}})
    return found


async def serve(port, directory):
    known = credentials(":client", directory)
    site = resource.Site()
    for path, one in [("hello", Hello()), ("note", Note()), ("body", Body())]:
        site.add_resource([path], one)
    bind = ("127.0.0.1", int(port))
    await aiocoap.Context.create_server_context(OscoreSiteWrapper(site, known), bind=bind, server_credentials=known)
    print("serving", flush=True)
    await asyncio.get_running_loop().create_future()


class Client:
    def __init__(self, context, base):
        self.context = context
        self.base = base

    def request(self, code, target, payload=b"", **options):
        return aiocoap.Message(code=code, uri=self.base + target, payload=payload, **options)

    async def ask(self, step, request):
        response = await self.context.request(request).response
        content = response.payload.decode() if len(response.payload) < 100 else f"body {len(response.payload)}"
        print(step, response.code.dotted, content, flush=True)

    async def observe(self):
        """Each state is awaited before the next one is put, so that none may be left out."""
        observed = self.context.request(self.request(Code.GET, "/note", observe=0))
        print("observe", (await observed.response).payload.decode(), flush=True)
        states = aiter(observed.observation)
        for content in ["one", "two", "three"]:
            await self.context.request(self.request(Code.PUT, "/note", content.encode())).response
            print("notification", (await anext(states)).payload.decode(), flush=True)
        observed.observation.cancel()


async def ask(base, directory):
    context = await aiocoap.Context.create_client_context()
    context.client_credentials.load_from_dict({base + "/*": {"oscore": {"basedir": directory}}})
    client = Client(context, base)
    await client.ask("get", client.request(Code.GET, "/request"))
    await client.ask("put", client.request(Code.PUT, "/note", b"start"))
    await client.ask("slow", client.request(Code.GET, "/slow?ms=1500"))
    await client.ask("missing", client.request(Code.GET, "/missing"))
    await client.observe()
    await client.ask("up", client.request(Code.PUT, "/note", BODY.hex().encode()))
    await client.ask("down", client.request(Code.GET, "/note"))
    await context.shutdown()


def watch_input():
    """Ends the process with its standard input."""
    while sys.stdin.buffer.read(4096):
        pass
    os._exit(0)


def main():
    verb, place, directory = sys.argv[1:]
    # Datagrams alone: the other transports would open sockets of their own.
    os.environ.setdefault("AIOCOAP_SERVER_TRANSPORT", "oscore:udp6")
    os.environ.setdefault("AIOCOAP_CLIENT_TRANSPORT", "oscore:udp6")
    if verb == "serve":
        threading.Thread(target=watch_input, daemon=True).start()
        asyncio.run(serve(place, directory))
    else:
        asyncio.run(ask(place, directory))


main()
