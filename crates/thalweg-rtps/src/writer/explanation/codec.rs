//! An explanation as a parameter list: what a reader does not know it skips, what a writer left out has its default.

use std::time::Duration;

use super::super::route::{GroupExplanation, LinkExplanation, RouteExplanation};
use super::WriterExplanation;
use crate::qos::Destination;
use crate::types::Guid;
use crate::wire::WireError;
use crate::wire::parameters::{Parameter, ParameterReader, ParameterWriter, ValueWriter};
use crate::writer::Medium;

/// Parameters of an explanation; they mean nothing elsewhere.
mod id {
    pub const IDENTITY: u16 = 0x8101;
    pub const METHOD: u16 = 0x8102;
    pub const RATES: u16 = 0x8103;
    pub const READERS: u16 = 0x8104;
    pub const WINDOW: u16 = 0x8105;
    pub const REASON: u16 = 0x8106;
    pub const ROUTE: u16 = 0x8107;
    pub const DESTINATION: u16 = 0x8108;
    pub const GROUP: u16 = 0x8109;
    /// Belongs to the group before it.
    pub const LINK: u16 = 0x810a;
    pub const IMPLAUSIBLE: u16 = 0x810b;
}

/// Bounds of what is told and believed, so that no answer is large.
const TEXT_MAX_BYTES: usize = 256;
const REASONS_MAX: usize = 16;
const DESTINATIONS_MAX: usize = 32;
const GROUPS_MAX: usize = 4;
const LINKS_MAX: usize = 16;

impl WriterExplanation {
    /// Appends the parameters of this explanation; texts are cut off at 256 bytes, lists at a few dozen entries.
    pub(crate) fn put(&self, list: &mut ParameterWriter<'_>) {
        list.put(id::IDENTITY, |value| {
            value.guid(self.guid);
            value.string(cut(&self.topic));
        });
        list.put(id::METHOD, |value| {
            value.string(cut(&self.method));
            value.string(cut(&self.method_now));
        });
        list.put(id::RATES, |value| {
            put_optional(value, self.write_interval.map(nanos));
            put_count(value, self.sample_bytes);
            put_u64(value, self.samples_per_datagram.to_bits());
            put_count(value, self.datagram_bytes);
        });
        list.put(id::READERS, |value| {
            put_count(value, self.readers);
            put_count(value, self.readers_behind);
            put_count(value, self.readers_given_up);
        });
        list.put(id::WINDOW, |value| {
            put_optional(value, self.window_bytes);
            put_u64(value, self.in_flight_bytes);
            put_count(value, self.held_samples);
        });
        list.put(id::IMPLAUSIBLE, |value| put_u64(value, self.implausible));
        for reason in self.reasons.iter().take(REASONS_MAX) {
            list.put_string(id::REASON, cut(reason));
        }
        self.route.put(list);
    }

    /// Takes a parameter that belongs to an explanation; others change nothing.
    ///
    /// # Errors
    /// When its value breaks off.
    pub(crate) fn apply(&mut self, parameter: &Parameter<'_>) -> Result<(), WireError> {
        let mut value = parameter.reader();
        match parameter.id {
            id::IDENTITY => {
                self.guid = value.guid()?;
                self.topic = value.string()?.to_owned();
            }
            id::METHOD => {
                self.method = value.string()?.to_owned();
                self.method_now = value.string()?.to_owned();
            }
            id::RATES => {
                self.write_interval = optional(&mut value)?.map(Duration::from_nanos);
                self.sample_bytes = count(&mut value)?;
                self.samples_per_datagram = f64::from_bits(u64_of(&mut value)?);
                self.datagram_bytes = count(&mut value)?;
            }
            id::READERS => {
                self.readers = count(&mut value)?;
                self.readers_behind = count(&mut value)?;
                self.readers_given_up = count(&mut value)?;
            }
            id::WINDOW => {
                self.window_bytes = optional(&mut value)?;
                self.in_flight_bytes = u64_of(&mut value)?;
                self.held_samples = count(&mut value)?;
            }
            id::IMPLAUSIBLE => self.implausible = u64_of(&mut value)?,
            id::REASON if self.reasons.len() < REASONS_MAX => self.reasons.push(value.string()?.to_owned()),
            _ => self.route.apply(parameter)?,
        }
        Ok(())
    }

    /// Knows nothing yet.
    pub(crate) fn blank() -> WriterExplanation {
        WriterExplanation {
            guid: Guid::UNKNOWN,
            topic: String::new(),
            method: String::new(),
            method_now: String::new(),
            write_interval: None,
            sample_bytes: 0,
            samples_per_datagram: 0.0,
            datagram_bytes: 0,
            readers: 0,
            readers_behind: 0,
            readers_given_up: 0,
            window_bytes: None,
            in_flight_bytes: 0,
            held_samples: 0,
            implausible: 0,
            reasons: Vec::new(),
            route: RouteExplanation {
                configured: Destination::Auto,
                destinations: Vec::new(),
                destination_count: 0,
                batch_destinations: 0,
                readers_on_this_host: 0,
                readers_without_group: 0,
                groups: Vec::new(),
            },
        }
    }
}

impl RouteExplanation {
    fn put(&self, list: &mut ParameterWriter<'_>) {
        list.put(id::ROUTE, |value| {
            value.u32(match self.configured {
                Destination::Auto => 0,
                Destination::Unicast => 1,
                Destination::Multicast => 2,
            });
            put_count(value, self.destination_count);
            put_count(value, self.batch_destinations);
            put_count(value, self.readers_on_this_host);
            put_count(value, self.readers_without_group);
        });
        for destination in self.destinations.iter().take(DESTINATIONS_MAX) {
            list.put(id::DESTINATION, |value| value.locator(destination));
        }
        for group in self.groups.iter().take(GROUPS_MAX) {
            list.put(id::GROUP, |value| {
                value.locator(&group.group);
                value.u32(u32::from(group.used));
                put_count(value, group.participants);
                put_count(value, group.unicast_addresses);
                put_u64(value, group.unicast_nanos_per_byte.to_bits());
                put_optional(value, group.multicast_nanos_per_byte.map(f64::to_bits));
                value.string(cut(&group.why));
            });
            for link in group.links.iter().take(LINKS_MAX) {
                list.put(id::LINK, |value| {
                    value.string(cut(&link.name));
                    value.u32(match link.medium {
                        Medium::Loopback => 0,
                        Medium::Wired => 1,
                        Medium::Wireless => 2,
                    });
                    put_u64(value, link.bytes_per_second);
                    put_u64(value, link.group_bytes_per_second);
                    value.u32(link.participants);
                    value.u32(link.bystanders);
                });
            }
        }
    }

    fn apply(&mut self, parameter: &Parameter<'_>) -> Result<(), WireError> {
        let mut value = parameter.reader();
        match parameter.id {
            id::ROUTE => {
                self.configured = match value.u32()? {
                    1 => Destination::Unicast,
                    2 => Destination::Multicast,
                    _ => Destination::Auto,
                };
                self.destination_count = count(&mut value)?;
                self.batch_destinations = count(&mut value)?;
                self.readers_on_this_host = count(&mut value)?;
                self.readers_without_group = count(&mut value)?;
            }
            id::DESTINATION if self.destinations.len() < DESTINATIONS_MAX => self.destinations.push(value.locator()?),
            id::GROUP if self.groups.len() < GROUPS_MAX => self.groups.push(group(&mut value)?),
            id::LINK => {
                if let Some(group) = self.groups.last_mut().filter(|group| group.links.len() < LINKS_MAX) {
                    group.links.push(link(&mut value)?);
                }
            }
            _ => {}
        }
        Ok(())
    }
}

fn group(value: &mut ParameterReader<'_>) -> Result<GroupExplanation, WireError> {
    Ok(GroupExplanation {
        group: value.locator()?,
        used: value.u32()? != 0,
        participants: count(value)?,
        unicast_addresses: count(value)?,
        unicast_nanos_per_byte: f64::from_bits(u64_of(value)?),
        multicast_nanos_per_byte: optional(value)?.map(f64::from_bits),
        links: Vec::new(),
        why: value.string()?.to_owned(),
    })
}

fn link(value: &mut ParameterReader<'_>) -> Result<LinkExplanation, WireError> {
    Ok(LinkExplanation {
        name: value.string()?.to_owned(),
        medium: match value.u32()? {
            0 => Medium::Loopback,
            2 => Medium::Wireless,
            _ => Medium::Wired,
        },
        bytes_per_second: u64_of(value)?,
        group_bytes_per_second: u64_of(value)?,
        participants: value.u32()?,
        bystanders: value.u32()?,
    })
}

/// The longest beginning that fits.
fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(TEXT_MAX_BYTES)]
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

fn put_u64(value: &mut ValueWriter<'_>, number: u64) {
    value.u32((number >> 32) as u32);
    value.u32(number as u32);
}

fn put_count(value: &mut ValueWriter<'_>, count: usize) {
    put_u64(value, count as u64);
}

fn put_optional(value: &mut ValueWriter<'_>, number: Option<u64>) {
    value.u32(u32::from(number.is_some()));
    put_u64(value, number.unwrap_or(0));
}

fn u64_of(value: &mut ParameterReader<'_>) -> Result<u64, WireError> {
    let high = value.u32()?;
    Ok(u64::from(high) << 32 | u64::from(value.u32()?))
}

fn count(value: &mut ParameterReader<'_>) -> Result<usize, WireError> {
    Ok(usize::try_from(u64_of(value)?).unwrap_or(usize::MAX))
}

fn optional(value: &mut ParameterReader<'_>) -> Result<Option<u64>, WireError> {
    let is_some = value.u32()? != 0;
    let number = u64_of(value)?;
    Ok(is_some.then_some(number))
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use super::*;
    use crate::types::{EntityId, GuidPrefix, Locator};
    use crate::wire::parameters::ParameterList;

    fn example() -> WriterExplanation {
        let locator = |port| Locator::from(SocketAddr::from(([10, 0, 0, 1], port)));
        let link = |name: &str, medium| LinkExplanation {
            name: name.into(),
            medium,
            bytes_per_second: 1 << 40,
            group_bytes_per_second: 750_000,
            participants: 3,
            bystanders: 7,
        };
        let mut told = WriterExplanation::blank();
        told.guid = Guid::new(GuidPrefix([7; 12]), EntityId([0, 0, 1, 3]));
        told.topic = "pose".into();
        told.method = "auto".into();
        told.method_now = "batch".into();
        told.write_interval = Some(Duration::from_micros(12));
        told.sample_bytes = 256;
        told.samples_per_datagram = 41.5;
        told.window_bytes = Some(5_000_000_000);
        told.in_flight_bytes = 17;
        told.readers = 4;
        told.implausible = 1 << 33;
        told.reasons = vec!["because".into(), "of this".into()];
        told.route.configured = Destination::Multicast;
        told.route.destinations = vec![locator(1), locator(2)];
        told.route.destination_count = 2;
        told.route.groups = vec![GroupExplanation {
            group: locator(9),
            used: true,
            participants: 4,
            unicast_addresses: 5,
            unicast_nanos_per_byte: 32.0,
            multicast_nanos_per_byte: Some(9.75),
            links: vec![link("eth0", Medium::Wired), link("wlan0", Medium::Wireless)],
            why: "so".into(),
        }];
        told
    }

    fn encoded(told: &WriterExplanation) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut list = ParameterWriter::encapsulated(&mut bytes);
        told.put(&mut list);
        list.finish();
        bytes
    }

    fn decode(bytes: &[u8]) -> Result<WriterExplanation, WireError> {
        let mut told = WriterExplanation::blank();
        for parameter in ParameterList::from_payload(bytes)?.iter() {
            told.apply(&parameter?)?;
        }
        Ok(told)
    }

    #[test]
    fn an_explanation_survives_the_way() {
        assert_eq!(decode(&encoded(&example())), Ok(example()));
    }

    #[test]
    fn damage_is_an_error_or_harmless_and_never_a_panic() {
        let bytes = encoded(&example());
        for position in 0..bytes.len() {
            for damage in [0x01, 0x80, 0xff] {
                let mut damaged = bytes.clone();
                damaged[position] ^= damage;
                let _ = decode(&damaged);
            }
            let _ = decode(&bytes[..position]);
        }
    }

    #[test]
    fn nothing_makes_an_explanation_large() {
        let mut told = example();
        told.topic = "ü".repeat(10_000);
        told.reasons = vec!["x".repeat(10_000); 1_000];
        told.route.destinations = vec![told.route.groups[0].group; 1_000];
        told.route.groups = vec![told.route.groups[0].clone(); 1_000];
        let bytes = encoded(&told);
        assert!(bytes.len() < 16_384, "{}", bytes.len());
        assert_eq!(decode(&bytes).map(|told| told.topic.len()), Ok(256));
    }
}
