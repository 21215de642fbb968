//! The comments in front of definitions, for those who read what is made of them.

use std::collections::BTreeMap;
use std::fmt::Write;

/// Comments of types, by their whole names (`demo::Pose`), and of their members, cases and literals.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceDocs(BTreeMap<(String, Option<String>), String>);

impl SourceDocs {
    /// The comment of a type, or of this part of it, without the signs around it; `None` where there is none.
    pub fn find(&self, of: &str, part: Option<&str>) -> Option<&str> {
        self.0.get(&(of.to_owned(), part.map(str::to_owned))).map(String::as_str)
    }

    /// Takes over those of another source.
    pub fn extend(&mut self, other: &SourceDocs) {
        self.0.extend(other.0.iter().map(|(name, text)| (name.clone(), text.clone())));
    }

    /// Notes a comment; one without a letter is none.
    pub(crate) fn add(&mut self, of: &str, part: Option<&str>, text: &str) {
        if !text.trim().is_empty() {
            self.0.insert((of.to_owned(), part.map(str::to_owned)), text.trim().to_owned());
        }
    }

    /// The comment as lines of Rust in front of the line with the name; empty without one.
    pub(crate) fn to_rust(&self, of: &str, part: Option<&str>, indent: &str) -> String {
        let mut out = String::new();
        let Some(text) = self.find(of, part) else { return out };
        for line in text.lines() {
            // Rust takes neither lone carriage returns, nor what is indented or fenced for words: it would be code that is tested.
            let line: String =
                line.trim().chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
            let line = format!("{indent}/// {}", line.replace("```", "'''").replace("~~~", "'''"));
            let _ = writeln!(out, "{}", line.trim_end());
        }
        let _ = writeln!(out, "{indent}///");
        out
    }
}

/// What a comment of IDL says that documents what follows: `///`, `//!`, `/** */` or `/*! */`; `None` for any other, and for one that
/// stands behind what it documents (`///<`).
pub(crate) fn documentation(comment: &str) -> Option<String> {
    let starts = ["///", "//!", "/**", "/*!"];
    let text = starts.iter().find_map(|start| comment.strip_prefix(start))?;
    if text.starts_with(['/', '<', '*']) {
        return None; // A line of signs, an empty comment, or one of what stands in front of it.
    }
    let lines = text.strip_suffix("*/").unwrap_or(text).lines();
    let is_block = comment.starts_with("/*");
    let line = |line: &str| {
        let line = line.trim();
        line.strip_prefix('*').filter(|_| is_block).unwrap_or(line).trim().to_owned()
    };
    Some(lines.map(line).collect::<Vec<_>>().join("\n").trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::idl::parse;
    use crate::ros::RosPackages;
    use crate::rust::to_documented_rust;

    #[test]
    fn comments_that_document_are_told_from_others() {
        for (comment, expected) in [
            ("/// A pose.", Some("A pose.")),
            ("//! A pose.", Some("A pose.")),
            ("/** A pose.\n  * In metres.\n  */", Some("A pose.\nIn metres.")),
            ("/*! A pose. */", Some("A pose.")),
            ("/// * of a list", Some("* of a list")),
            ("// A pose.", None),
            ("/* A pose. */", None),
            ("//////////", None),
            ("/**/", None),
            ("/***** A pose. *****/", None),
            ("///< behind", None),
        ] {
            assert_eq!(documentation(comment).as_deref(), expected, "{comment}");
        }
    }

    #[test]
    fn comments_of_idl_are_the_documentation_of_the_rust_that_is_made_of_it() {
        let text = "module demo {
            /// How it feels.
            enum Mood {
                /// At rest.
                CALM,
                WILD ///< not of what follows
            };
            // Nobody's.
            /** Where it is.
              * In the map's frame. */
            @final struct Pose {
                /// Metres.
                /// ``` from
                @key double x; /* when */
                double y;
            };
            union Load switch (long) {
                /// Kilograms.
                case 1: double mass;
                default: /// Words.
                    string what;
            };
            /// A name.
            typedef string Name;
        };";
        let types = parse(text).expect("IDL");
        let docs = types.docs();
        let told = |of: &str, part: &str| docs.find(of, Some(part).filter(|part| !part.is_empty())).unwrap_or("");
        assert_eq!(told("demo::Pose", ""), "Where it is.\nIn the map's frame.");
        assert_eq!(
            (told("demo::Mood", ""), told("demo::Mood", "CALM"), told("demo::Mood", "WILD")),
            ("How it feels.", "At rest.", "")
        );
        assert_eq!(
            (told("demo::Load", "mass"), told("demo::Load", "what"), told("demo::Name", "")),
            ("Kilograms.", "Words.", "A name.")
        );
        let rust = to_documented_rust(types.iter(), docs).expect("Rust");
        for part in [
            "    /// Where it is.\n    /// In the map's frame.\n    ///\n    /// `demo::Pose`\n    #[derive(",
            "        /// Metres.\n        /// ''' from\n        ///\n        /// `x`\n        #[topic(key)]\n",
            "        pub x: f64,\n        /// `y`\n        pub y: f64,\n",
            "        /// At rest.\n        ///\n        /// `CALM`\n",
            "        /// Kilograms.\n        ///\n        /// `mass`\n",
            "    /// A name.\n    ///\n    /// `demo::Name`\n",
        ] {
            assert!(rust.contains(part), "{part:?} is not in\n{rust}");
        }
    }

    #[test]
    fn comments_of_messages_are_the_documentation_of_the_rust_that_is_made_of_them() {
        let mut packages = RosPackages::default();
        let text = "# A pose.\n#  In metres.\n\n# East.\nfloat64 x # of the origin\nfloat64 y\n# Of none.\nint32 A=1\nfloat64 z\n";
        let types = packages.read_text("demo", "msg", "Pose", text, None).expect("read");
        let rust = to_documented_rust(&types, packages.docs()).expect("Rust");
        for part in [
            "/// A pose.\n            /// In metres.\n            ///\n            /// `demo::msg::dds_::Pose_`\n",
            "/// East.\n                /// of the origin\n                ///\n                /// `x`\n",
            "pub x: f64,\n                /// `y`\n",
            "pub y: f64,\n                /// `z`\n",
        ] {
            assert!(rust.contains(part), "{part:?} is not in\n{rust}");
        }
    }
}
