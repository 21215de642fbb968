// Made by `thalweg idl`; change the source and make it again.
use thalweg::Topic;

/// `Color`
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Topic)]
#[topic(name = "Color", extensibility = "appendable")]
pub enum Color {
    /// `RED`
    #[topic(name = "RED")]
    Red = 0,
    /// `DARK_GREEN`
    #[topic(name = "DARK_GREEN")]
    DarkGreen = 4,
}

/// `Small`
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Topic)]
#[topic(name = "Small", extensibility = "appendable", bit_bound = 8)]
pub enum Small {
    /// `A`
    #[topic(name = "A")]
    A = 0,
    /// `B`
    #[topic(name = "B", default)]
    B = 1,
}

/// `Closed`
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Topic)]
#[topic(name = "Closed")]
pub enum Closed {
    /// `ON`
    #[topic(name = "ON")]
    On = 0,
    /// `OFF`
    #[topic(name = "OFF")]
    Off = 1,
}

/// `Lamp`
#[derive(Clone, Debug, PartialEq, Topic)]
#[topic(name = "Lamp", extensibility = "appendable")]
pub struct Lamp {
    /// `id`
    #[topic(key)]
    pub id: i32,
    /// `color`
    pub color: Color,
    /// `size`
    pub size: Small,
    /// `state`
    pub state: Closed,
    /// `scene`
    pub scene: Vec<Color>,
}

/// `Choice`
#[derive(Clone, Debug, PartialEq, Topic)]
#[topic(name = "Choice", discriminator = Color, extensibility = "appendable")]
pub enum Choice {
    /// `red`
    #[topic(name = "red", case = Color::Red)]
    Red(i32),
    /// `green`
    #[topic(name = "green", case = Color::DarkGreen)]
    Green(Small),
}
