// Decodes samples by the decoders of Foxglove and of Lichtblick. `decode.js` reads lines {"channel": ...} and {"sample": "..."} of a view,
// as `client.py` prints them, from its standard input, and prints a line of JSON for each sample:
//
//     {"foxglove": {"value": ...}, "lichtblick": {"error": "..."}}
//
// `decode.js FILE` reads a recording by its index with Foxglove's reader of MCAP, and prints such a line for each message with
//
//     "topic", "schema" (its name), "encoding" (of the schema), "sequence" and "time" (of publication, in nanoseconds as text)
const PARTIES = ["foxglove", "lichtblick"];

function readerOf(party, channel) {
  const load = (name) => require(`@${party}/${name}`);
  if (channel.schemaEncoding === "ros2msg") {
    return new (load("rosmsg2-serialization").MessageReader)(load("rosmsg").parse(channel.schema, { ros2: true }));
  }
  return new (load("omgidl-serialization").MessageReader)(channel.schemaName, load("omgidl-parser").parseIDL(channel.schema));
}

// Whole numbers of 64 bits are no JSON; typed arrays are told as arrays.
const plain = (_, value) =>
  typeof value === "bigint" ? Number(value) : ArrayBuffer.isView(value) ? Array.from(value) : value;

function decoded(party, channel, bytes) {
  try {
    return { value: readerOf(party, channel).readMessage(bytes) };
  } catch (error) {
    return { error: String(error.message ?? error).split("\n")[0] };
  }
}

function byAll(channel, bytes) {
  return Object.fromEntries(PARTIES.map((party) => [party, decoded(party, channel, bytes)]));
}

function decodeLines() {
  let channel;
  const lines = require("readline").createInterface({ input: process.stdin });
  lines.on("line", (line) => {
    const told = JSON.parse(line);
    channel = told.channel ?? channel;
    if (told.sample !== undefined) {
      const bytes = Uint8Array.from(Buffer.from(told.sample, "hex"));
      console.log(JSON.stringify(byAll(channel, bytes), plain));
    }
  });
}

async function decodeFile(path) {
  const { McapIndexedReader } = require("@mcap/core");
  const file = require("fs").readFileSync(path);
  const readable = {
    size: async () => BigInt(file.length),
    read: async (offset, length) => Uint8Array.from(file.subarray(Number(offset), Number(offset + length))),
  };
  const reader = await McapIndexedReader.Initialize({ readable });
  for await (const message of reader.readMessages()) {
    const { topic, schemaId } = reader.channelsById.get(message.channelId);
    const { name, encoding, data } = reader.schemasById.get(schemaId);
    const channel = { schemaName: name, schemaEncoding: encoding, schema: new TextDecoder().decode(data) };
    const about = { topic, schema: name, encoding, sequence: message.sequence, time: String(message.publishTime) };
    console.log(JSON.stringify({ ...about, ...byAll(channel, message.data) }, plain));
  }
}

if (process.argv[2] === undefined) {
  decodeLines();
} else {
  decodeFile(process.argv[2]).catch((error) => {
    console.error(error);
    process.exitCode = 1;
  });
}
