//! Types of every kind that the derive knows.

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

#[derive(Debug, Clone, Copy, PartialEq, Topic)]
#[topic(crate = "thalweg_cdr")]
pub enum Color {
    Red,
    Green = 5,
    Blue,
}

#[derive(Debug, Clone, PartialEq, Topic)]
#[topic(crate = "thalweg_cdr", extensibility = "mutable", discriminator = Color)]
pub enum Value {
    #[topic(case = Color::Red)]
    Number(i64),
    #[topic(case = Color::Green | Color::Blue)]
    Text(#[topic(max_len = 5)] String),
}

#[derive(Debug, Clone, PartialEq, Topic)]
#[topic(crate = "thalweg_cdr", extensibility = "mutable")]
pub struct Mutable {
    #[topic(key)]
    pub a: u64,
    pub b: Option<Vec<u16>>,
    #[topic(id = 20, must_understand)]
    pub c: String,
    pub d: Value,
    pub e: [[String; 2]; 3],
}
