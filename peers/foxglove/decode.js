// Decodes what a view sent by the decoders of Foxglove and of Lichtblick: `decode.js` reads lines {"channel": ...} and {"sample": "..."},
// as `client.py` prints them, from its standard input, and prints a line of JSON for each sample:
//
//     {"foxglove": {"value": ...}, "lichtblick": {"error": "..."}}
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

let channel;
const lines = require("readline").createInterface({ input: process.stdin });
lines.on("line", (line) => {
  const told = JSON.parse(line);
  channel = told.channel ?? channel;
  if (told.sample !== undefined) {
    const bytes = Uint8Array.from(Buffer.from(told.sample, "hex"));
    const all = PARTIES.map((party) => [party, decoded(party, channel, bytes)]);
    console.log(JSON.stringify(Object.fromEntries(all), plain));
  }
});
