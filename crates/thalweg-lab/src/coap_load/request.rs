//! The datagram of a request, and the check of an answer.

use thalweg_coap::endpoint::Confirmability;
use thalweg_coap::message::{
    CoapMessage, Code, HEADER_LEN, MessageId, MessageType, MessageWriter, OptionNumber, RequestBuf, Token, write_option,
};

use super::plan::RequestPlan;
use crate::error::LabError;

/// All requests of a run: they differ in message ID and token only.
pub(super) struct Template {
    bytes: Vec<u8>,
    delivery: Confirmability,
    expected: Option<Vec<u8>>,
}

/// The kind of the first answer to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// 2.05 with the expected payload.
    Right,
    /// Another code.
    Rejected,
    /// The wrong payload, type or message ID.
    Wrong,
}

impl Template {
    /// # Errors
    /// When the datagram cannot have the requested size.
    pub(super) fn new(plan: &RequestPlan) -> Result<Template, LabError> {
        let message_type = match plan.delivery {
            Confirmability::Confirmable => MessageType::Confirmable,
            Confirmability::NonConfirmable => MessageType::NonConfirmable,
        };
        let request = RequestBuf::get(&plan.resource);
        let options = request.view().options;
        let mut bytes = Vec::new();
        MessageWriter::new(&mut bytes, message_type, Code::GET, MessageId(0), &Token::from_u64(0)).options(options);
        let last = options.last().map_or(OptionNumber(0), |(number, _)| number);
        let len = plan.bytes.unwrap_or(bytes.len());
        if len < bytes.len() || len > BYTES_MAX {
            return Err(LabError::Here(format!(
                "a request for {} cannot have {len} bytes; it takes {} to {BYTES_MAX}",
                plan.resource,
                bytes.len()
            )));
        }
        pad(&mut bytes, last, len);
        let expected = plan.expected.as_ref().map(|text| text.as_bytes().to_vec());
        Ok(Template { bytes, delivery: plan.delivery, expected })
    }

    /// The datagram with this message ID and token.
    pub(super) fn datagram(&mut self, id: u16, token: u64) -> &[u8] {
        self.bytes[2..HEADER_LEN].copy_from_slice(&id.to_be_bytes());
        self.bytes[HEADER_LEN..HEADER_LEN + 8].copy_from_slice(&token.to_be_bytes());
        &self.bytes
    }

    /// Judges a message whose token is that of a request with this message ID.
    pub(super) fn judge(&self, id: u16, message: &CoapMessage<'_>) -> Verdict {
        let is_type_right = match message.message_type {
            MessageType::Acknowledgement => self.delivery == Confirmability::Confirmable && message.id.0 == id,
            MessageType::Confirmable | MessageType::NonConfirmable => true,
            MessageType::Reset => false,
        };
        if !is_type_right || !message.code.is_response() {
            Verdict::Wrong
        } else if message.code != Code::CONTENT {
            Verdict::Rejected
        } else if self.expected.as_ref().is_none_or(|expected| expected == message.payload) {
            Verdict::Right
        } else {
            Verdict::Wrong
        }
    }
}

/// Lengthens a request by arguments of its query until it has `len` bytes.
fn pad(bytes: &mut Vec<u8>, mut last: OptionNumber, len: usize) {
    while bytes.len() < len {
        let value = match len - bytes.len() {
            // Number and length take a byte, for values of 13 bytes and more two.
            missing @ 1..=13 => missing - 1,
            14 => 12,
            missing => (missing - 2).min(VALUE_MAX),
        };
        write_option(bytes, last, OptionNumber::URI_QUERY, &vec![b'x'; value]);
        last = OptionNumber::URI_QUERY;
    }
}

/// Largest datagram on Ethernet without fragments, over IPv6.
const BYTES_MAX: usize = 1452;
/// RFC 7252 §5.10.
const VALUE_MAX: usize = 255;

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(resource: &str, bytes: Option<usize>) -> RequestPlan {
        let resource = resource.to_owned();
        RequestPlan { resource, delivery: Confirmability::Confirmable, bytes, expected: Some("hello".to_owned()) }
    }

    #[test]
    fn a_plain_request_has_20_bytes_and_any_longer_one_its_size_and_resource() {
        assert_eq!(Template::new(&plan("/request", None)).unwrap().datagram(7, 9).len(), 20);
        for resource in ["/request", "/slow?ms=2"] {
            for len in 30..=BYTES_MAX {
                let mut template = Template::new(&plan(resource, Some(len))).unwrap();
                let datagram = template.datagram(0x1234, 0x0102_0304_0506_0708);
                let message = CoapMessage::parse(datagram).unwrap();
                assert_eq!((datagram.len(), message.id.0), (len, 0x1234));
                assert_eq!(message.token.to_u64(), Some(0x0102_0304_0506_0708));
                let path: Vec<&[u8]> = message.options.values(OptionNumber::URI_PATH).collect();
                assert_eq!(path, [resource[1..].split('?').next().unwrap().as_bytes()]);
            }
        }
        let refusal = Template::new(&plan("/request", Some(19))).err().unwrap().to_string();
        assert_eq!(refusal, "a request for /request cannot have 19 bytes; it takes 20 to 1452");
    }

    #[track_caller]
    fn check(message_type: MessageType, code: Code, id: u16, payload: &str, expected: Verdict) {
        let mut bytes = Vec::new();
        let token = Token::from_u64(1);
        MessageWriter::new(&mut bytes, message_type, code, MessageId(id), &token).payload(payload.as_bytes());
        let template = Template::new(&plan("/request", None)).unwrap();
        assert_eq!(template.judge(7, &CoapMessage::parse(&bytes).unwrap()), expected);
    }

    #[test]
    fn an_answer_is_right_only_with_its_code_type_message_id_and_payload() {
        use MessageType::{Acknowledgement, Confirmable, NonConfirmable, Reset};
        check(Acknowledgement, Code::CONTENT, 7, "hello", Verdict::Right);
        check(Confirmable, Code::CONTENT, 99, "hello", Verdict::Right);
        check(NonConfirmable, Code::CONTENT, 99, "hello", Verdict::Right);
        check(Acknowledgement, Code::CONTENT, 8, "hello", Verdict::Wrong);
        check(Acknowledgement, Code::CONTENT, 7, "hello?", Verdict::Wrong);
        check(Acknowledgement, Code::CONTENT, 7, "", Verdict::Wrong);
        check(Reset, Code::CONTENT, 7, "hello", Verdict::Wrong);
        check(NonConfirmable, Code::GET, 7, "hello", Verdict::Wrong);
        check(Acknowledgement, Code::SERVICE_UNAVAILABLE, 7, "", Verdict::Rejected);
        check(NonConfirmable, Code::VALID, 7, "", Verdict::Rejected);
    }
}
