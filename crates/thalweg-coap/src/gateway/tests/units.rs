//! Units of readings, registered ones and own ones.

use super::*;
use crate::senml;

/// What a reading with this unit says in JSON, CBOR and SenML, and in a pack.
#[track_caller]
fn check(symbol: &str) {
    let lines = format!(
        "[[resource]]\npath = \"all/flow\"\nunit = \"{symbol}\"\nvalue = 12.5\n[[pack]]\npath = \"pack\"\nroot = \"all\"\n"
    );
    let mut gateway = Gateway::start(plan(&lines)).expect("started");
    assert_eq!(gateway.start_parts().failed, Vec::<String>::new(), "{symbol}");
    let get = |path: &str, accept: u16| {
        let resource = gateway.store().find(path).expect("there");
        resource.get(&Get { accept: Some(accept), queries: &[] }).expect("a reading")
    };
    let json = get("all/flow", content_format::JSON).payload;
    assert_eq!(String::from_utf8_lossy(&json), format!(r#"{{"value":12.5,"unit":"{symbol}"}}"#));
    for format in [content_format::JSON, content_format::CBOR, content_format::SENML_JSON, content_format::SENML_CBOR] {
        let read = get("all/flow", format).value();
        assert_eq!(read, Ok((Value::Real(12.5), symbol.to_owned())), "{format}");
    }
    for format in [content_format::SENML_JSON, content_format::SENML_CBOR] {
        let pack = senml::parse(format, &get("pack", format).payload).expect("a pack");
        let records: Vec<(&str, &str)> = pack.iter().map(|one| (one.name.as_str(), one.unit.as_str())).collect();
        assert_eq!(records, [("all/flow", symbol)]);
    }
}

#[test]
fn registered_units_and_own_ones_are_told_in_every_format() {
    // RFC 8428 §12.1, and two of RFC 8798.
    for registered in ["m", "kg", "Cel", "%RH", "m/s2", "W/m2", "cd/m2", "beat/min", "dBW", "/", "ms", "kWh"] {
        check(registered);
    }
    for own in ["widgets/h", "pallets", "x-furlong/fortnight"] {
        check(own);
    }
}

#[test]
fn units_of_the_library_have_the_symbols_of_the_registry() {
    let units = [
        (Unit::METRE, "m"),
        (Unit::KILOGRAM, "kg"),
        (Unit::SECOND, "s"),
        (Unit::AMPERE, "A"),
        (Unit::KELVIN, "K"),
        (Unit::CANDELA, "cd"),
        (Unit::HERTZ, "Hz"),
        (Unit::RADIAN, "rad"),
        (Unit::NEWTON, "N"),
        (Unit::PASCAL, "Pa"),
        (Unit::JOULE, "J"),
        (Unit::WATT, "W"),
        (Unit::VOLT, "V"),
        (Unit::OHM, "Ohm"),
        (Unit::TESLA, "T"),
        (Unit::LUX, "lx"),
        (Unit::CELSIUS, "Cel"),
        (Unit::HUMIDITY, "%RH"),
        (Unit::METRE_PER_SECOND, "m/s"),
        (Unit::METRE_PER_SECOND_SQUARED, "m/s2"),
        (Unit::DECIBEL, "dB"),
        (Unit::RATIO, "/"),
        (Unit::COUNT, "count"),
        (Unit::BYTE, "B"),
        (Unit::PARTS_PER_MILLION, "ppm"),
        (Unit::HECTOPASCAL, "hPa"),
        (Unit::MICROGRAM_PER_CUBIC_METRE, "ug/m3"),
        (Unit::DEGREE, "deg"),
    ];
    for (unit, symbol) in units {
        assert_eq!((unit.symbol(), Unit::new(symbol)), (symbol, Ok(unit)));
    }
}
