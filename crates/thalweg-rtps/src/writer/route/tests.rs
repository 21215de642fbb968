use super::*;
use crate::discovery::participant_data::ParticipantData;
use crate::discovery::{Database, KnownParticipant, Reach};
use crate::rng::Rng;
use crate::types::{GuidPrefix, ON_HOST_DATAGRAM_BYTES};
use crate::writer::{Link, Medium};

fn reader(host: u8, on_this_host: bool) -> MatchedReader {
    let locator = |last: u8| {
        let address = std::net::SocketAddr::from(([10, 0, 0, last], 7411));
        Locator::from(address)
    };
    MatchedReader {
        guid: Guid::new(GuidPrefix([host; 12]), EntityId([0, 0, host, 4])),
        vendor: VendorId::THALWEG,
        reliable: true,
        qos: Arc::default(),
        unicast: vec![locator(host)],
        multicast: Some(Locator::from(std::net::SocketAddr::from(([239, 255, 0, 1], 7401)))),
        on_this_host,
        datagram_bytes: 1472,
        batches: true,
        round_trip: crate::round_trip::ASSUMED,
        receive_buffer_bytes: None,
    }
}

#[track_caller]
fn check(choice: Destination, readers: &[MatchedReader], expect: &[&str]) {
    let mut route = Route::new(choice);
    readers.iter().for_each(|reader| route.insert(reader));
    route.set_neighbourhood(Arc::default());
    let got: Vec<String> = route.destinations().iter().map(ToString::to_string).collect();
    assert_eq!(got, expect);
}

#[test]
fn auto_uses_multicast_from_three_remote_participants_on() {
    let two = [reader(1, false), reader(2, false)];
    check(Destination::Auto, &two, &["udp/10.0.0.1:7411", "udp/10.0.0.2:7411"]);
    let four = [reader(1, false), reader(2, false), reader(3, false), reader(4, true)];
    check(Destination::Auto, &four, &["udp/239.255.0.1:7401", "udp/10.0.0.4:7411"]);
    check(Destination::Multicast, &two, &["udp/239.255.0.1:7401"]);
}

#[test]
fn a_group_carries_batches_only_if_all_behind_it_understand_them() {
    let mut foreign = reader(3, false);
    foreign.batches = false;
    let check = |choice, batch: &[&str], plain: &[&str]| {
        let mut route = Route::new(choice);
        [reader(1, false), reader(2, true), foreign.clone()].iter().for_each(|reader| route.insert(reader));
        let text = |list: &[Locator]| list.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!((text(route.destinations_in(Form::Batch)), text(route.destinations_in(Form::Plain))), {
            let owned = |list: &[&str]| list.iter().map(ToString::to_string).collect::<Vec<_>>();
            (owned(batch), owned(plain))
        });
    };
    check(Destination::Unicast, &["udp/10.0.0.1:7411", "udp/10.0.0.2:7411"], &["udp/10.0.0.3:7411"]);
    check(Destination::Multicast, &[], &["udp/239.255.0.1:7401"]);
}

#[test]
fn readers_of_one_participant_get_one_copy() {
    let mut second = reader(1, false);
    second.guid.entity = EntityId([9, 9, 9, 4]);
    let mut route = Route::new(Destination::Auto);
    [reader(1, false), second].iter().for_each(|reader| route.insert(reader));
    assert_eq!(route.destinations().len(), 1);
    assert_eq!(route.reader(), EntityId::UNKNOWN);
}

#[test]
fn fragments_fit_their_datagram() {
    assert_eq!(fragment_bytes_in(ETHERNET_V4_DATAGRAM_BYTES), 1304);
    assert!(usize::from(fragment_bytes_in(ON_HOST_DATAGRAM_BYTES)) > 64_000);
    let route = Route::new(Destination::Auto);
    assert_eq!(route.fragment_bytes(1304), None);
    assert_eq!(route.fragment_bytes(1305), Some(656));
    let mut foreign = reader(1, false);
    foreign.vendor = VendorId::CYCLONE;
    let mut route = Route::new(Destination::Auto);
    route.insert(&foreign);
    assert_eq!(route.fragment_bytes(1305), Some(1304));
}

const GROUP: &str = "udp/239.255.0.1:7401";

fn text(list: &[Locator]) -> Vec<String> {
    list.iter().map(ToString::to_string).collect()
}

fn links(list: &[(&str, &str, Medium)]) -> Vec<Link> {
    let link = |(name, address, medium): &(&str, &str, Medium)| Link {
        name: name.to_string(),
        addresses: vec![(address.parse().expect("an address"), 24)],
        medium: *medium,
        multicast: true,
        bytes_per_second: match medium {
            Medium::Loopback => 4_000_000_000,
            Medium::Wired => 125_000_000,
            Medium::Wireless => 18_750_000,
        },
    };
    list.iter().map(link).collect()
}

const LAN: [(&str, &str, Medium); 2] = [("lo", "127.0.0.1", Medium::Loopback), ("eth0", "10.0.0.200", Medium::Wired)];
const RADIO: [(&str, &str, Medium); 2] =
    [("lo", "127.0.0.1", Medium::Loopback), ("wlan0", "10.0.0.200", Medium::Wireless)];

/// Ourselves and participants number 1 to `others` listen to the group on these links.
fn around(list: &[(&str, &str, Medium)], others: u8) -> Arc<Neighbourhood> {
    let mut database = Database::default();
    for number in (1..=others).chain([200]) {
        let mut data = ParticipantData::new(GuidPrefix([number; 12]));
        data.locators.default_unicast = vec![Locator::from(std::net::SocketAddr::from(([10, 0, 0, number], 7411)))];
        data.locators.default_multicast = reader(number, false).multicast.into_iter().collect();
        let mut reach = Reach::default();
        reach.on_this_host = number == 200;
        let known = KnownParticipant::new(data, reach);
        database.participants.insert(GuidPrefix([number; 12]), known);
    }
    Arc::new(crate::discovery::neighbourhood(&links(list), &database))
}

#[track_caller]
fn check_group(list: &[(&str, &str, Medium)], readers: u8, others: u8, expect: bool) {
    let mut route = Route::new(Destination::Auto);
    route.set_neighbourhood(around(list, others));
    (1..=readers).for_each(|number| route.insert(&reader(number, false)));
    assert!(!route.uses_group(), "not before the bystanders are counted");
    route.set_neighbourhood(around(list, others));
    assert_eq!(route.uses_group(), expect, "{:?}", route.explain());
    assert_eq!(route.destinations().len(), if expect { 1 } else { usize::from(readers) });
}

/// On a host that has IPv4 on loopback alone, an IPv4 group leaves by loopback alone, where it costs next to nothing.
#[test]
fn a_group_is_not_taken_where_the_links_of_its_readers_do_not_carry_it() {
    let mut links = links(&LAN);
    links[1].addresses = vec![("fd00::200".parse().expect("an address"), 64)];
    let around = Arc::new(Neighbourhood::new(&links));
    let mut route = Route::new(Destination::Auto);
    route.set_neighbourhood(around.clone());
    for number in 1..=5 {
        let mut reader = reader(number, false);
        reader.unicast = vec![format!("[fd00::{number}]:7411").parse::<std::net::SocketAddr>().expect("one").into()];
        route.insert(&reader);
    }
    route.set_neighbourhood(around);
    assert!(!route.uses_group(), "{:?}", route.explain());
    assert_eq!(route.destinations().len(), 5);
}

#[test]
fn bystanders_and_radio_make_multicast_dearer() {
    check_group(&LAN, 2, 2, false);
    check_group(&LAN, 3, 3, true);
    check_group(&LAN, 10, 18, true);
    check_group(&LAN, 10, 40, false);
    check_group(&RADIO, 10, 10, false);
    check_group(&RADIO, 90, 90, true);
}

#[test]
fn readers_that_come_and_go_do_not_flap() {
    let mut route = Route::new(Destination::Auto);
    route.set_neighbourhood(around(&LAN, 5));
    let mut changes = 0;
    let mut used = false;
    let mut step = |route: &Route| {
        changes += usize::from(route.uses_group() != used);
        used = route.uses_group();
    };
    for _ in 0..20 {
        for number in 1..=4 {
            route.insert(&reader(number, false));
            route.set_neighbourhood(around(&LAN, 5));
            step(&route);
        }
        route.remove(reader(4, false).guid);
        step(&route);
    }
    assert_eq!(changes, 1, "chosen once and kept");
    route.remove(reader(3, false).guid);
    assert!(!route.uses_group(), "two readers do not outweigh four bystanders");
}

/// Ten publishers and ten subscribers at the limit of the machine: discovery pauses, and the group looks cheap until the other publishers
/// are known. From then on a sample costs what it costs by unicast: nothing is decided for each sample.
#[test]
fn a_group_taken_before_all_bystanders_were_known_is_left_for_the_copies_of_unicast() {
    let routes = [Destination::Auto, Destination::Unicast].map(|choice| {
        let mut route = Route::new(choice);
        [5, 3, 8, 1, 7, 2, 6, 4].into_iter().for_each(|number| route.insert(&reader(number, false)));
        route.set_neighbourhood(around(&LAN, 8));
        assert_eq!(route.uses_group(), choice == Destination::Auto, "no bystander is known yet");
        route.set_neighbourhood(around(&LAN, 24));
        route
    });
    assert!(!routes[0].uses_group(), "{:?}", routes[0].explain());
    let [auto, unicast] = routes.map(|route| {
        let mut all = text(route.destinations());
        all.sort();
        (all, route.destinations_in(Form::Batch).len(), route.destinations_in(Form::Plain).len())
    });
    assert_eq!(auto, unicast);
}

#[test]
fn readers_behind_a_router_or_on_this_host_are_reached_by_unicast() {
    let mut route = Route::new(Destination::Auto);
    route.set_neighbourhood(around(&LAN, 4));
    (1..=4).for_each(|number| route.insert(&reader(number, false)));
    let mut far = reader(9, false);
    far.unicast = vec![Locator::from(std::net::SocketAddr::from(([172, 16, 0, 9], 7411)))];
    route.insert(&far);
    route.insert(&reader(8, true));
    route.set_neighbourhood(around(&LAN, 4));
    assert_eq!(text(route.destinations()), [GROUP, "udp/10.0.0.8:7411", "udp/172.16.0.9:7411"]);
    let told = route.explain();
    assert_eq!((told.readers_on_this_host, told.readers_without_group), (1, 1));
    let mut route = Route::new(Destination::Auto);
    (1..=20).for_each(|number| route.insert(&reader(number, true)));
    route.set_neighbourhood(Arc::default());
    assert!(!route.uses_group());
}

#[test]
fn a_reader_whose_only_address_is_a_group_is_reached_there() {
    let mut only = reader(1, false);
    only.unicast.clear();
    for choice in [Destination::Auto, Destination::Unicast, Destination::Multicast] {
        check(choice, std::slice::from_ref(&only), &[GROUP]);
    }
}

#[test]
fn a_group_that_failed_is_left_for_this_reader_alone() {
    let mut route = Route::new(Destination::Auto);
    (1..=5).for_each(|number| route.insert(&reader(number, false)));
    route.set_neighbourhood(Arc::default());
    let mut failed = reader(2, false);
    failed.multicast = None;
    route.insert(&failed);
    assert_eq!(text(route.destinations()), [GROUP, "udp/10.0.0.2:7411"]);
}

#[test]
fn the_explanation_has_the_sums() {
    let mut route = Route::new(Destination::Auto);
    route.set_neighbourhood(around(&LAN, 9));
    (1..=4).for_each(|number| route.insert(&reader(number, false)));
    route.set_neighbourhood(around(&LAN, 9));
    let told = route.explain();
    let [group] = &told.groups[..] else { panic!("{told:?}") };
    let eth = &group.links[1];
    assert_eq!((group.participants, eth.participants, eth.bystanders), (4, 4, 6), "five others and ourselves");
    assert!((group.unicast_nanos_per_byte - 32.0).abs() < 1e-9);
    // lo: 0.25 * (1 + 0.4), eth0: 8 * (1 + 6 * 0.4)
    assert!((group.multicast_nanos_per_byte.expect("carried") - 27.55).abs() < 1e-9, "{group:?}");
    assert!(!group.used && group.why.contains("86 %"), "{}", group.why);
}

/// Whatever comes and goes in whatever order, the lists are those of a route that was made at once.
#[test]
fn step_by_step_leads_to_the_same_lists() {
    for seed in 0..200 {
        let mut rng = Rng::new(seed);
        let choice = [Destination::Unicast, Destination::Multicast][rng.below(2) as usize];
        let mut route = Route::new(choice);
        let mut present: BTreeMap<Guid, MatchedReader> = BTreeMap::new();
        for _ in 0..60 {
            let number = 1 + rng.below(6) as u8;
            let mut one = reader(number, rng.below(2) == 0);
            one.guid.entity.0[0] = rng.below(2) as u8;
            one.batches = rng.below(3) > 0;
            one.multicast = one.multicast.filter(|_| rng.below(3) > 0);
            one.datagram_bytes = 1000 + rng.below(3) as usize;
            if rng.below(3) == 0 {
                route.remove(one.guid);
                present.remove(&one.guid);
            } else {
                route.insert(&one);
                present.insert(one.guid, one);
            }
            if rng.below(10) == 0 {
                route.set_neighbourhood(around(if rng.below(2) == 0 { &LAN } else { &RADIO }, 6));
            }
        }
        let mut fresh = Route::new(choice);
        present.values().for_each(|reader| fresh.insert(reader));
        let sorted = |route: &Route| {
            let lists = [route.destinations(), route.destinations_in(Form::Batch), route.destinations_in(Form::Plain)];
            lists.map(|list| {
                let mut list = list.to_vec();
                list.sort();
                list
            })
        };
        assert_eq!(sorted(&route), sorted(&fresh), "seed {seed}");
        assert_eq!(route.datagram_bytes(), fresh.datagram_bytes());
        let [all, batch, plain] = sorted(&route);
        assert_eq!(all.len(), batch.len() + plain.len());
    }
}
