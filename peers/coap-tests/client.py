"""The steps of the CoAP tests with aiocoap as client; peers/README.md has them."""

import asyncio
import sys

import aiocoap
from aiocoap.numbers.codes import Code
from aiocoap.optiontypes import OpaqueOption

BODY = bytes((at * 7 + at // 251) & 255 for at in range(1 << 20))


class Client:
    def __init__(self, context, base):
        self.context = context
        self.base = base

    def request(self, code, target, payload=b"", reliability=aiocoap.Reliable, **options):
        uri = self.base + target
        return aiocoap.Message(code=code, uri=uri, payload=payload, transport_tuning=reliability, **options)

    async def ask(self, step, request):
        response = await self.context.request(request).response
        is_body = len(response.payload) == len(BODY)
        text = f"body {response.payload == BODY}" if is_body else response.payload.decode()
        tell(step, response, text)

    async def observe(self):
        """Each state is awaited before the next one is put, so that none may be left out."""
        observed = self.context.request(self.request(Code.GET, "/note", observe=0))
        tell("observe", await observed.response, (await observed.response).payload.decode())
        states = aiter(observed.observation)
        for text in ["one", "two", "three"]:
            await self.context.request(self.request(Code.PUT, "/note", text.encode())).response
            state = await anext(states)
            tell("notification", state, state.payload.decode())
        observed.observation.cancel()


def tell(step, response, text):
    print(step, response.code.dotted, text, sep="\t", flush=True)


async def small_steps(client):
    await client.ask("con", client.request(Code.GET, "/hello"))
    await client.ask("non", client.request(Code.GET, "/hello", reliability=aiocoap.Unreliable))
    await client.ask("slow", client.request(Code.GET, "/slow?ms=1500"))
    await client.ask("core", client.request(Code.GET, "/.well-known/core?rt=lamp"))
    await client.ask("missing", client.request(Code.GET, "/missing"))
    for step, number in [("critical", 65001), ("elective", 65000)]:
        request = client.request(Code.GET, "/hello")
        request.opt.add_option(OpaqueOption(number, b"x"))
        await client.ask(step, request)
    await client.ask("put", client.request(Code.PUT, "/note", b"start"))
    await client.ask("post", client.request(Code.POST, "/note", b"ed"))
    await client.ask("get", client.request(Code.GET, "/note"))
    await client.ask("ipatch", client.request(Code.iPATCH, "/settings", b"color=red"))
    await client.ask("fetch", client.request(Code.FETCH, "/settings", b"color"))


async def main():
    steps, uri = sys.argv[1:]
    context = await aiocoap.Context.create_client_context()
    client = Client(context, uri)
    if steps == "get":
        await client.ask("get", client.request(Code.GET, ""))
    else:
        await small_steps(client)
        await client.observe()
        await client.ask("delete", client.request(Code.DELETE, "/note"))
        await client.ask("up", client.request(Code.PUT, "/body", BODY))
        await client.ask("down", client.request(Code.GET, "/body"))
        # The end of an observation is told only by rejecting a confirmable notification; it comes 5 s after a change.
        await asyncio.sleep(6)
    await context.shutdown()


asyncio.run(main())
