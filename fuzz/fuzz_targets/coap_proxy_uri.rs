//! URIs for a proxy: what is read names a thing and a resource that are read again as the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use thalweg_coap::proxy::ProxyUri;

fuzz_target!(|text: &str| {
    let Ok(uri) = ProxyUri::parse(text) else { return };
    let name = uri.name();
    let again = ProxyUri::parse(&format!("{}://{}/{}", uri.scheme, name.thing, name.path)).expect("a URI");
    assert_eq!(again, uri);
});
