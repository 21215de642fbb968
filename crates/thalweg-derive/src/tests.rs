use syn::parse_str;

use crate::expand;

/// The derive's first error about a declaration, or none.
#[track_caller]
fn check(declaration: &str, expected: &str) {
    let input = parse_str(declaration).expect("a declaration");
    let got = expand(&input).map_or_else(|error| error.to_string(), |_| String::new());
    assert_eq!(got, expected, "declaration: {declaration}");
}

#[test]
fn what_is_fine_is_not_complained_about() {
    check("#[topic(name = \"a::B\", extensibility = \"mutable\", autoid = \"hash\")] struct S { a: u8 }", "");
    check("struct S { #[topic(key, id = 3, max_len = N)] a: String, b: Option<u8>, r#type: u8 }", "");
    check("#[topic(discriminator = bool, key)] enum U { #[topic(case = true)] A(u8), #[topic(case = false)] B }", "");
    check("#[topic(bit_bound = 16)] enum E { A, #[topic(default)] B = 7 }", "");
    check("#[topic(extensibility = \"appendable\")] enum E { A, B }", "");
    check("struct S { #[topic(octet)] a: u8, #[topic(octet, max_len = 3)] b: Vec<u8>, c: [u8; 2] }", "");
    check("struct T(#[topic(octet)] std::collections::BTreeMap<String, u8>);", "");
    check("#[topic(discriminator = u8, octet)] enum U { #[topic(case = 1)] A(#[topic(octet)] Vec<u8>) }", "");
    check("#[topic(name = \"a::T\")] struct T(#[topic(max_len = 3)] Vec<u8>);", "");
    check("#[topic(nested)] struct S { #[topic(name = \"type\")] a: u8 }", "");
    check("enum E { #[topic(name = \"RED\")] Red }", "");
    check("enum U { #[topic(case = -1 | 1)] A(u8), #[topic(default)] B(u8) }", "");
    check("enum U { #[topic(case = 1)] A(u8), #[topic(default, case = 2 | 3)] B(#[topic(label)] i32, u8) }", "");
}

#[test]
fn unknown_words_are_named() {
    let words = "expected `name`, `extensibility`, `autoid`, `plain`, `key`, `bit_bound`, `discriminator`, `octet`, \
        `nested`, `unbounded_key` or `crate`";
    check("#[topic(mutable)] struct S { a: u8 }", words);
    let words = "expected `name`, `key`, `id`, `max_len`, `default`, `must_understand`, `octet` or `label`";
    check("struct S { #[topic(optional)] a: u8 }", words);
    check("enum E { #[topic(value = 3)] A }", "expected `name`, `case`, `default` or `id`");
    let words = r#"expected "final", "appendable" or "mutable""#;
    check("#[topic(extensibility = \"open\")] struct S { a: u8 }", words);
    check("#[topic(autoid = \"name\")] struct S { a: u8 }", r#"expected "sequential" or "hash""#);
}

#[test]
fn words_stand_where_they_mean_something() {
    check("#[topic(bit_bound = 8)] struct S { a: u8 }", "`bit_bound` does not apply to a struct");
    check("#[topic(key)] struct S { a: u8 }", "`key` stands on the members that are the key");
    let mutable = "an enum without data is final or appendable, never mutable";
    check("#[topic(extensibility = \"mutable\")] enum E { A }", mutable);
    check("#[topic(plain)] enum U { #[topic(case = 1)] A(u8) }", "`plain` does not apply to a union");
    let newtype = "`key` does not apply to a newtype, which is a typedef: name the member to make it a struct";
    check("#[topic(key)] struct T(u8);", newtype);
    check("struct S { #[topic(label)] a: u8 }", "`label` stands in the default branch of a union");
    let branch = "the value of a branch takes `max_len` and `octet` only";
    check("enum U { #[topic(case = 1)] A(#[topic(key)] u8) }", branch);
}

#[test]
fn no_word_is_ignored() {
    check("#[topic(nested)] enum E { A }", "`nested` does not apply to an enum without data");
    check("#[topic(autoid = \"hash\")] enum E { A }", "`autoid` does not apply to an enum without data");
    check("#[topic(unbounded_key)] enum E { A }", "`unbounded_key` does not apply to an enum without data");
    check("enum E { #[topic(id = 1)] A }", "`id` does not apply to a literal of an enum");
    check("enum E { #[topic(key)] A }", "expected `name`, `case`, `default` or `id`");
    let newtype = "does not apply to a newtype, which is a typedef: name the member to make it a struct";
    check("#[topic(nested)] struct T(u8);", &format!("`nested` {newtype}"));
    check("#[topic(autoid = \"hash\")] struct T(u8);", &format!("`autoid` {newtype}"));
    for word in ["key", "id = 1", "default", "must_understand", "label", "name = \"a\""] {
        let name = word.split(' ').next().unwrap_or_default();
        check(&format!("struct T(#[topic({word})] u8);"), &format!("`{name}` {newtype}"));
    }
    let branch = "the value of a branch takes `max_len` and `octet` only";
    check("enum U { #[topic(case = 1)] A(#[topic(name = \"a\")] u8) }", branch);
    let label = "the field that takes the label has no other attribute";
    check("enum U { #[topic(default)] A(#[topic(label, max_len = 3)] i32, u8) }", label);
    let octet = "`octet` tells what a `u8` is, which is not here";
    check("struct S { #[topic(octet)] a: Option<i8> }", octet);
    check("struct T(#[topic(octet)] Vec<u16>);", octet);
    check("enum U { #[topic(case = 1)] A(#[topic(octet)] String) }", octet);
    check("#[topic(octet)] enum U { #[topic(case = 1)] A(u8) }", octet);
    check("#[topic(octet)] struct S { a: u8 }", "`octet` does not apply to a struct");
}

#[test]
fn a_word_stands_once() {
    check("#[topic(nested, nested)] struct S { a: u8 }", "`nested` is given twice");
    check("#[topic(name = \"A\")] #[topic(name = \"B\")] struct S { a: u8 }", "`name` is given twice");
    check("struct S { #[topic(id = 1, id = 2)] a: u8 }", "`id` is given twice");
    check("enum U { #[topic(case = 1, case = 2)] A(u8) }", "`case` is given twice");
}

#[test]
fn names_defaults_and_labels_are_those_of_one() {
    check("struct S { a: u8, #[topic(name = \"a\")] b: u8 }", "there is a member of the name `a` already");
    check("enum E { A, #[topic(name = \"A\")] B }", "there is a literal of the name `A` already");
    check("enum E { #[topic(default)] A, #[topic(default)] B }", "an enum has one default literal");
    let branch = "there is a branch of the name `A` already";
    check("enum U { #[topic(case = 1)] A(u8), #[topic(case = 2, name = \"A\")] B(u8) }", branch);
    check("enum U { #[topic(case = 1)] A(u8), #[topic(case = 2 | 1)] B(u8) }", "the label 1 is taken");
    check("enum U { #[topic(case = c::Red)] A(u8), #[topic(case = c::Red)] B(u8) }", "the label c::Red is taken");
}

#[test]
fn ids_come_from_the_name_or_the_one_before_and_stay_below_their_end() {
    let last = "id = 268435455";
    check(&format!("struct S {{ #[topic({last})] a: u8 }}"), "");
    let none_left = "no member id is left behind the one before: give this member an `id`";
    check(&format!("struct S {{ #[topic({last})] a: u8, b: u8 }}"), none_left);
    check(&format!("enum U {{ #[topic(case = 1, {last})] A(u8), #[topic(case = 2)] B(u8) }}"), none_left);
    check(&format!("#[topic(autoid = \"hash\")] struct S {{ #[topic({last})] a: u8, b: u8 }}"), "");
    // These names have the same 28 bits of MD5.
    let hashed = "#[topic(autoid = \"hash\")]";
    check(&format!("{hashed} struct S {{ m9852: u8, m12254: u8 }}"), "member id 199327157 is already that of `m9852`");
    let union = format!("{hashed} enum U {{ #[topic(case = 1)] m9852(u8), #[topic(case = 2)] m12254(u8) }}");
    check(&union, "member id 199327157 is taken");
}

#[test]
fn keys_and_ids_are_checked() {
    check("struct S { #[topic(key)] a: Option<u8> }", "a key member cannot be optional");
    check("struct S { #[topic(key)] a: std::collections::BTreeMap<u8, u8> }", "a map cannot be a key");
    check("struct S { #[topic(id = 1)] a: u8, #[topic(id = 1)] b: u8 }", "member id 1 is already that of `a`");
    check("struct S { #[topic(id = 1)] a: u8, b: u8, #[topic(id = 2)] c: u8 }", "member id 2 is already that of `b`");
    check("struct S { #[topic(id = 268435456)] a: u8 }", "member ids are below 2^28 (268435456)");
    check("#[topic(extensibility = \"mutable\")] enum U { #[topic(case = 1, id = 0)] A(u8) }", "member id 0 is taken");
    check("enum U { #[topic(case = 1, id = 0)] A(u8) }", "");
}

#[test]
fn shapes_that_idl_does_not_have_are_explained() {
    check("struct S(u8, u8);", "members of a topic type need names");
    check("union U { a: u8 }", "an IDL union is a Rust enum with data");
    check("enum E {}", "an enum needs a literal");
    check("#[topic(bit_bound = 33)] enum E { A }", "the bit bound of an enum is 1 to 32");
    check(
        "enum U { #[topic(case = 1)] A { a: u8 } }",
        "a branch has one value without name: put several into a struct",
    );
    check("enum U { #[topic(case = 1)] A(u8, u8) }", "a branch has one value: put several into a struct");
    check("enum U { A(u8) }", "a branch of a union needs `#[topic(case = …)]` or `#[topic(default)]`");
    check("enum U { #[topic(default)] A(u8), #[topic(default)] B(u8) }", "a union has one default branch");
    check(
        "enum U { #[topic(case = Color::Red)] A(u8), #[topic(default)] B(u8) }",
        "no label can be guessed for the default branch: add `case = …` or a `label` field",
    );
    let label = "only a default branch takes the label";
    check("enum U { #[topic(case = 1)] A(#[topic(label)] i32, u8) }", label);
}

#[test]
fn plain_structs_are_checked() {
    let repr = "a plain struct is `#[repr(C)]`, neither packed nor aligned otherwise";
    check("#[topic(plain)] struct S { a: u8 }", repr);
    check("#[topic(plain)] #[repr(C, packed(2))] struct S { a: u8 }", repr);
    let mutable = "a mutable struct is not plain: each member has a header";
    check("#[topic(plain, extensibility = \"mutable\")] #[repr(C)] struct S { a: u8 }", mutable);
    let members = "a plain struct has numbers, arrays of numbers and plain structs as members only";
    check("#[topic(plain)] #[repr(C)] struct S { a: Option<u8> }", members);
}

#[test]
fn a_type_whose_values_do_not_end_is_refused() {
    let endless = "every value would contain another one without end";
    check("struct S { a: Box<S> }", &format!("{endless}: put it into an `Option` or a `Vec`"));
    check("struct S { #[topic(key)] a: [Box<Self>; 2] }", &format!("{endless}: put it into an `Option` or a `Vec`"));
    check("enum U { #[topic(case = 0)] A(Box<U>) }", endless);
    check("struct S { a: Vec<S>, b: Option<Box<S>>, c: Box<other::S> }", "");
    check("enum U { #[topic(case = 0)] A(Box<U>), #[topic(case = 1)] B }", "");
}
