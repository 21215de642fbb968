//! A CoAP datagram: what is read can be written and reads the same; options keep their order and their bounds.

#![no_main]

use libfuzzer_sys::fuzz_target;
use thalweg_coap::message::{CoapMessage, MessageWriter, RequestBuf};

fuzz_target!(|bytes: &[u8]| {
    let Ok(message) = CoapMessage::parse(bytes) else { return };
    let mut out = Vec::new();
    let mut writer = MessageWriter::new(&mut out, message.message_type, message.code, message.id, &message.token);
    for (number, value) in message.options {
        writer.option(number, value);
        let _ = number.accepts(value);
    }
    writer.payload(message.payload);
    assert!(out.len() <= bytes.len(), "the shortest form is written");
    let again = CoapMessage::parse(&out).expect("what is written can be read");
    assert!(message.options.eq(again.options));
    assert_eq!((message.token, message.payload), (again.token, again.payload));
    // Inserted one by one from behind, the options come out in the same order.
    let options: Vec<_> = message.options.collect();
    let request =
        options.iter().fold(RequestBuf::default(), |request, (number, value)| request.with_option(*number, value));
    assert!(request.view().options.eq(options));
    let _ = (request.view().path(), request.view().queries().count(), request.view().etags().count());
});
