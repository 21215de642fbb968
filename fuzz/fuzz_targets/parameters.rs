//! Any parameter list, each value read in every way: no panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use thalweg_rtps::wire::Endianness;
use thalweg_rtps::wire::parameters::{Parameter, ParameterList};

fuzz_target!(|input: &[u8]| {
    let Some((order, bytes)) = input.split_first() else { return };
    let endianness = if order & 1 == 0 { Endianness::Big } else { Endianness::Little };
    let list = ParameterList::new(bytes, endianness);
    for parameter in list.iter() {
        let Ok(parameter) = parameter else { break };
        assert!(parameter.value.len().is_multiple_of(4));
        assert_eq!(&bytes[parameter.offset..][..parameter.value.len()], parameter.value);
        assert!(list.find(parameter.id).is_some());
        read(&parameter);
    }
    let _ = (list.status_info(), list.key_hash());
    if let Ok(list) = ParameterList::from_payload(bytes) {
        assert!(list.iter().count() <= bytes.len() / 4);
    }
});

/// Reads one kind of value after the other from each position that the last one left.
fn read(parameter: &Parameter<'_>) {
    let mut value = parameter.reader();
    loop {
        let before = value.remaining();
        let _ = value.clone().string();
        let _ = value.clone().octets();
        let _ = value.clone().locator();
        let _ = value.clone().duration();
        let _ = value.clone().sequence_number();
        let _ = value.clone().guid();
        let _ = value.clone().u32();
        let _ = value.boolean();
        let _ = value.u16();
        if value.remaining() == before {
            return;
        }
    }
}
