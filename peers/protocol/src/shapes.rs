//! What the programs of the shapes demonstration have in common: the options and lines of the OMG's interoperability suite.

use std::collections::HashMap;
use std::fmt::Display;
use std::time::Duration;

/// Options without a value.
const FLAGS: [&str; 9] = ["-P", "-S", "-b", "-r", "-w", "-R", "--take-read", "--coherent", "--ordered"];

/// The options: flags, and words with a value.
pub struct ShapesOptions(HashMap<String, String>);

impl ShapesOptions {
    /// Reads the words behind the command.
    ///
    /// # Errors
    /// A word has no value.
    pub fn read(mut words: impl Iterator<Item = String>) -> Result<ShapesOptions, String> {
        let mut all = HashMap::new();
        while let Some(word) = words.next() {
            let value = match FLAGS.contains(&word.as_str()) {
                true => String::new(),
                false => words.next().ok_or_else(|| format!("{word} needs a value"))?,
            };
            all.insert(word, value);
        }
        Ok(ShapesOptions(all))
    }

    /// Whether it is given.
    pub fn has(&self, word: &str) -> bool {
        self.0.contains_key(word)
    }

    /// Its value, or else this one.
    pub fn text<'a>(&'a self, word: &str, otherwise: &'a str) -> &'a str {
        self.0.get(word).map_or(otherwise, String::as_str)
    }

    /// Its value, or else this one.
    pub fn number(&self, word: &str, otherwise: i64) -> i64 {
        self.0.get(word).and_then(|value| value.parse().ok()).unwrap_or(otherwise)
    }

    /// A period in milliseconds.
    pub fn period(&self, word: &str, otherwise: i64) -> Duration {
        Duration::from_millis(u64::try_from(self.number(word, otherwise)).unwrap_or_default())
    }

    /// How often all samples are written or read.
    pub fn iterations(&self) -> std::ops::Range<i64> {
        0..self.number("--num-iterations", i64::MAX)
    }

    /// The topics.
    pub fn topics(&self) -> Vec<String> {
        numbered(self.text("-t", ""), self.number("--num-topics", 1))
    }

    /// The color of a publisher.
    pub fn color(&self) -> &str {
        self.text("-c", "BLUE")
    }

    /// The keys of a publisher.
    pub fn colors(&self) -> Vec<String> {
        numbered(self.color(), self.number("--num-instances", 1))
    }

    /// What a subscriber wants, as an expression of a filter; `None` where it wants all.
    pub fn filter(&self) -> Option<String> {
        let by_color = || self.has("-c").then(|| format!("color = '{}'", self.color()));
        self.has("-S").then(|| self.has("--cft").then(|| self.text("--cft", "").to_owned()).or_else(by_color)).flatten()
    }

    /// The size of the shapes of an iteration.
    pub fn size(&self, iteration: i64) -> i32 {
        let size = match self.number("-z", 20) {
            0 => iteration % self.number("--size-modulo", i64::from(i32::MAX)) + 1,
            size => size,
        };
        i32::try_from(size).unwrap_or(i32::MAX)
    }

    /// Where instances were ended, leaves that to be read before the writer leaves, which is another end.
    pub fn let_ends_be_read(&self) {
        if self.has("--final-instance-state") {
            std::thread::sleep(Duration::from_millis(400));
        }
    }

    /// The octets behind the members of a shape.
    pub fn octets(&self) -> Vec<u8> {
        vec![255; usize::try_from(self.number("--additional-payload-size", 0)).unwrap_or_default()]
    }
}

/// The name alone, then with the numbers from 1.
fn numbered(name: &str, count: i64) -> Vec<String> {
    std::iter::once(name.to_owned()).chain((1..count).map(|number| format!("{name}{number}"))).collect()
}

/// A sample as the suite reads it.
pub fn sample_line(topic: &str, color: &str, [x, y, size]: [i32; 3], octets: &[u8]) -> String {
    let last = octets.last().map(|octet| format!(" {{{octet}}}")).unwrap_or_default();
    format!("{topic:<10} {color:<10} {x:03} {y:03} [{size}]{last}")
}

/// Prints what a listener of the suite does.
pub fn tell(topic: &str, listener: &str, what: impl Display) {
    println!("{listener}() topic: '{topic}'  type: 'ShapeType' : {what}");
}

/// Runs the demonstration and ends the process. What `missing` names of the options is not there, which a line says.
pub fn run(
    words: impl Iterator<Item = String>,
    missing: impl FnOnce(&ShapesOptions) -> Option<&'static str>,
    start: impl FnOnce(&ShapesOptions) -> Result<(), String>,
) -> ! {
    let ended = ShapesOptions::read(words).and_then(|options| match missing(&options) {
        Some(what) => Err(format!("    {what} = not supported")),
        None => start(&options),
    });
    println!("{}", ended.as_ref().err().map_or("Done.", String::as_str));
    std::process::exit(i32::from(ended.is_err()))
}
