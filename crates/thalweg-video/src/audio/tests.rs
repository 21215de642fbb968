//! Tests of audio: forms and the sender.

mod form;
