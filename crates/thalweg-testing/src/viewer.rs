//! A client of the Foxglove WebSocket protocol that waits for what it is told.

use std::io::ErrorKind;
use std::net::{SocketAddr, TcpStream};

use serde_json::{Value, json};
use tungstenite::http::Uri;
use tungstenite::protocol::WebSocket;
use tungstenite::{ClientRequestBuilder, Error, HandshakeError, Message};

use crate::program::PATIENCE;

/// The name of the protocol today, and the one before.
pub const PROTOCOLS: [&str; 2] = ["foxglove.sdk.v1", "foxglove.websocket.v1"];

/// A client. What it is not asked to read stays in the system's buffers.
pub struct Viewer {
    socket: WebSocket<TcpStream>,
}

/// What a client is told.
#[derive(Debug)]
pub enum ViewMessage {
    /// A message.
    Message(Value),
    /// A sample.
    Sample {
        /// The number that the client chose.
        subscription: u32,
        /// The bytes behind the time.
        bytes: Vec<u8>,
    },
    /// The server has said goodbye, or has gone.
    Goodbye,
}

impl Viewer {
    /// Connects as a program does.
    #[track_caller]
    pub fn connect(address: SocketAddr) -> Viewer {
        let connected = Viewer::connect_as(address, PROTOCOLS[0], None);
        connected.unwrap_or_else(|(status, text)| panic!("refused: {status} {text}"))
    }

    /// Connects by a version of the protocol, as a page of `origin` if there is one.
    ///
    /// # Errors
    /// The status and the text with which the server refuses.
    #[track_caller]
    pub fn connect_as(address: SocketAddr, protocol: &str, origin: Option<&str>) -> Result<Viewer, (u16, String)> {
        let stream = TcpStream::connect(address).expect("the server listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a time-out");
        let uri: Uri = format!("ws://{address}/").parse().expect("an address is a part of URIs");
        let mut request = ClientRequestBuilder::new(uri).with_sub_protocol(protocol);
        if let Some(origin) = origin {
            request = request.with_header("Origin", origin);
        }
        match tungstenite::client(request, stream) {
            Ok((socket, _)) => Ok(Viewer { socket }),
            Err(HandshakeError::Failure(Error::Http(response))) => {
                let body = response.body().clone().unwrap_or_default();
                Err((response.status().as_u16(), String::from_utf8_lossy(&body).into_owned()))
            }
            Err(error) => panic!("no WebSocket: {error}"),
        }
    }

    /// The next thing that it is told.
    #[track_caller]
    pub fn read(&mut self) -> ViewMessage {
        loop {
            match self.socket.read() {
                Ok(Message::Text(text)) => {
                    return ViewMessage::Message(serde_json::from_str(text.as_str()).expect("JSON"));
                }
                Ok(Message::Binary(bytes)) => {
                    assert!(bytes.len() >= 13 && bytes[0] == 1, "no sample: {bytes:?}");
                    let subscription = u32::from_le_bytes([bytes[1], bytes[2], bytes[3], bytes[4]]);
                    return ViewMessage::Sample { subscription, bytes: bytes[13..].to_vec() };
                }
                Ok(Message::Close(_)) | Err(Error::ConnectionClosed | Error::Protocol(_)) => {
                    return ViewMessage::Goodbye;
                }
                Ok(_) => {}
                Err(Error::Io(error)) if !matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                    return ViewMessage::Goodbye;
                }
                Err(error) => panic!("nothing is told: {error}"),
            }
        }
    }

    /// Waits for a message that fits; samples are left out.
    #[track_caller]
    pub fn expect(&mut self, what: &str, mut fits: impl FnMut(&Value) -> bool) -> Value {
        loop {
            match self.read() {
                ViewMessage::Message(message) if fits(&message) => return message,
                ViewMessage::Goodbye => panic!("the server has gone without {what}"),
                ViewMessage::Message(_) | ViewMessage::Sample { .. } => {}
            }
        }
    }

    /// Waits for the channel of a topic.
    #[track_caller]
    pub fn expect_channel(&mut self, topic: &str) -> Value {
        let mut found = None;
        self.expect(topic, |message| {
            let channels = message["channels"].as_array().into_iter().flatten();
            found = channels.into_iter().find(|channel| channel["topic"] == topic).cloned();
            found.is_some()
        });
        found.expect("it was found")
    }

    /// Waits for a remark that contains a text.
    #[track_caller]
    pub fn expect_remark(&mut self, text: &str) -> Value {
        self.expect(text, |message| {
            message["op"] == "status" && message["message"].as_str().is_some_and(|told| told.contains(text))
        })
    }

    /// Asks for the samples of a channel under a number.
    #[track_caller]
    pub fn subscribe(&mut self, subscription: u32, channel: &Value) {
        let wanted = json!([{"id": subscription, "channelId": channel["id"]}]);
        self.say(&json!({"op": "subscribe", "subscriptions": wanted}));
    }

    /// Gives a subscription up.
    #[track_caller]
    pub fn unsubscribe(&mut self, subscription: u32) {
        self.say(&json!({"op": "unsubscribe", "subscriptionIds": [subscription]}));
    }

    /// Says anything. A server that has gone meanwhile is heard of by [`Viewer::read`].
    #[track_caller]
    pub fn say(&mut self, message: &Value) {
        let _ = self.socket.send(Message::Text(message.to_string().into()));
    }

    /// Waits for the next sample: its subscription and bytes.
    #[track_caller]
    pub fn expect_sample(&mut self) -> (u32, Vec<u8>) {
        loop {
            match self.read() {
                ViewMessage::Sample { subscription, bytes } => return (subscription, bytes),
                ViewMessage::Goodbye => panic!("the server has gone without a sample"),
                ViewMessage::Message(_) => {}
            }
        }
    }
}
