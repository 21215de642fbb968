//! More types, which combine what types.rs has, and how to draw values of them.

use std::collections::{BTreeMap, HashMap};

use proptest::collection::{btree_map, hash_map, vec};
use proptest::prelude::*;
use thalweg_cdr::WString;
use thalweg_derive::Topic;

use crate::types::{Choice, Color, Growing, Medium, Note, Point, Small};

/// A typedef with a bound.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Topic)]
#[topic(crate = "thalweg_cdr")]
pub struct Name(#[topic(max_len = 6)] pub String);

#[derive(Debug, Clone, Copy, PartialEq, Topic)]
#[topic(crate = "thalweg_cdr")]
pub struct Metres(pub f32);

#[derive(Debug, Clone, Copy, PartialEq, Topic)]
#[topic(crate = "thalweg_cdr")]
pub struct Nothing {}

#[derive(Debug, Clone, PartialEq, Topic)]
#[topic(crate = "thalweg_cdr", extensibility = "mutable", discriminator = i16)]
pub enum Mutating {
    #[topic(case = -1)]
    Number(u64),
    #[topic(case = 3 | 4)]
    Names(#[topic(max_len = 4)] Vec<Name>),
    #[topic(case = 7)]
    Nothing,
    #[topic(default)]
    Unknown(#[topic(label)] i16),
}

/// A recursive type.
#[derive(Debug, Clone, PartialEq, Topic)]
#[topic(crate = "thalweg_cdr", extensibility = "appendable")]
pub struct Tree {
    pub value: u16,
    pub branches: Vec<Tree>,
    pub next: Option<Box<Tree>>,
}

#[derive(Debug, Clone, PartialEq, Topic)]
#[topic(crate = "thalweg_cdr", name = "zoo::Collections")]
pub struct Collections {
    pub lead: bool,
    pub sorted: BTreeMap<Color, [Point; 2]>,
    #[topic(max_len = 5)]
    pub hashed: HashMap<String, Vec<Note>>,
    pub small: BTreeMap<u8, u64>,
    pub notes: [[Note; 2]; 2],
    pub colors: [Color; 3],
    pub characters: Vec<char>,
    pub metres: Vec<Metres>,
    pub names: [Name; 2],
    pub wide: WString,
    pub empty: Vec<Nothing>,
    pub rows: Vec<[[u16; 2]; 2]>,
    pub growing: Vec<Growing>,
    pub last: u64,
}

#[derive(Debug, Clone, PartialEq, Topic)]
#[topic(crate = "thalweg_cdr", extensibility = "appendable")]
pub struct Options {
    pub flag: Option<bool>,
    #[topic(max_len = 3)]
    pub bytes: Option<Vec<u8>>,
    pub number: Option<u64>,
    #[topic(id = 0x4000, must_understand)]
    pub note: Option<Note>,
    pub map: Option<BTreeMap<u16, String>>,
    pub medium: Option<Medium>,
    pub choice: Option<Choice>,
    pub mutating: Option<Mutating>,
    pub last: u8,
}

#[derive(Debug, Clone, PartialEq, Topic)]
#[topic(crate = "thalweg_cdr", extensibility = "mutable")]
pub struct Keyed {
    #[topic(id = 0x0fff_ffff)]
    pub far: Vec<Options>,
    #[topic(key, id = 7)]
    pub id: Identity,
    #[topic(key, id = 3)]
    pub small: Small,
    #[topic(key, id = 5, max_len = 3)]
    pub path: Vec<String>,
    #[topic(id = 0x3eff)]
    pub tree: Tree,
    pub mutating: Mutating,
}

/// A key without members that are marked: all of it counts.
#[derive(Debug, Clone, PartialEq, Topic)]
#[topic(crate = "thalweg_cdr", extensibility = "mutable")]
pub struct Identity {
    #[topic(id = 2)]
    pub second: u64,
    #[topic(id = 1)]
    pub first: [u8; 3],
    #[topic(id = 4)]
    pub choice: Choice,
}

/// A key of key types in collections.
#[derive(Debug, Clone, PartialEq, Topic)]
#[topic(crate = "thalweg_cdr", extensibility = "appendable")]
pub struct KeyedParts {
    pub lead: Vec<Tree>,
    #[topic(key)]
    pub parts: [crate::types::Inner; 2],
    pub mid: Option<String>,
    #[topic(key)]
    pub more: Vec<crate::types::UnorderedKey>,
    pub last: String,
}

#[derive(Debug, Clone, PartialEq, Topic)]
#[topic(crate = "thalweg_cdr", extensibility = "final")]
pub struct Generic<T, const N: usize> {
    pub items: [T; N],
    pub list: Vec<T>,
}

pub fn text() -> impl Strategy<Value = String> {
    vec(prop_oneof![Just('a'), Just('é'), Just('水'), Just('🌊'), Just('\u{1}')], 0..5)
        .prop_map(|characters| characters.into_iter().collect())
}

pub fn point() -> impl Strategy<Value = Point> {
    (-1e9..1e9, -1e9f32..1e9).prop_map(|(x, y)| Point { x, y })
}

pub fn note() -> impl Strategy<Value = Note> {
    (any::<u8>(), text()).prop_map(|(level, text)| Note { level, text })
}

pub fn color() -> impl Strategy<Value = Color> {
    prop_oneof![Just(Color::Red), Just(Color::Green), Just(Color::Blue)]
}

pub fn name() -> impl Strategy<Value = Name> {
    "[a-z]{0,6}".prop_map(Name)
}

pub fn choice() -> impl Strategy<Value = Choice> {
    prop_oneof![
        any::<i64>().prop_map(Choice::Number),
        text().prop_map(Choice::Text),
        (4i32.., any::<u8>()).prop_map(|(label, value)| Choice::Other(label, value)),
    ]
}

pub fn growing() -> impl Strategy<Value = Growing> {
    prop_oneof![point().prop_map(Growing::Point), note().prop_map(Growing::Note), Just(Growing::Nothing)]
}

pub fn mutating() -> impl Strategy<Value = Mutating> {
    prop_oneof![
        any::<u64>().prop_map(Mutating::Number),
        vec(name(), 0..4).prop_map(Mutating::Names),
        Just(Mutating::Nothing),
        (8i16..).prop_map(Mutating::Unknown),
    ]
}

pub fn tree() -> impl Strategy<Value = Tree> {
    let leaf = any::<u16>().prop_map(|value| Tree { value, branches: Vec::new(), next: None });
    leaf.prop_recursive(4, 16, 3, |inner| {
        (any::<u16>(), vec(inner.clone(), 0..3), proptest::option::of(inner.prop_map(Box::new)))
            .prop_map(|(value, branches, next)| Tree { value, branches, next })
    })
}

pub fn collections() -> impl Strategy<Value = Collections> {
    let maps = (
        btree_map(color(), [point(), point()], 0..3),
        hash_map(text(), vec(note(), 0..3), 0..3),
        btree_map(any::<u8>(), any::<u64>(), 0..3),
    );
    let arrays = ([[note(), note()], [note(), note()]], [color(), color(), color()], [name(), name()]);
    let lists = (
        vec(any::<u8>().prop_map(char::from), 0..5),
        vec((-1e3f32..1e3).prop_map(Metres), 0..4),
        text().prop_map(WString),
        vec(Just(Nothing {}), 0..4),
        vec(any::<[[u16; 2]; 2]>(), 0..3),
        vec(growing(), 0..4),
    );
    (any::<bool>(), maps, arrays, lists, any::<u64>()).prop_map(|(lead, maps, arrays, lists, last)| {
        let (sorted, hashed, small) = maps;
        let (notes, colors, names) = arrays;
        let (characters, metres, wide, empty, rows, growing) = lists;
        Collections {
            lead,
            sorted,
            hashed,
            small,
            notes,
            colors,
            characters,
            metres,
            names,
            wide,
            empty,
            rows,
            growing,
            last,
        }
    })
}

pub fn options() -> impl Strategy<Value = Options> {
    use proptest::option::of;
    let medium = prop_oneof![Just(Medium::Near), Just(Medium::Far)];
    let rest = (of(btree_map(any::<u16>(), text(), 0..3)), of(medium), of(choice()), of(mutating()));
    (of(any::<bool>()), of(vec(any::<u8>(), 0..3)), of(any::<u64>()), of(note()), rest, any::<u8>()).prop_map(
        |(flag, bytes, number, note, (map, medium, choice, mutating), last)| Options {
            flag,
            bytes,
            number,
            note,
            map,
            medium,
            choice,
            mutating,
            last,
        },
    )
}

pub fn keyed() -> impl Strategy<Value = Keyed> {
    let identity = (any::<u64>(), any::<[u8; 3]>(), choice()).prop_map(|(second, first, choice)| Identity {
        second,
        first,
        choice,
    });
    let small = prop_oneof![Just(Small::One), Just(Small::Two)];
    (vec(options(), 0..3), identity, small, vec(text(), 0..3), tree(), mutating())
        .prop_map(|(far, id, small, path, tree, mutating)| Keyed { far, id, small, path, tree, mutating })
}

pub fn keyed_parts() -> impl Strategy<Value = KeyedParts> {
    let inner = || (text(), any::<u16>()).prop_map(|(ignored, group)| crate::types::Inner { ignored, group });
    let more = (any::<u32>(), text(), any::<u8>()).prop_map(|(late, text, early)| crate::types::UnorderedKey {
        late,
        text,
        early,
    });
    (vec(tree(), 0..2), [inner(), inner()], proptest::option::of(text()), vec(more, 0..3), text())
        .prop_map(|(lead, parts, mid, more, last)| KeyedParts { lead, parts, mid, more, last })
}

pub fn generic() -> impl Strategy<Value = Generic<Choice, 2>> {
    ([choice(), choice()], vec(choice(), 0..3)).prop_map(|(items, list)| Generic { items, list })
}
