//! Laws of parameter lists and their values.

use std::time::Duration;

use super::super::parameters::*;
use super::*;
use crate::time::INFINITE;
use crate::types::{Guid, KeyHash, Locator, SampleIdentity, SequenceNumber, VendorId};

const GUID: Guid = Guid { prefix: PREFIX, entity: WRITER };
const LOCATOR: Locator = Locator { kind: 1, port: 7_410, address: [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 127, 0, 0, 1] };

/// The ids of a list, or where and why it breaks.
fn ids(hex: &str, endianness: Endianness) -> String {
    let bytes = bytes_of(hex);
    let list = ParameterList::new(&bytes, endianness);
    let tell = |parameter: Result<Parameter<'_>, WireError>| match parameter {
        Ok(parameter) => format!("{:04x}", parameter.id),
        Err(error) => error.to_string(),
    };
    list.iter().map(tell).collect::<Vec<_>>().join(" ")
}

#[test]
fn lists_end_at_their_sentinel_and_skip_padding() {
    assert_eq!(
        ids("7000 0400 01020304 0000 0400 00000000 7100 0000 0100 0000 7200 0000", Endianness::Little),
        "0070 0071"
    );
    assert_eq!(ids("0070 0004 01020304 0001 beef", Endianness::Big), "0070");
    assert_eq!(ids("0100 ffff", Endianness::Little), "", "the sentinel's length says nothing");
}

#[test]
fn broken_lists_say_where_they_break() {
    let length = "expected parameter length that is a multiple of 4 and within the list";
    assert_eq!(ids("", Endianness::Little), "0: expected parameter or sentinel");
    assert_eq!(ids("7000", Endianness::Little), "2: expected parameter length");
    assert_eq!(ids("7000 0400 01020304", Endianness::Little), "0070 8: expected parameter or sentinel");
    assert_eq!(ids("7000 0300 010203 0100 0000", Endianness::Little), format!("2: {length}"));
    assert_eq!(ids("7000 0800 01020304", Endianness::Little), format!("2: {length}"));
    assert_eq!(ids("7000 fcff 01020304", Endianness::Little), format!("2: {length}"));
}

#[test]
fn only_parameter_lists_are_taken_from_a_discovery_payload() {
    let tell = |hex: &str| ParameterList::from_payload(&bytes_of(hex)).map(|list| list.iter().count());
    assert_eq!(tell("0003 0000 7000 0000 0100 0000"), Ok(1));
    assert_eq!(tell("0002 0000 0070 0000 0001 0000"), Ok(1));
    let error = Err(WireError { offset: 0, expected: "encapsulation PL_CDR_BE or PL_CDR_LE" });
    assert_eq!(tell("0001 0000 7000 0000 0100 0000"), error);
    assert_eq!(tell("0103 0000 7000 0000 0100 0000"), error);
    assert_eq!(tell("0003 00"), error);
    let unterminated = bytes_of("0003 0000 7000 0000");
    let error = ParameterList::from_payload(&unterminated).unwrap().iter().last().unwrap().unwrap_err();
    assert_eq!(error.to_string(), "8: expected parameter or sentinel");
}

#[test]
fn values_come_back() {
    let mut out = b"xyz".to_vec();
    let mut list = ParameterWriter::new(&mut out);
    list.put(0x10, |value| {
        value.boolean(true);
        value.string("héllo");
        value.octets(&[1, 2, 3, 4, 5]);
        value.i32(-5);
        value.boolean(false);
        value.u32(9);
        value.u16(1);
        value.u16(2);
        value.duration(Duration::from_millis(250));
        value.duration(INFINITE);
        value.locator(&LOCATOR);
        value.guid(GUID);
    });
    list.put_string(0x11, "");
    list.put_string(0x12, "cut\0off");
    list.put_octets(0x13, &[]);
    list.finish();
    let list = ParameterList::new(&out[3..], Endianness::Little);
    assert!(list.iter().all(|parameter| parameter.is_ok()));
    let mut value = list.find(0x10).unwrap().reader();
    assert_eq!(value.boolean(), Ok(true));
    assert_eq!(value.string(), Ok("héllo"));
    assert_eq!(value.octets(), Ok(&[1, 2, 3, 4, 5][..]));
    assert_eq!(value.i32(), Ok(-5));
    assert_eq!(value.boolean(), Ok(false));
    assert_eq!(value.u32(), Ok(9));
    assert_eq!((value.u16(), value.u16()), (Ok(1), Ok(2)));
    assert_eq!(value.duration(), Ok(Duration::from_millis(250)));
    assert_eq!(value.duration(), Ok(INFINITE));
    assert_eq!(value.locator(), Ok(LOCATOR));
    assert_eq!(value.guid(), Ok(GUID));
    assert_eq!(value.remaining(), 0);
    assert_eq!(list.find(0x11).unwrap().reader().string(), Ok(""));
    assert_eq!(list.find(0x12).unwrap().reader().string(), Ok("cut"));
    assert_eq!(list.find(0x13), None);
}

#[test]
fn a_value_too_long_to_be_told_is_left_out_whole() {
    let mut out = Vec::new();
    let mut list = ParameterWriter::new(&mut out);
    list.put_octets(0x10, &vec![1; VALUE_MAX_BYTES - 4]);
    list.put_octets(0x11, &vec![1; VALUE_MAX_BYTES - 3]);
    list.put_string(0x12, "after");
    list.finish();
    let list = ParameterList::new(&out, Endianness::Little);
    let ids: Vec<_> = list.iter().map(|parameter| parameter.unwrap().id).collect();
    assert_eq!(ids, [0x10, 0x12]);
}

/// Reads one value of a parameter that consists of `hex`, big endian.
#[track_caller]
fn refused<T: std::fmt::Debug>(hex: &str, read: fn(&mut ParameterReader<'_>) -> Result<T, WireError>, expect: &str) {
    let mut list = bytes_of("0010");
    let value = bytes_of(hex);
    list.extend_from_slice(&(value.len() as u16).to_be_bytes());
    list.extend_from_slice(&value);
    list.extend_from_slice(&[0, 1, 0, 0]);
    let parameter = ParameterList::new(&list, Endianness::Big).find(0x10).unwrap();
    assert_eq!(read(&mut parameter.reader()).unwrap_err().to_string(), expect);
}

#[test]
fn broken_values_say_where_they_break() {
    refused("", |value| value.u32(), "4: expected 32-bit number");
    refused("00000000", |value| value.duration(), "8: expected 32-bit number");
    refused("02000000", |value| value.boolean(), "4: expected boolean 0 or 1");
    refused("00000005 61626364", |value| value.octets().map(<[u8]>::len), "4: expected length within the parameter");
    refused("ffffffff 61626364", |value| value.octets().map(<[u8]>::len), "4: expected length within the parameter");
    refused(
        "00000004 61626364",
        |value| value.string().map(str::len),
        "4: expected string that ends with its only NUL",
    );
    refused(
        "00000004 61006300",
        |value| value.string().map(str::len),
        "4: expected string that ends with its only NUL",
    );
    refused("00000003 61ff0000", |value| value.string().map(str::len), "4: expected string in UTF-8");
    refused("00000000 00000001", |value| value.guid(), "4: expected GUID of 16 bytes");
    refused("00000001 00000001 00000000", |value| value.locator(), "12: expected locator address");
    refused("00000001", |value| value.array::<5>(), "4: expected more bytes in the parameter");
    refused("00000001", |value| value.sequence_number(), "8: expected sequence number");
}

#[test]
fn status_and_key_are_found_in_both_byte_orders_and_nothing_else_is_written() {
    let mut out = Vec::new();
    inline_qos(None, None, &mut out);
    assert!(out.is_empty());
    inline_qos(Some(STATUS_DISPOSED | STATUS_UNREGISTERED), Some(KeyHash([9; 16])), &mut out);
    let expect = "7000 1000 09090909090909090909090909090909 7100 0400 00000003 0100 0000";
    assert_eq!(out, bytes_of(expect));
    let big = bytes_of("0071 0004 00000003 0070 0010 09090909090909090909090909090909 0001 0000");
    let list = ParameterList::new(&big, Endianness::Big);
    assert_eq!((list.status_info(), list.key_hash()), (3, Some(KeyHash([9; 16]))));
    let short = bytes_of("0071 0000 0070 0004 09090909 0001 0000");
    let list = ParameterList::new(&short, Endianness::Big);
    assert_eq!((list.status_info(), list.key_hash()), (0, None));
    assert_eq!(list.find_status_info(), None, "it is too short");
    let alive = bytes_of("0071 0004 00000000 0001 0000");
    assert_eq!(ParameterList::new(&alive, Endianness::Big).find_status_info(), Some(0));
}

#[test]
fn the_readers_of_a_directed_sample_are_read_one_by_one_and_as_a_sequence() {
    let (one, other) = ("01010101 01010101 01010101 00000107", "02020202 02020202 02020202 00000207");
    let guid = |hex: &str| Guid::from_bytes(bytes_of(hex).try_into().expect("16 bytes"));
    let read = |hex: &str, endianness| {
        let bytes = bytes_of(hex);
        ParameterList::new(&bytes, endianness).directed_to()
    };
    let both = [guid(one), guid(other)];
    assert_eq!(read(&format!("0057 0010 {other} 0057 0010 {one} 0001 0000"), Endianness::Big), both);
    assert_eq!(read(&format!("0057 0024 00000002 {other} {one} 0001 0000"), Endianness::Big), both);
    assert_eq!(read(&format!("5700 2400 02000000 {one} {other} 0100 0000"), Endianness::Little), both);
    let too_many = format!("5700 1400 ffffffff {one} 0100 0000");
    assert_eq!(read(&too_many, Endianness::Little), [guid(one)], "as many as there are");
    assert!(read("5700 0400 00000000 5700 0000 0100 0000", Endianness::Little).is_empty());
}

#[test]
fn the_related_sample_is_written_by_the_standards_number_and_read_by_that_of_fast_dds_as_well() {
    let related = SampleIdentity { writer: GUID, sequence: SequenceNumber(0x1_0000_0002) };
    let mut out = Vec::new();
    inline_qos_with(None, None, Belonging { related: Some(related), ..Belonging::default() }, &mut out);
    assert_eq!(out[..4], bytes_of("8300 1800")[..]);
    let read = |bytes: &[u8], vendor| ParameterList::new(bytes, Endianness::Little).related_sample(vendor);
    assert_eq!(read(&out, VendorId::UNKNOWN), Some(related));
    let mut older = out.clone();
    older[..2].copy_from_slice(&[0x0f, 0x80]);
    assert_eq!(read(&older, VendorId::FAST_DDS), Some(related));
    assert_eq!(read(&older, VendorId::CYCLONE), None, "the number is another vendor's own");
    let mut both = out[..28].to_vec();
    both[20] = 9;
    both.extend_from_slice(&older);
    assert_eq!(read(&both, VendorId::FAST_DDS).map(|found| found.sequence), Some(SequenceNumber(0x9_0000_0002)));
    let mut unknown = out.clone();
    unknown[20..28].copy_from_slice(&bytes_of("ffffffff 00000000"));
    assert_eq!(read(&unknown, VendorId::THALWEG), None, "no sample has this number");
    assert_eq!(read(&bytes_of("8300 0400 01020304 0100 0000"), VendorId::THALWEG), None);
}
