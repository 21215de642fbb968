//! Types of every kind that the derive knows; testdata/generate_cyclone.py has the same in IDL.

use std::collections::BTreeMap;

use thalweg_derive::Topic;

#[derive(Debug, Clone, PartialEq, Topic)]
#[topic(crate = "thalweg_cdr", extensibility = "appendable")]
pub struct ShapeType {
    #[topic(key, max_len = 128)]
    pub color: String,
    pub x: i32,
    pub y: i32,
    pub shapesize: i32,
    pub additional_payload_size: Vec<u8>,
}

#[derive(Debug, Clone, PartialEq, Topic)]
#[topic(crate = "thalweg_cdr")]
pub struct Numbers {
    pub a: bool,
    pub b: u64,
    pub c: i8,
    pub d: i16,
    pub e: u8,
    pub f: f64,
    pub g: char,
    pub h: u16,
    pub i: f32,
    pub j: i64,
    pub k: u32,
    pub l: i32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Topic)]
#[topic(crate = "thalweg_cdr")]
pub enum Color {
    Red,
    #[topic(default)]
    Green = 5,
    Blue,
}

#[derive(Debug, Clone, Copy, PartialEq, Topic)]
#[topic(crate = "thalweg_cdr", bit_bound = 8)]
pub enum Small {
    One = 1,
    Two,
}

#[derive(Debug, Clone, Copy, PartialEq, Topic)]
#[topic(crate = "thalweg_cdr", bit_bound = 16)]
pub enum Medium {
    Near = 1,
    Far = 300,
}

#[derive(Debug, Clone, Copy, PartialEq, Topic)]
#[topic(crate = "thalweg_cdr")]
pub struct Point {
    pub x: f64,
    pub y: f32,
}

#[derive(Debug, Clone, PartialEq, Topic)]
#[topic(crate = "thalweg_cdr", extensibility = "appendable")]
pub struct Note {
    pub level: u8,
    pub text: String,
}

#[derive(Debug, Clone, PartialEq, Topic)]
#[topic(crate = "thalweg_cdr", extensibility = "final")]
pub struct Sequences {
    pub bytes: Vec<u8>,
    pub shorts: Vec<i16>,
    pub longs: Vec<u32>,
    pub doubles: Vec<f64>,
    pub bools: Vec<bool>,
    pub texts: Vec<String>,
    pub points: Vec<Point>,
    pub notes: Vec<Note>,
    pub colors: Vec<Color>,
    pub nested: Vec<Vec<u16>>,
    #[topic(max_len = 3)]
    pub bounded: Vec<i64>,
}

#[derive(Debug, Clone, PartialEq, Topic)]
#[topic(crate = "thalweg_cdr")]
pub struct Arrays {
    pub bytes: [u8; 3],
    pub matrix: [[i32; 3]; 2],
    pub doubles: [f64; 2],
    pub texts: [String; 2],
    pub grid: [[String; 2]; 2],
    pub points: [Point; 2],
    pub rows: Vec<[i16; 3]>,
    pub last: u8,
}

#[derive(Debug, Clone, PartialEq, Topic)]
#[topic(crate = "thalweg_cdr")]
pub struct Enums {
    pub color: Color,
    pub first: u8,
    pub second: Color,
}

#[derive(Debug, Clone, PartialEq, Topic)]
#[topic(crate = "thalweg_cdr")]
pub struct BoundedEnums {
    pub small: Small,
    pub medium: Medium,
    pub color: Color,
    pub smalls: Vec<Small>,
}

#[derive(Debug, Clone, PartialEq, Topic)]
#[topic(crate = "thalweg_cdr")]
pub enum Choice {
    #[topic(case = 1)]
    Number(i64),
    #[topic(case = 2 | 3)]
    Text(String),
    #[topic(default)]
    Other(#[topic(label)] i32, u8),
}

#[derive(Debug, Clone, PartialEq, Topic)]
#[topic(crate = "thalweg_cdr", extensibility = "appendable", discriminator = Color)]
pub enum Growing {
    #[topic(case = Color::Red)]
    Point(Point),
    #[topic(case = Color::Blue)]
    Note(Note),
    #[topic(default, case = Color::Green)]
    Nothing,
}

#[derive(Debug, Clone, PartialEq, Topic)]
#[topic(crate = "thalweg_cdr")]
pub struct Unions {
    pub lead: u8,
    pub first: Choice,
    pub second: Choice,
    pub third: Choice,
    pub fourth: Growing,
    pub fifth: Vec<Growing>,
}

#[derive(Debug, Clone, PartialEq, Topic)]
#[topic(crate = "thalweg_cdr")]
pub struct FinalOptionals {
    pub lead: u8,
    pub number: Option<f64>,
    pub text: Option<String>,
    pub point: Option<Point>,
    pub last: u16,
}

#[derive(Debug, Clone, PartialEq, Topic)]
#[topic(crate = "thalweg_cdr", extensibility = "appendable")]
pub struct AppendableOptionals {
    pub lead: u8,
    pub number: Option<f64>,
    pub text: Option<String>,
    pub last: u16,
}

#[derive(Debug, Clone, PartialEq, Topic)]
#[topic(crate = "thalweg_cdr", extensibility = "mutable")]
pub struct Mutable {
    pub one: u8,
    pub two: u16,
    #[topic(id = 100, must_understand)]
    pub four: f32,
    pub eight: u64,
    pub text: String,
    pub bytes: Vec<u8>,
    pub shorts: Vec<i16>,
    pub longs: Vec<i32>,
    pub doubles: Vec<f64>,
    pub texts: Vec<String>,
    pub block: [u32; 2],
    pub point: Point,
    pub note: Note,
    pub maybe: Option<i32>,
    pub never: Option<String>,
    #[topic(id = 0x12_3456)]
    pub color: Color,
    pub choice: Choice,
}

#[derive(Debug, Clone, PartialEq, Topic)]
#[topic(crate = "thalweg_cdr", extensibility = "mutable")]
pub struct Outer {
    pub lead: u8,
    pub inner: Mutable,
    pub list: Vec<Mutable>,
    pub last: u8,
}

#[derive(Debug, Clone, PartialEq, Topic)]
#[topic(crate = "thalweg_cdr", extensibility = "mutable", autoid = "hash")]
pub struct Hashed {
    pub color: u32,
    pub shapesize: u8,
}

#[derive(Debug, Clone, PartialEq, Topic)]
#[topic(crate = "thalweg_cdr")]
pub struct ShortKey {
    pub data: String,
    #[topic(key)]
    pub id: u8,
    #[topic(key)]
    pub number: u64,
    pub rest: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Topic)]
#[topic(crate = "thalweg_cdr")]
pub struct Inner {
    pub ignored: String,
    #[topic(key)]
    pub group: u16,
}

#[derive(Debug, Clone, PartialEq, Topic)]
#[topic(crate = "thalweg_cdr", extensibility = "appendable")]
pub struct NestedKey {
    pub lead: u8,
    #[topic(key)]
    pub inner: Inner,
    #[topic(key)]
    pub point: Point,
    pub last: String,
}

#[derive(Debug, Clone, PartialEq, Topic)]
#[topic(crate = "thalweg_cdr", extensibility = "mutable")]
pub struct MutableKey {
    #[topic(key, id = 9)]
    pub late: u32,
    #[topic(id = 5)]
    pub text: String,
    #[topic(key, id = 2)]
    pub early: u8,
}

#[derive(Debug, Clone, PartialEq, Topic)]
#[topic(crate = "thalweg_cdr", extensibility = "appendable")]
pub struct UnorderedKey {
    #[topic(key, id = 9)]
    pub late: u32,
    #[topic(id = 5)]
    pub text: String,
    #[topic(key, id = 2)]
    pub early: u8,
}

#[derive(Debug, Clone, PartialEq, Topic)]
#[topic(crate = "thalweg_cdr")]
pub struct TextKey {
    #[topic(key, max_len = 11)]
    pub a: String,
    pub b: i32,
}

#[derive(Debug, Clone, PartialEq, Topic)]
#[topic(crate = "thalweg_cdr")]
pub struct LongTextKey {
    #[topic(key, max_len = 12)]
    pub a: String,
    pub b: i32,
}

#[derive(Debug, Clone, PartialEq, Topic)]
#[topic(crate = "thalweg_cdr")]
pub struct Maps {
    pub numbers: BTreeMap<i32, f64>,
    pub last: u8,
}
