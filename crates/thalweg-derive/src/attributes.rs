//! The attributes `#[topic(…)]` of types, members and variants.

use proc_macro2::Span;
use syn::meta::ParseNestedMeta;
use syn::parse::Parse;
use syn::spanned::Spanned;
use syn::{Attribute, Error, Expr, LitInt, LitStr, Pat, Path, Result, Token, Type, parse_quote};

/// Permitted changes of a type between versions.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum ExtensibilityAttribute {
    Final,
    Appendable,
    Mutable,
}

/// Assignment of member ids.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum AutoId {
    Sequential,
    Hash,
}

/// The attributes of the type.
pub struct TypeAttributes {
    pub name: Option<LitStr>,
    pub extensibility: Option<ExtensibilityAttribute>,
    pub auto_id: AutoId,
    pub plain: Option<Span>,
    /// On a union: the discriminator is its key.
    pub key: Option<Span>,
    pub bit_bound: Option<LitInt>,
    pub discriminator: Option<Type>,
    /// On a union: its discriminator is IDL's `octet`.
    pub octet: Option<Span>,
    /// The type is only part of others.
    pub nested: bool,
    /// The key has no bound, since it contains values of the type itself.
    pub unbounded_key: bool,
    /// The path of thalweg-cdr in generated code.
    pub cdr: Path,
    given: GivenWords,
}

/// The words in the attributes of one type, member or variant, with their places.
#[derive(Default)]
pub struct GivenWords(Vec<(String, Span)>);

impl GivenWords {
    /// Refuses the words that say nothing about this kind of thing.
    pub fn refuse(&self, kind: &str, refused: &[&str]) -> Result<()> {
        match self.0.iter().find(|(word, _)| refused.contains(&word.as_str())) {
            Some((word, place)) => Err(Error::new(*place, format!("`{word}` does not apply to {kind}"))),
            None => Ok(()),
        }
    }

    /// The place of the first word that is none of these.
    pub fn other_than(&self, permitted: &[&str]) -> Option<Span> {
        self.0.iter().find(|(word, _)| !permitted.contains(&word.as_str())).map(|(_, place)| *place)
    }
}

impl TypeAttributes {
    pub fn parse(attributes: &[Attribute]) -> Result<Self> {
        let mut found = TypeAttributes {
            name: None,
            extensibility: None,
            auto_id: AutoId::Sequential,
            plain: None,
            key: None,
            bit_bound: None,
            discriminator: None,
            octet: None,
            nested: false,
            unbounded_key: false,
            cdr: parse_quote!(::thalweg::cdr),
            given: GivenWords::default(),
        };
        let given = for_each_entry(attributes, |word, meta| {
            match word {
                "name" => found.name = Some(meta.value()?.parse()?),
                "extensibility" => found.extensibility = Some(extensibility(&meta.value()?.parse()?)?),
                "autoid" => found.auto_id = auto_id(&meta.value()?.parse()?)?,
                "plain" => found.plain = Some(meta.path.span()),
                "key" => found.key = Some(meta.path.span()),
                "bit_bound" => found.bit_bound = Some(meta.value()?.parse()?),
                "discriminator" => found.discriminator = Some(meta.value()?.parse()?),
                "octet" => found.octet = Some(meta.path.span()),
                "nested" => found.nested = true,
                "unbounded_key" => found.unbounded_key = true,
                "crate" => found.cdr = meta.value()?.parse::<LitStr>()?.parse()?,
                _ => {
                    return Err(meta.error(
                        "expected `name`, `extensibility`, `autoid`, `plain`, `key`, `bit_bound`, `discriminator`, `octet`, `nested`, `unbounded_key` or `crate`",
                    ));
                }
            }
            Ok(())
        })?;
        Ok(TypeAttributes { given, ..found })
    }

    /// Refuses the attributes that say nothing about this kind of type.
    pub fn refuse(&self, kind: &str, refused: &[&str]) -> Result<()> {
        self.given.refuse(kind, refused)
    }
}

/// The value of a member that the sender's version of the type does not have.
#[derive(Clone)]
pub enum DefaultValue {
    /// XTypes' default of the type: zero, empty, the first literal.
    OfType,
    /// `Default::default()`.
    OfRust,
    Given(Box<Expr>),
}

/// The attributes of a member of a struct, or of the value in a variant of a union.
pub struct MemberAttributes {
    pub key: Option<Span>,
    pub id: Option<LitInt>,
    pub max_len: Option<Expr>,
    pub default: DefaultValue,
    pub must_understand: bool,
    /// Its `u8` are IDL's `octet`.
    pub octet: Option<Span>,
    /// In the default branch of a union: the field that takes the label.
    pub label: Option<Span>,
    pub name: Option<LitStr>,
    pub given: GivenWords,
}

impl MemberAttributes {
    pub fn parse(attributes: &[Attribute]) -> Result<Self> {
        let mut found = MemberAttributes {
            key: None,
            id: None,
            max_len: None,
            default: DefaultValue::OfType,
            must_understand: false,
            octet: None,
            label: None,
            name: None,
            given: GivenWords::default(),
        };
        let given = for_each_entry(attributes, |word, meta| {
            match word {
                "key" => found.key = Some(meta.path.span()),
                "id" => found.id = Some(meta.value()?.parse()?),
                "max_len" => found.max_len = Some(meta.value()?.parse()?),
                "default" if meta.input.peek(Token![=]) => {
                    found.default = DefaultValue::Given(Box::new(meta.value()?.parse()?));
                }
                "default" => found.default = DefaultValue::OfRust,
                "must_understand" => found.must_understand = true,
                "octet" => found.octet = Some(meta.path.span()),
                "label" => found.label = Some(meta.path.span()),
                "name" => found.name = Some(meta.value()?.parse()?),
                _ => {
                    return Err(meta.error(
                        "expected `name`, `key`, `id`, `max_len`, `default`, `must_understand`, `octet` or `label`",
                    ));
                }
            }
            Ok(())
        })?;
        Ok(MemberAttributes { given, ..found })
    }
}

/// The attributes of a variant of an enum or union.
pub struct VariantAttributes {
    /// The labels of a union's branch, as a pattern; the first one is written.
    pub case: Option<Pat>,
    pub default: Option<Span>,
    pub id: Option<LitInt>,
    pub name: Option<LitStr>,
    pub given: GivenWords,
}

impl VariantAttributes {
    pub fn parse(attributes: &[Attribute]) -> Result<Self> {
        let mut found =
            VariantAttributes { case: None, default: None, id: None, name: None, given: GivenWords::default() };
        let given = for_each_entry(attributes, |word, meta| {
            match word {
                "case" => found.case = Some(Pat::parse_multi_with_leading_vert(meta.value()?)?),
                "default" => found.default = Some(meta.path.span()),
                "id" => found.id = Some(meta.value()?.parse()?),
                "name" => found.name = Some(meta.value()?.parse()?),
                _ => return Err(meta.error("expected `name`, `case`, `default` or `id`")),
            }
            Ok(())
        })?;
        Ok(VariantAttributes { given, ..found })
    }

    /// The name in IDL: given, or that of the variant without `r#`.
    pub fn name_of(&self, variant: &syn::Ident) -> String {
        let own = || variant.to_string().trim_start_matches("r#").to_owned();
        self.name.as_ref().map_or_else(own, LitStr::value)
    }

    /// The labels, one by one.
    pub fn labels(&self) -> Vec<&Pat> {
        match &self.case {
            None => Vec::new(),
            Some(Pat::Or(several)) => several.cases.iter().collect(),
            Some(one) => vec![one],
        }
    }
}

/// The id of the member `name`, which stands at `place`: the given one, else that of its name, else `next`.
pub fn assigned_id(given: Option<&LitInt>, auto_id: AutoId, name: &str, next: u32, place: Span) -> Result<u32> {
    match (given, auto_id) {
        (Some(literal), _) => given_id(literal),
        (None, AutoId::Hash) => Ok(hashed_id(name)),
        (None, AutoId::Sequential) if next < ID_END => Ok(next),
        (None, AutoId::Sequential) => {
            Err(Error::new(place, "no member id is left behind the one before: give this member an `id`"))
        }
    }
}

fn given_id(literal: &LitInt) -> Result<u32> {
    let id: u32 = literal.base10_parse()?;
    if id < ID_END { Ok(id) } else { Err(Error::new(literal.span(), "member ids are below 2^28 (268435456)")) }
}

/// The id that `autoid = "hash"` gives: 28 bits of the name's MD5 (DDS-XTypes 1.3 §7.3.1.2.1.1).
fn hashed_id(name: &str) -> u32 {
    let [a, b, c, d, ..] = md5::compute(name).0;
    u32::from_le_bytes([a, b, c, d]) & (ID_END - 1)
}

/// The end of the member ids, for which a header has 28 bits.
const ID_END: u32 = 1 << 28;

/// Calls `entry` for each word of the attributes, each of which may stand there once.
fn for_each_entry(
    attributes: &[Attribute],
    mut entry: impl FnMut(&str, ParseNestedMeta<'_>) -> Result<()>,
) -> Result<GivenWords> {
    let mut given = GivenWords::default();
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("topic")) {
        attribute.parse_nested_meta(|meta| {
            let (word, place) = (word_of(&meta)?, meta.path.span());
            if given.0.iter().any(|(other, _)| *other == word) {
                return Err(meta.error(format!("`{word}` is given twice")));
            }
            entry(&word, meta)?;
            given.0.push((word, place));
            Ok(())
        })?;
    }
    Ok(given)
}

fn word_of(meta: &ParseNestedMeta<'_>) -> Result<String> {
    meta.path.get_ident().map(ToString::to_string).ok_or_else(|| meta.error("expected one word"))
}

fn extensibility(literal: &LitStr) -> Result<ExtensibilityAttribute> {
    match literal.value().as_str() {
        "final" => Ok(ExtensibilityAttribute::Final),
        "appendable" => Ok(ExtensibilityAttribute::Appendable),
        "mutable" => Ok(ExtensibilityAttribute::Mutable),
        _ => Err(Error::new(literal.span(), r#"expected "final", "appendable" or "mutable""#)),
    }
}

fn auto_id(literal: &LitStr) -> Result<AutoId> {
    match literal.value().as_str() {
        "sequential" => Ok(AutoId::Sequential),
        "hash" => Ok(AutoId::Hash),
        _ => Err(Error::new(literal.span(), r#"expected "sequential" or "hash""#)),
    }
}

/// Whether any of the attributes is `#[repr(…)]` with this word in it.
pub fn has_repr(attributes: &[Attribute], word: &str) -> bool {
    attributes.iter().filter(|attribute| attribute.path().is_ident("repr")).any(|attribute| {
        let mut found = false;
        let parsed = attribute.parse_nested_meta(|meta| {
            found |= meta.path.is_ident(word);
            if meta.input.peek(syn::token::Paren) {
                let content;
                syn::parenthesized!(content in meta.input);
                proc_macro2::TokenStream::parse(&content)?;
            }
            Ok(())
        });
        parsed.is_ok() && found
    })
}
