//! The types that `pub` and `sub` know, and their values as text and JSON.

use serde_json::{Value as Json, json};
use thalweg::Topic;

/// A type whose values people type and read.
pub trait TextValue: thalweg::TopicType {
    /// Reads a value from what the user typed.
    ///
    /// # Errors
    /// The text is not a value of the type; the error says what is expected.
    fn parse(text: &str) -> Result<Self, String>;

    /// The value in one line.
    fn to_text(&self) -> String;

    /// The value with its members' names; `parse` accepts it as well.
    fn to_json(&self) -> Json;

    /// The key members alone; null for a type without a key.
    fn key_json(&self) -> Json {
        Json::Null
    }
}

/// `string`: the layout and DDS type name of ROS 2's `std_msgs/msg/String`, so that ROS 2 nodes understand it on topics `rt/…`.
#[derive(Clone, Debug, PartialEq, Topic)]
#[topic(name = "std_msgs::msg::dds_::String_", extensibility = "final")]
pub struct Text {
    /// The text.
    pub data: String,
}

/// `bytes`: a sequence of octets.
#[derive(Clone, Debug, PartialEq, Topic)]
#[topic(name = "thalweg::Bytes", extensibility = "final")]
pub struct Bytes {
    /// The octets.
    pub data: Vec<u8>,
}

/// `ShapeType`: the type of the shapes demonstration of every DDS vendor; `color` is the key.
#[derive(Clone, Debug, PartialEq, Topic)]
#[topic(name = "ShapeType", extensibility = "appendable")]
pub struct ShapeType {
    /// Names the shape: each colour is an instance.
    #[topic(key, max_len = 128)]
    pub color: String,
    /// Position from the left.
    pub x: i32,
    /// Position from the top.
    pub y: i32,
    /// Edge or diameter.
    pub shapesize: i32,
}

impl TextValue for Text {
    fn parse(text: &str) -> Result<Text, String> {
        match members(text, &["data"])? {
            Some(json) => Ok(Text { data: string(&json, "data")? }),
            None => Ok(Text { data: text.to_owned() }),
        }
    }

    fn to_text(&self) -> String {
        self.data.clone()
    }

    fn to_json(&self) -> Json {
        json!({ "data": self.data })
    }
}

impl TextValue for Bytes {
    fn parse(text: &str) -> Result<Bytes, String> {
        let text = match members(text, &["data"])? {
            Some(json) => string(&json, "data")?,
            None => text.to_owned(),
        };
        let data = if let Some(path) = text.strip_prefix('@') {
            std::fs::read(path).map_err(|error| format!("the file {path:?} cannot be read: {error}"))?
        } else if let Some(digits) = text.strip_prefix("0x") {
            hex(digits)?
        } else {
            text.into_bytes()
        };
        Ok(Bytes { data })
    }

    fn to_text(&self) -> String {
        let shown = &self.data[..self.data.len().min(SHOWN_BYTES_MAX)];
        let digits: String = shown.iter().map(|byte| format!("{byte:02x}")).collect();
        let more = if shown.len() < self.data.len() { "…" } else { "" };
        format!("{} bytes 0x{digits}{more}", self.data.len())
    }

    fn to_json(&self) -> Json {
        let digits: String = self.data.iter().map(|byte| format!("{byte:02x}")).collect();
        json!({ "data": format!("0x{digits}") })
    }
}

impl TextValue for ShapeType {
    fn parse(text: &str) -> Result<ShapeType, String> {
        let shape = match members(text, &["color", "x", "y", "shapesize"])? {
            Some(json) => ShapeType {
                color: string(&json, "color")?,
                x: integer(&json, "x")?,
                y: integer(&json, "y")?,
                shapesize: integer(&json, "shapesize")?,
            },
            None => shape_from_list(text)?,
        };
        if shape.color.len() > COLOR_MAX_BYTES {
            return Err(format!("the colour has {} bytes; at most {COLOR_MAX_BYTES} are allowed", shape.color.len()));
        }
        Ok(shape)
    }

    fn to_text(&self) -> String {
        format!("{},{},{},{}", self.color, self.x, self.y, self.shapesize)
    }

    fn to_json(&self) -> Json {
        json!({ "color": self.color, "x": self.x, "y": self.y, "shapesize": self.shapesize })
    }

    fn key_json(&self) -> Json {
        json!({ "color": self.color })
    }
}

fn shape_from_list(text: &str) -> Result<ShapeType, String> {
    let parts: Vec<&str> = text.split(',').map(str::trim).collect();
    let [color, x, y, size] = parts[..] else {
        return Err(format!("{text:?} is no shape; give color,x,y,size such as RED,10,20,30, or a JSON object"));
    };
    let number = |name: &str, text: &str| -> Result<i32, String> {
        text.parse().map_err(|_| format!("{name} is {text:?}; a whole number of 32 bits is needed"))
    };
    Ok(ShapeType { color: color.to_owned(), x: number("x", x)?, y: number("y", y)?, shapesize: number("size", size)? })
}

/// The JSON object in `text`, if it is one; its members must be `names` and nothing else.
fn members(text: &str, names: &[&str]) -> Result<Option<Json>, String> {
    if !text.trim_start().starts_with('{') {
        return Ok(None);
    }
    let json: Json = serde_json::from_str(text).map_err(|error| format!("{text:?} is no JSON object: {error}"))?;
    let object = json.as_object().ok_or_else(|| format!("{text:?} is no JSON object"))?;
    if let Some(unknown) = object.keys().find(|key| !names.contains(&key.as_str())) {
        let guess = thalweg_lab::nearest::nearest(unknown, names.iter().copied());
        let guess = guess.map(|name| format!("did you mean {name:?}? ")).unwrap_or_default();
        return Err(format!("there is no member {unknown:?}; {guess}members: {}", names.join(", ")));
    }
    Ok(Some(json))
}

fn string(json: &Json, name: &str) -> Result<String, String> {
    let text = json[name].as_str().ok_or_else(|| format!("the member {name:?} is missing or no string"))?;
    Ok(text.to_owned())
}

fn integer(json: &Json, name: &str) -> Result<i32, String> {
    let number = json[name].as_i64().and_then(|number| i32::try_from(number).ok());
    number.ok_or_else(|| format!("the member {name:?} is missing or no whole number of 32 bits"))
}

fn hex(digits: &str) -> Result<Vec<u8>, String> {
    let wrong = || format!("0x{digits} is no even number of hexadecimal digits");
    if !digits.len().is_multiple_of(2) || !digits.is_ascii() {
        return Err(wrong());
    }
    (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).map_err(|_| wrong())).collect()
}

/// Bytes of a value that fit a line of text.
const SHOWN_BYTES_MAX: usize = 32;
/// `string<128>` of the shapes demonstration.
const COLOR_MAX_BYTES: usize = 128;

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks that `text` means `expect`, and that the JSON of a value means the value.
    #[track_caller]
    fn check<T: TextValue + PartialEq + std::fmt::Debug>(text: &str, expect: Result<T, &str>) {
        let got = T::parse(text);
        match expect {
            Ok(value) => {
                assert_eq!(got.as_ref(), Ok(&value), "{text}");
                assert_eq!(T::parse(&value.to_json().to_string()), Ok(value), "back from JSON");
            }
            Err(part) => {
                let error = got.expect_err("an error");
                assert!(error.contains(part), "{part:?} not in {error:?}");
            }
        }
    }

    #[test]
    fn shapes_are_lists_or_objects() {
        let red = || ShapeType { color: "RED".to_owned(), x: 10, y: -20, shapesize: 30 };
        check("RED,10,-20,30", Ok(red()));
        check(r#"{"color":"RED","x":10,"y":-20,"shapesize":30}"#, Ok(red()));
        check::<ShapeType>("RED,10,20", Err("give color,x,y,size"));
        check::<ShapeType>("RED,10,20,huge", Err("size is \"huge\""));
        check::<ShapeType>(r#"{"colour":"RED","x":1,"y":2,"shapesize":3}"#, Err("did you mean \"color\""));
        check::<ShapeType>(r#"{"color":"RED","x":1,"y":2}"#, Err("\"shapesize\" is missing"));
        check::<ShapeType>(
            r#"{"color":"RED","x":3000000000,"y":2,"shapesize":3}"#,
            Err("\"x\" is missing or no whole number"),
        );
        check::<ShapeType>(&format!("{},1,2,3", "é".repeat(65)), Err("130 bytes"));
    }

    #[test]
    fn text_is_itself_unless_it_is_an_object() {
        check("hello, world", Ok(Text { data: "hello, world".to_owned() }));
        check(r#"{"data":"{braces}"}"#, Ok(Text { data: "{braces}".to_owned() }));
        check::<Text>("{braces}", Err("no JSON object"));
    }

    #[test]
    fn bytes_are_text_digits_or_a_file() {
        check("hello", Ok(Bytes { data: b"hello".to_vec() }));
        check("0x00ff10", Ok(Bytes { data: vec![0, 255, 16] }));
        check::<Bytes>("0x0", Err("even number"));
        check::<Bytes>("0xgg", Err("even number"));
        check::<Bytes>("@/nonexistent", Err("cannot be read"));
        let path = std::env::temp_dir().join(format!("thalweg-value-{}", std::process::id()));
        std::fs::write(&path, [1, 2, 3]).expect("written");
        assert_eq!(Bytes::parse(&format!("@{}", path.display())), Ok(Bytes { data: vec![1, 2, 3] }));
        std::fs::remove_file(&path).expect("removed");
        assert_eq!(Bytes { data: vec![7; 40] }.to_text(), format!("40 bytes 0x{}…", "07".repeat(32)));
    }
}
