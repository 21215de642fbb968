//! More types, which combine what types.rs has.

use std::collections::{BTreeMap, HashMap};

use thalweg_cdr::WString;
use thalweg_derive::Topic;

use crate::types::{Choice, Color, Growing, Inner, Medium, Note, Point, Small, UnorderedKey};

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
    pub parts: [Inner; 2],
    pub mid: Option<String>,
    #[topic(key)]
    pub more: Vec<UnorderedKey>,
    pub last: String,
}

/// A key whose parts have more behind their own key members.
#[derive(Debug, Clone, PartialEq, Topic)]
#[topic(crate = "thalweg_cdr")]
pub struct Heads {
    #[topic(key)]
    pub first: Head,
    pub between: Vec<String>,
    #[topic(key)]
    pub second: Head,
    #[topic(key)]
    pub wide: [[Small; 2]; 2],
    pub last: String,
}

#[derive(Debug, Clone, PartialEq, Topic)]
#[topic(crate = "thalweg_cdr", extensibility = "appendable")]
pub struct Head {
    #[topic(key)]
    pub id: u8,
    pub text: String,
}

#[derive(Debug, Clone, PartialEq, Topic)]
#[topic(crate = "thalweg_cdr", extensibility = "final")]
pub struct Generic<T, const N: usize> {
    pub items: [T; N],
    pub list: Vec<T>,
}
