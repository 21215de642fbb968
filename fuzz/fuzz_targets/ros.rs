//! Definitions of ROS: no panic, and each type can be described and written as IDL.
#![no_main]

use libfuzzer_sys::fuzz_target;
use thalweg_types::idl::{parse, to_idl};
use thalweg_types::ros::RosPackages;
use thalweg_types::type_object::describe;

fuzz_target!(|input: &[u8]| {
    let Some((kind, text)) = input.split_first() else { return };
    let Ok(text) = std::str::from_utf8(text) else { return };
    let kind = ["msg", "srv", "action"][usize::from(kind % 3)];
    let Ok(types) = RosPackages::default().read_text("p", kind, "T", text, None) else { return };
    types.iter().for_each(|found| assert!(describe(found).is_ok()));
    parse(&to_idl(&types)).expect("what is written is IDL");
});
