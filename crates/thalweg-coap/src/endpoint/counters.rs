//! Counters of an endpoint.

/// Numbers about an endpoint: the first ones since its beginning, the last seven at present.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Datagrams that are no CoAP message.
    pub malformed: u64,
    /// Datagrams that were too long.
    pub oversized: u64,
    /// Requests that came before.
    pub duplicates: u64,
    /// Messages sent again because no acknowledgement came.
    pub repetitions: u64,
    /// Datagrams of peers for which there was no place.
    pub peers_refused: u64,
    /// Requests refused because handlers hold as many bytes as they may.
    pub bytes_refused: u64,
    /// Registrations answered without observation, because other observers have all places.
    pub observers_refused: u64,
    /// Registrations that ended because others needed their places.
    pub observers_evicted: u64,
    /// Responses with a message ID that was used within its lifetime: the client asks faster than 65,536 times in
    /// [`Times::message_id_lifetime`](super::Times::message_id_lifetime), and may take them for duplicates.
    pub message_ids_reused: u64,
    /// Answers that made room before their time: their requests could run twice.
    pub answers_evicted: u64,
    /// Protected messages that were changed, repeated, or protected with keys that this endpoint has not.
    pub protected_refused: u64,
    /// Responses cut smaller, because they were too large for an address that may be forged.
    pub shrunk: u64,
    /// Requests that their handlers did not answer in time.
    pub expired: u64,
    /// Peers that are remembered.
    pub peers: usize,
    /// Requests that handlers work on.
    pub exchanges: usize,
    /// Registrations of clients.
    pub observers: usize,
    /// Own requests that are not over.
    pub requests: usize,
    /// Bytes of the requests that handlers work on.
    pub request_bytes: usize,
    /// Bytes of answers kept for duplicates.
    pub answer_bytes: usize,
    /// Bytes of bodies that are sent or received in blocks.
    pub transfer_bytes: usize,
}
