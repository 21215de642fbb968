//! Wireshark's dissector: what passed an interface, packet by packet.

use std::path::PathBuf;
use std::process::Command;
use std::sync::LazyLock;
use std::time::Duration;

use crate::host::Host;
use crate::program::Program;

/// A running capture on an interface.
pub struct Capture {
    packets: Packets,
    program: Program,
}

impl Capture {
    /// Captures what passes `interface` of `host`, or of the test's own host, and fits the capture filter's words.
    #[track_caller]
    pub fn start(host: Option<&Host>, interface: &str, name: &str, filter: &str) -> Capture {
        let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.pcapng"));
        // What tshark would start and leave behind when it is killed.
        let mut command = host.map_or_else(|| Command::new("dumpcap"), |host| host.command("dumpcap"));
        // Room for a loaded machine: the default of 2 MiB loses packets of large transfers.
        command.args(["-i", interface, "-f", filter, "-B", "64", "-q", "-w"]).arg(&file);
        let mut program = Program::start("dumpcap", &command);
        program.expect_text("Capturing on");
        // It says so shortly before it listens.
        std::thread::sleep(Duration::from_millis(700));
        Capture { packets: Packets { file, decode_as: None }, program }
    }

    /// Takes UDP datagrams from and to `port` for packets of `protocol`.
    pub fn decode_as(mut self, port: u16, protocol: &str) -> Capture {
        self.packets.decode_as = Some(format!("udp.port=={port},{protocol}"));
        self
    }

    #[track_caller]
    pub fn stop(self) -> Packets {
        std::thread::sleep(Duration::from_millis(500));
        self.program.interrupt();
        self.packets
    }
}

/// A finished capture.
pub struct Packets {
    file: PathBuf,
    decode_as: Option<String>,
}

impl Packets {
    /// One line for each packet that fits the display filter, with the values of one field.
    #[track_caller]
    pub fn select(&self, filter: &str, field: &str) -> Vec<String> {
        self.rows(filter, &[field]).into_iter().map(|mut row| row.remove(0)).collect()
    }

    /// One row for each packet that fits the display filter, with the values of each field; several of one are joined by `|`.
    #[track_caller]
    pub fn rows(&self, filter: &str, fields: &[&str]) -> Vec<Vec<String>> {
        let mut command = Command::new(tshark());
        command.arg("-r").arg(&self.file).args(["-Y", filter, "-T", "fields", "-E", "aggregator=|"]);
        fields.iter().for_each(|field| {
            command.args(["-e", field]);
        });
        match &self.decode_as {
            Some(words) => _ = command.args(["-d", words]),
            None => GUESSED.iter().for_each(|protocol| _ = command.args(["--disable-protocol", protocol])),
        }
        let output = command.output().expect("tshark is installed: run `cargo xtask test`");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        text.lines().map(|line| line.split('\t').map(str::to_owned).collect()).collect()
    }

    /// Fails when a packet is malformed or the dissector calls anything in it an error.
    #[track_caller]
    pub fn check_well_formed(&self) {
        let about = ["ip.src", "udp.srcport", "udp.payload"];
        let fields = [["frame.number", "_ws.col.Info", "_ws.expert.message", "_ws.expert.severity"].as_slice(), &about];
        let fields = fields.concat();
        let suspicious = self.rows("_ws.malformed || _ws.expert.severity == error", &fields);
        let is_wrong = |row: &&Vec<String>| {
            let mut remarks = row[2].split('|').zip(row[3].split('|'));
            remarks.any(|(text, severity)| {
                let severity: u32 = severity.parse().expect("a number");
                severity >= WARNING && !YOUNG_OPTIONS.contains(&text)
            })
        };
        let wrong = suspicious.iter().filter(|row| !is_several_empty_messages(&row[6])).filter(is_wrong);
        let wrong: Vec<_> = wrong.take(10).collect();
        assert!(wrong.is_empty(), "{}: malformed packets {wrong:#?}", self.file.display());
    }

    /// Fails when there are UDP datagrams that the dissector does not take for packets of `protocol`. A program that has found nobody for
    /// a second asks by 12 octets whether a group comes back to it.
    #[track_caller]
    pub fn check_all_are(&self, protocol: &str) {
        let others = format!("udp && !{protocol} && !icmp && !icmpv6 && !(udp.length == 20)");
        let others = self.select(&others, "frame.number");
        assert!(others.is_empty(), "{}: not recognised as {protocol}: {others:?}", self.file.display());
    }
}

/// From here on a remark of the dissector is more than a note.
const WARNING: u32 = 0x0060_0000;
/// Echo and Request-Tag (RFC 9175) and No-Response (RFC 7967), which tshark 4.0 does not know.
const YOUNG_OPTIONS: [&str; 3] =
    ["Invalid Option Number 252", "Invalid Option Number 292", "Invalid Option Number 258"];

/// What the dissector may take a UDP datagram for by its bytes alone, but RTPS: random bytes, which other vendors' programs send too,
/// look like malformed packets of one or the other.
static GUESSED: LazyLock<Vec<String>> = LazyLock::new(|| {
    let output = Command::new(tshark()).args(["-G", "heuristic-decodes"]).output().expect("tshark is installed");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let rows = text.lines().map(|line| line.split('\t').collect::<Vec<_>>());
    let guesses = rows.filter(|row| row.len() > 2 && row[0] == "udp" && row[1] != "rtps" && row[2] == "T");
    guesses.map(|row| row[1].to_owned()).collect()
});

/// Whether a payload in hexadecimal is several empty CoAP acknowledgements or resets: what the kernel cuts into datagrams when it leaves
/// (UDP_SEGMENT) is captured whole on loopback.
fn is_several_empty_messages(payload: &str) -> bool {
    let is_empty_message = |message: &[u8]| message.starts_with(b"6000") || message.starts_with(b"7000");
    payload.len() > 8 && payload.len().is_multiple_of(8) && payload.as_bytes().chunks(8).all(is_empty_message)
}

fn tshark() -> String {
    std::env::var("THALWEG_TSHARK").expect("no packet dissector: run `cargo xtask test`")
}
