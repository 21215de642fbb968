//! What clients that prove nothing can take of a directory, and for how long.

use super::*;
use crate::identity::SessionIdentity;

/// A host of a network, by its number.
fn stranger(number: u32) -> Caller {
    at(&format!("10.0.{}.{}:5683", number / 256, number % 256))
}

fn known() -> Caller {
    let identity = SessionIdentity::PresharedKey(b"porter".to_vec());
    Caller { session: Some(Arc::new(identity)), transport: Transport::Dtls, ..stranger(0) }
}

/// A registration for ever, of which a directory has 250.
fn lasting(name: &str) -> RequestBuf {
    RequestBuf::post(&format!("/rd?ep={name}&lt=4294967295"), format!("</{}>", "x".repeat(65_000)))
}

/// Registers by hosts from the first on until there is no room; tells how many did.
fn fill(world: &World, host_of: impl Fn(u32) -> u32) -> usize {
    let is_in =
        |number: &u32| world.ask_as(&stranger(host_of(*number)), &lasting(&format!("s{number}"))).starts_with("2.01");
    (0..1000).take_while(is_in).count()
}

#[test]
fn a_host_without_a_proof_has_a_quarter_of_a_directory() {
    let world = World::new();
    let of_one = fill(&world, |_| 0);
    let bytes = world.handler.counts().bytes;
    assert!(of_one > 50 && (3 << 20..=4 << 20).contains(&bytes), "{of_one}: {bytes}");
    assert!(world.ask_as(&stranger(1), &lasting("other")).starts_with("2.01"));
    assert!(world.ask_as(&known(), &lasting("known")).starts_with("2.01"), "a proof counts more than the address");
    let own = world.ask_as(&stranger(0), &lasting("s0"));
    assert_eq!(own, "2.01 rd/1", "what it has it may register anew");
}

#[test]
fn a_lifetime_of_136_years_keeps_a_place_no_longer_than_its_endpoint_is_there() {
    let world = World::new();
    assert_eq!(world.ask_as(&known(), &lasting("known")), "2.01 rd/1");
    let strangers = fill(&world, |number| number);
    let newcomer = stranger(5000);
    let refusal = world.handler.handle(&lasting("new").view().of(&newcomer)).expect("its path");
    assert_eq!((refusal.code, refusal.max_age), (Code::SERVICE_UNAVAILABLE, Some(90_000)));
    world.seconds.store(80_000, Ordering::Relaxed);
    assert_eq!(world.ask_as(&stranger(0), &RequestBuf::post(&world.location("2"), "")), "2.04 ");
    world.seconds.store(89_999, Ordering::Relaxed);
    assert!(world.ask_as(&newcomer, &lasting("new")).starts_with("5.03 the directory is full"));
    world.seconds.store(90_000, Ordering::Relaxed);
    assert!(world.ask_as(&newcomer, &lasting("new")).starts_with("2.01"));
    let codes = ["/rd/1", "/rd/2", "/rd/3", "/rd/4"].map(|path| world.ask(&RequestBuf::get(path))[..4].to_owned());
    assert_eq!(codes, ["2.05", "2.05", "4.04", "2.05"], "one goes that nobody has refreshed");
    assert_eq!(world.handler.counts().registrations, strangers + 1);
}

#[test]
fn a_client_with_a_proof_finds_a_place_in_a_directory_full_of_strangers() {
    let world = World::new();
    let strangers = fill(&world, |number| number);
    assert!(world.ask_as(&known(), &lasting("known")).starts_with("2.01"));
    assert!(world.ask(&RequestBuf::get("/rd/1")).starts_with("4.04"), "the one that was refreshed longest ago");
    assert!(world.ask_as(&stranger(5000), &lasting("new")).starts_with("5.03"));
    assert_eq!(world.handler.counts().registrations, strangers);
    // Growth needs room as well.
    let large = RequestBuf::post("/rd?ep=s1&lt=60", format!("</{}>", "x".repeat(200_000)));
    assert!(world.ask_as(&stranger(1), &large).starts_with("5.03"));
    assert_eq!(world.handler.counts().registrations, strangers);
}

#[test]
fn addresses_that_may_be_forged_fill_an_eighth_of_a_directory_and_give_way() {
    let world = World::new();
    let forged = |number: u32| Caller { has_proved_address: false, ..stranger(number) };
    assert_eq!(world.ask_as(&forged(0), &RequestBuf::post("/rd?ep=plain&lt=4294967295", "</x>")), "2.01 rd/1");
    let small = |number: u32| RequestBuf::post(&format!("/rd?ep=f{number}&lt=4294967295"), "");
    let taken = (1..20_000).take_while(|number| world.ask_as(&forged(*number), &small(*number)).starts_with("2.01"));
    assert_eq!(taken.count(), 2047);
    let refusal = world.handler.handle(&small(9999).view().of(&forged(9999))).expect("its path");
    assert_eq!((refusal.code, refusal.is_challenge, refusal.max_age), (Code::UNAUTHORIZED, true, Some(0)));
    assert_eq!(world.handler.counts().refused, 2);
    let again = world.ask_as(&forged(0), &RequestBuf::post("/rd?ep=plain&lt=4294967295", "</y>"));
    assert_eq!(again, "2.01 rd/1", "what it has it may register anew");
    // What nobody refreshes makes room in the eighth as well.
    world.seconds.store(90_000, Ordering::Relaxed);
    assert!(world.ask_as(&forged(9999), &small(9999)).starts_with("2.01"));
    let codes = ["/rd/1", "/rd/2"].map(|path| world.ask(&RequestBuf::get(path))[..4].to_owned());
    assert_eq!(codes, ["4.04", "2.05"], "the one that was refreshed longest ago");
    // Who proves its address finds as much room as if they were not there.
    let proved = fill(&world, |number| number);
    assert_eq!(proved, fill(&World::new(), |number| number));
    assert!(world.ask(&RequestBuf::get("/rd/1")).starts_with("4.04"));
}

#[test]
fn a_refresh_at_the_location_proves_the_address_that_was_told_it_and_no_other() {
    let world = World::new();
    let (client, elsewhere) = (unproved("10.1.0.1:5683"), unproved("10.2.0.1:5683"));
    assert_eq!(world.ask_as(&client, &lasting("first")), "2.01 rd/1");
    assert_eq!(world.ask_as(&client, &lasting("second")), "2.01 rd/2");
    let [first, second] = ["1", "2"].map(|number| RequestBuf::post(&world.location(number), ""));
    assert_eq!(world.ask_as(&client, &first), "2.04 ");
    assert_eq!(world.ask_as(&elsewhere, &second), "2.04 ");
    // The first one leaves its place to none of those that give way to others at proved addresses.
    let proved = fill(&world, |number| number);
    assert_eq!(proved, fill(&World::new(), |number| number) - 1);
    let codes = ["/rd/1", "/rd/2"].map(|path| world.ask(&RequestBuf::get(path))[..4].to_owned());
    assert_eq!(codes, ["2.05", "4.04"]);
}

#[test]
fn a_lookup_has_a_bounded_number_of_filters() {
    let world = World::new();
    world.register("ep=a&base=coap://h", "</x>;rt=lamp,</y>");
    for (kind, expect) in [("res", "2.05 <coap://h/x>"), ("ep", "2.05 </rd/1>")] {
        let ask = |count: usize| {
            world.ask(&RequestBuf::get(&format!("/rd-lookup/{kind}?{}", vec!["rt=lamp"; count].join("&"))))
        };
        let said = ask(16);
        assert!(said.starts_with(expect), "{said}");
        let said = ask(17);
        assert!(said.starts_with("4.00 at most 16 filters"), "{said}");
    }
}
