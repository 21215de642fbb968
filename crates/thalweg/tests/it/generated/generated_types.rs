// Made by `thalweg idl`; change the source and make it again.
use thalweg::Topic;

/// `Row`
#[derive(Clone, Debug, PartialEq, Topic)]
#[topic(name = "Row")]
pub struct Row(pub [i32; 3]);

/// `Label`
#[derive(Clone, Debug, PartialEq, Topic)]
#[topic(name = "Label")]
pub struct Label(#[topic(max_len = 8)] pub String);

/// `Raw`
#[derive(Clone, Debug, PartialEq, Topic)]
#[topic(name = "Raw")]
pub struct Raw(#[topic(max_len = 16, octet)] pub Vec<u8>);

/// `Everything`
#[derive(Clone, Debug, PartialEq, Topic)]
#[topic(name = "Everything", extensibility = "mutable")]
pub struct Everything {
    /// `type`
    #[topic(key, id = 7)]
    pub r#type: u8,
    /// `on`
    pub on: bool,
    /// `i8`
    pub i8: i8,
    /// `i16`
    pub i16: i16,
    /// `u16`
    pub u16: u16,
    /// `i32`
    pub i32: i32,
    /// `u32`
    pub u32: u32,
    /// `i64`
    pub i64: i64,
    /// `u64`
    pub u64: u64,
    /// `f`
    pub f: f32,
    /// `d`
    pub d: f64,
    /// `letter`
    pub letter: char,
    /// `text`
    pub text: String,
    /// `wide`
    #[topic(max_len = 5)]
    pub wide: thalweg::cdr::WString,
    /// `rows`
    pub rows: [Row; 2],
    /// `labels`
    pub labels: Vec<Label>,
    /// `names`
    pub names: std::collections::BTreeMap<i32, String>,
    /// `path`
    pub path: Option<shapes::inner::Path>,
    /// `camelCase`
    #[topic(name = "camelCase", must_understand)]
    pub camel_case: shapes::Small,
    /// `deep`
    pub deep: Vec<Vec<i32>>,
    /// `self`
    #[topic(name = "self")]
    pub self_: i32,
    /// `o`
    #[topic(octet)]
    pub o: u8,
    /// `raw`
    #[topic(octet)]
    pub raw: Vec<u8>,
    /// `four`
    #[topic(octet)]
    pub four: [u8; 4],
    /// `rows_of_octets`
    #[topic(octet)]
    pub rows_of_octets: Vec<Vec<u8>>,
    /// `by_number`
    #[topic(octet)]
    pub by_number: std::collections::BTreeMap<i32, u8>,
    /// `named`
    pub named: Raw,
}

/// `Choice`
#[derive(Clone, Debug, PartialEq, Topic)]
#[topic(name = "Choice", discriminator = shapes::Color, extensibility = "final")]
pub enum Choice {
    /// `red`
    #[topic(name = "red", case = shapes::Color::Red)]
    Red(i32),
    /// `green`
    #[topic(name = "green", case = shapes::Color::DarkGreen)]
    Green(Label),
}

/// `Fallback`
#[derive(Clone, Debug, PartialEq, Topic)]
#[topic(name = "Fallback", discriminator = u8, extensibility = "appendable")]
pub enum Fallback {
    /// `at`
    #[topic(name = "at", case = 1 | 2)]
    At(shapes::Point),
    /// `other`
    #[topic(name = "other", default, id = 9)]
    Other(#[topic(label)] u8, i32),
}

/// `Rest`
#[derive(Clone, Debug, PartialEq, Topic)]
#[topic(name = "Rest", discriminator = i32, extensibility = "final")]
pub enum Rest {
    /// `a`
    #[topic(name = "a", case = 1)]
    A(#[topic(octet)] u8),
    /// `b`
    #[topic(name = "b", case = 2, default)]
    B(#[topic(label)] i32, #[topic(max_len = 4, octet)] Vec<u8>),
}

/// `ByOctet`
#[derive(Clone, Debug, PartialEq, Topic)]
#[topic(name = "ByOctet", discriminator = u8, octet, extensibility = "final")]
pub enum ByOctet {
    /// `a`
    #[topic(name = "a", case = 1)]
    A(i32),
}

/// `shapes`
pub mod shapes {
    use thalweg::Topic;

    /// `shapes::Color`
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Topic)]
    #[topic(name = "shapes::Color")]
    pub enum Color {
        /// `RED`
        #[topic(name = "RED")]
        Red = 0,
        /// `DARK_GREEN`
        #[topic(name = "DARK_GREEN")]
        DarkGreen = 4,
    }

    /// `shapes::Small`
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Topic)]
    #[topic(name = "shapes::Small", bit_bound = 8)]
    pub enum Small {
        /// `A`
        #[topic(name = "A")]
        A = 0,
        /// `B`
        #[topic(name = "B", default)]
        B = 1,
    }

    /// `shapes::Point`
    #[derive(Clone, Debug, PartialEq, Topic)]
    #[topic(name = "shapes::Point", extensibility = "final", nested)]
    pub struct Point {
        /// `x`
        pub x: f64,
        /// `y`
        pub y: f64,
    }

    /// `inner`
    pub mod inner {
        use thalweg::Topic;

        /// `shapes::inner::Path`
        #[derive(Clone, Debug, PartialEq, Topic)]
        #[topic(name = "shapes::inner::Path", extensibility = "appendable")]
        pub struct Path {
            /// `name`
            #[topic(key, max_len = 20)]
            pub name: String,
            /// `points`
            #[topic(max_len = 100)]
            pub points: Vec<super::Point>,
            /// `color`
            pub color: super::Color,
        }
    }
}

/// `std_msgs`
pub mod std_msgs {

    /// `msg`
    pub mod msg {

        /// `dds_`
        pub mod dds_ {
            use thalweg::Topic;

            /// `std_msgs::msg::dds_::String_`
            #[derive(Clone, Debug, PartialEq, Topic)]
            #[topic(name = "std_msgs::msg::dds_::String_", extensibility = "final")]
            pub struct StringMessage {
                /// `data`
                pub data: String,
            }
        }
    }
}

/// `trees`
pub mod trees {
    use thalweg::Topic;

    /// `trees::Node`
    #[derive(Clone, Debug, PartialEq, Topic)]
    #[topic(name = "trees::Node", extensibility = "appendable")]
    pub struct Node {
        /// `id`
        #[topic(key)]
        pub id: u32,
        /// `children`
        #[topic(max_len = 5)]
        pub children: Vec<Node>,
        /// `next`
        pub next: Option<Box<Node>>,
        /// `value`
        pub value: Box<Expression>,
    }

    /// `trees::Expression`
    #[derive(Clone, Debug, PartialEq, Topic)]
    #[topic(name = "trees::Expression", discriminator = i32, extensibility = "final", unbounded_key)]
    pub enum Expression {
        /// `leaf`
        #[topic(name = "leaf", case = 0)]
        Leaf(i32),
        /// `not`
        #[topic(name = "not", case = 1)]
        Not(Box<Expression>),
        /// `nodes`
        #[topic(name = "nodes", case = 2)]
        Nodes(Vec<Node>),
    }
}
