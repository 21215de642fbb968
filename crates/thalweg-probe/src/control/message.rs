//! What the ends say: one JSON object a line.

use serde::{Deserialize, Serialize};
use thalweg_host::Layers;

use crate::order::ProbeOrder;
use crate::reports::{EndReport, ProbeSecond};

/// A line of the conversation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ControlMessage {
    /// The client asks for a measurement.
    Order(ProbeOrder),
    /// The server has its sockets.
    Ready(Ready),
    /// The client has its sockets too and waits for [`ControlMessage::Begun`].
    Begin(Begin),
    /// The server counts from now on, and a server that sends begins to.
    Begun,
    /// A second of a stream that the server receives.
    Second(ProbeSecond),
    /// The end that sends has sent everything.
    Ended(EndReport),
    /// The other end has received all that will come.
    Report(EndReport),
    /// An end gives up.
    Failed {
        /// Why, for people.
        reason: String,
    },
}

/// Where a server listens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ready {
    /// Stands in each datagram, changed by the number of its stream, and at the beginning of each TCP connection.
    pub token: u32,
    /// A port for each stream.
    pub ports: Vec<u16>,
}

/// Where a client listens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Begin {
    /// A UDP port for each stream that the server sends; otherwise none.
    pub ports: Vec<u16>,
}

impl ControlMessage {
    /// The message as a line.
    pub fn to_line(&self) -> Vec<u8> {
        let mut line = serde_json::to_vec(self).expect("these types have JSON");
        line.push(b'\n');
        line
    }

    /// Reads a line without its end. Texts of the other end are cut and rid of what a terminal would obey.
    ///
    /// # Errors
    /// Why it is no message.
    pub fn from_line(line: &[u8]) -> Result<ControlMessage, String> {
        let mut message: ControlMessage =
            serde_json::from_slice(line).map_err(|error| printable(&error.to_string(), TEXT_MAX))?;
        match &mut message {
            ControlMessage::Failed { reason } => *reason = printable(reason, TEXT_MAX),
            ControlMessage::Ended(report) | ControlMessage::Report(report) => {
                let named = report.layers.iter().take(LAYERS_MAX);
                report.layers = named.map(|(name, value)| (printable(name, NAME_MAX), value)).collect::<Layers>();
            }
            _ => {}
        }
        Ok(message)
    }
}

fn printable(text: &str, letters_max: usize) -> String {
    text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).take(letters_max).collect()
}

/// Letters of a text of the other end that are shown. Chosen here: some lines of a terminal.
const TEXT_MAX: usize = 500;
/// Letters of a counter's name, and counters. Chosen here: above what any kernel has.
const NAME_MAX: usize = 80;
const LAYERS_MAX: usize = 1_000;
