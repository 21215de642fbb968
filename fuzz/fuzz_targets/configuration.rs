//! A configuration file: any text is read or refused with its line, without a panic, and what was read can be shown and applied.

#![no_main]

use libfuzzer_sys::fuzz_target;
use thalweg::Configuration;
use thalweg::qos::{ReaderQos, WriterQos};

fuzz_target!(|text: &str| {
    match Configuration::parse(text, "file") {
        Ok(configuration) => {
            assert!(configuration.settings().len() >= 16);
            let topic = text.lines().last().unwrap_or("topic");
            _ = configuration.topic_settings(topic);
            let writer = configuration.writer_qos(topic, &WriterQos::default());
            assert_eq!(configuration.writer_qos(topic, &writer), writer, "settings are applied once");
            let reader = configuration.reader_qos(topic, &ReaderQos::default());
            assert_eq!(configuration.reader_qos(topic, &reader), reader);
        }
        Err(error) => assert!(error.to_string().contains("file:"), "{error}"),
    }
});
