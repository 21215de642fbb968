//! What becomes of values that their types cannot hold: texts and collections beyond their bounds, numbers that are no literal
//! (DDS-XTypes 1.3 §7.2.2.7).

use thalweg_cdr::description::{TryConstruct, Type};
use thalweg_cdr::{DecodeError, Decoder};

use super::{Part, read_value};
use crate::document::Document;

/// What becomes of a value that its type cannot hold.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Excess {
    /// It is an error.
    Refused,
    /// The value itself is cut to its bound; what it contains is refused.
    Trimmed,
    /// It stays, as does all that it contains: nobody will see it.
    Kept,
}

impl Part {
    /// What a value contains.
    pub(super) fn within(self) -> Part {
        match self.excess {
            Excess::Trimmed => Part { excess: Excess::Refused, ..self },
            Excess::Refused | Excess::Kept => self,
        }
    }

    /// Whatever the input has, to be passed over.
    pub(super) fn keeping(self) -> Part {
        Part { excess: Excess::Kept, ..self }
    }

    /// How much of a text or collection of this length, which stands at `at`, is kept.
    pub(super) fn kept(self, length: usize, bound: Option<usize>, at: usize) -> Result<usize, DecodeError> {
        let most = bound.unwrap_or(usize::MAX);
        match self.excess {
            Excess::Refused if length > most => {
                Err(DecodeError::new(at, format!("a length of at most {most}, not {length}")))
            }
            Excess::Trimmed => Ok(length.min(most)),
            Excess::Refused | Excess::Kept => Ok(length),
        }
    }
}

/// The value of a member; `None` where it has one that its type cannot hold, in whose place its default is wanted.
pub(super) fn read_tried(
    of: &Type,
    try_construct: TryConstruct,
    decoder: &mut Decoder<'_>,
    part: Part,
) -> Result<Option<Document>, DecodeError> {
    match try_construct {
        _ if part.excess == Excess::Kept => read_value(of, decoder, part).map(Some),
        TryConstruct::Discard => read_value(of, decoder, part).map(Some),
        TryConstruct::Trim => read_value(of, decoder, Part { excess: Excess::Trimmed, ..part }).map(Some),
        TryConstruct::UseDefault => {
            let place = decoder.clone();
            read_value(of, decoder, part).map(Some).or_else(|error| {
                *decoder = place;
                // What is no value of any type stays an error.
                read_value(of, decoder, part.keeping()).map_err(|_| error)?;
                Ok(None)
            })
        }
    }
}

/// The first `kept` bytes of a text, fewer where that would break a character.
pub(super) fn cut_text(mut text: String, kept: usize) -> String {
    text.truncate(text.floor_char_boundary(kept));
    text
}

/// The first `kept` UTF-16 units of a text, one fewer where that would break a character.
pub(super) fn cut_wide_text(mut text: String, kept: usize) -> String {
    let mut units = 0;
    let end = text.char_indices().find(|(_, character)| {
        units += character.len_utf16();
        units > kept
    });
    if let Some((at, _)) = end {
        text.truncate(at);
    }
    text
}

#[cfg(test)]
mod tests {
    use thalweg_cdr::Representation::{Xcdr1, Xcdr2};

    use super::*;
    use crate::codec::{DISCRIMINATOR, SampleType, decode, encode};
    use crate::idl;

    const READERS: &str = "enum Old { A, B }; enum New { X, Y, Z }; @nested struct Part { string<2> s; };
        @nested union Case switch (boolean) { case TRUE: @try_construct(TRIM) string<2> s; case FALSE: octet o; };";
    const WRITERS: &str = "enum Old { A, B }; enum New { X, Y, Z }; @nested struct Part { string s; };
        @nested union Case switch (boolean) { case TRUE: string s; case FALSE: octet o; };";

    /// What a reader with `its` members makes of `value` from a writer with `theirs`, in each framing.
    fn read_by(its: &str, theirs: &str, value: &str) -> Vec<Result<String, String>> {
        let value = Document::from_json(value.as_bytes()).expect("JSON");
        let extensibilities = ["final", "appendable", "mutable"];
        let framings =
            extensibilities.iter().flat_map(|extensibility| [(extensibility, Xcdr1), (extensibility, Xcdr2)]);
        let read = framings.map(|(extensibility, representation)| {
            let types = |others: &str, members: &str| {
                idl::parse(&format!("{others} @{extensibility} struct S {{ {members} }};")).expect("IDL")
            };
            let (its, theirs) = (types(READERS, its), types(WRITERS, theirs));
            let of =
                |types| SampleType::of(idl::Definitions::find(types, "S").expect("the type")).expect("a structure");
            let bytes = encode(of(&theirs), &value, representation).expect("encoded");
            let document = decode(of(&its), &bytes).map_err(|error| error.to_string())?;
            Ok(String::from_utf8(document.to_json().expect("JSON")).expect("text"))
        });
        read.collect()
    }

    fn all_read(its: &str, theirs: &str, value: &str, expected: &str) {
        for read in read_by(its, theirs, value) {
            assert_eq!(read.as_deref(), Ok(expected), "{its}");
        }
    }

    fn all_refuse(its: &str, theirs: &str, value: &str) {
        assert!(read_by(its, theirs, value).iter().all(Result::is_err), "{its}");
    }

    #[test]
    fn a_member_is_cut_to_its_bound() {
        all_read(
            "@try_construct(TRIM) string<4> s; @try_construct(TRIM) wstring<3> w; @try_construct(TRIM) sequence<long, 2> n; \
             @try_construct(TRIM) sequence<octet, 1> o; @try_construct(TRIM) map<long, long, 1> m; octet last;",
            "string s; wstring w; sequence<long> n; sequence<octet> o; map<long, long> m; octet last;",
            r#"{"s":"abcé","w":"ab😀","n":[1,2,3],"o":"0x0708","m":{"1":2,"3":4},"last":9}"#,
            r#"{"s":"abc","w":"ab","n":[1,2],"o":"0x07","m":{"1":2},"last":9}"#,
        );
        let short = r#"{"s":"abcd"}"#;
        all_read("@try_construct(TRIM) string<4> s;", "string s;", short, short);
    }

    #[test]
    fn what_is_cut_off_may_be_anything_and_what_stays_may_not() {
        let (its, theirs) =
            ("@try_construct(TRIM) sequence<string<2>, 2> s; octet last;", "sequence<string> s; octet last;");
        all_read(its, theirs, r#"{"s":["a","bb","ccc"],"last":9}"#, r#"{"s":["a","bb"],"last":9}"#);
        all_refuse(its, theirs, r#"{"s":["aaa","bb","c"],"last":9}"#);
        let (its, theirs) = ("@try_construct(TRIM) Old e;", "New e;");
        all_read(its, theirs, r#"{"e":"Y"}"#, r#"{"e":"B"}"#);
        all_refuse(its, theirs, r#"{"e":"Z"}"#);
        // An array has no bound to be cut to, and its texts are elements like those of a sequence.
        all_refuse("@try_construct(TRIM) string<2> s[2];", "string s[2];", r#"{"s":["aaa","b"]}"#);
        all_refuse("@try_construct(TRIM) string<2> s[2][1];", "string s[2][1];", r#"{"s":[["a"],["bbb"]]}"#);
        let fits = r#"{"s":["aa","b"]}"#;
        all_read("@try_construct(TRIM) string<2> s[2];", "string s[2];", fits, fits);
    }

    #[test]
    fn a_default_takes_the_place_of_what_a_member_cannot_hold() {
        all_read(
            "@try_construct(USE_DEFAULT) Old e; @try_construct(USE_DEFAULT) @default(\"x\") string<4> s; \
             @try_construct(USE_DEFAULT) sequence<Part, 2> p; @optional @try_construct(USE_DEFAULT) string<1> o; octet last;",
            "New e; string s; sequence<Part> p; @optional string o; octet last;",
            r#"{"e":"Z","s":"abcde","p":[{"s":"a"},{"s":"b"},{"s":"c"}],"o":"long","last":9}"#,
            r#"{"e":"A","s":"x","p":[],"last":9}"#,
        );
        let fits = r#"{"e":"A","s":"abcd"}"#;
        let its = "@try_construct(USE_DEFAULT) Old e; @try_construct(USE_DEFAULT) @default(\"x\") string<4> s;";
        all_read(its, "Old e; string s;", fits, fits);
    }

    #[test]
    fn what_contains_a_discarded_value_is_tried_in_its_turn() {
        let value = r#"{"p":{"s":"abc"},"last":9}"#;
        let theirs = "Part p; octet last;";
        all_refuse("Part p; octet last;", theirs, value);
        all_refuse("@try_construct(TRIM) Part p; octet last;", theirs, value);
        all_read("@try_construct(USE_DEFAULT) Part p; octet last;", theirs, value, r#"{"p":{"s":""},"last":9}"#);
        let (cut, whole) = (r#"{"c":{"$":true,"s":"ab"}}"#, r#"{"c":{"$":true,"s":"abc"}}"#);
        all_read("Case c;", "Case c;", &whole.replace('$', DISCRIMINATOR), &cut.replace('$', DISCRIMINATOR));
    }

    #[test]
    fn what_names_an_instance_is_neither_cut_nor_guessed() {
        for how in ["TRIM", "USE_DEFAULT"] {
            all_refuse(&format!("@key @try_construct({how}) string<2> s;"), "@key string s;", r#"{"s":"abc"}"#);
        }
    }
}
