//! Files of gateways: whatever comes is a plan or an error with a place in the text.
#![no_main]

use libfuzzer_sys::fuzz_target;
use thalweg_coap::gateway::GatewayPlan;

fuzz_target!(|text: &str| {
    // Most of the grammar lies behind the first line.
    for text in [text.to_owned(), format!("schema = \"thalweg.gateway/1\"\n{text}")] {
        if let Err(error) = GatewayPlan::parse("f", &text) {
            assert!(error.line >= 1 && error.line <= text.matches('\n').count() + 1, "{error}");
        }
    }
});
