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
    /// The type is only part of others.
    pub nested: bool,
    /// The key has no bound, since it contains values of the type itself.
    pub unbounded_key: bool,
    /// The path of thalweg-cdr in generated code.
    pub cdr: Path,
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
            nested: false,
            unbounded_key: false,
            cdr: parse_quote!(::thalweg::cdr),
        };
        for_each_entry(attributes, |meta| {
            let word = word_of(&meta)?;
            match word.as_str() {
                "name" => found.name = Some(meta.value()?.parse()?),
                "extensibility" => found.extensibility = Some(extensibility(&meta.value()?.parse()?)?),
                "autoid" => found.auto_id = auto_id(&meta.value()?.parse()?)?,
                "plain" => found.plain = Some(meta.path.span()),
                "key" => found.key = Some(meta.path.span()),
                "bit_bound" => found.bit_bound = Some(meta.value()?.parse()?),
                "discriminator" => found.discriminator = Some(meta.value()?.parse()?),
                "nested" => found.nested = true,
                "unbounded_key" => found.unbounded_key = true,
                "crate" => found.cdr = meta.value()?.parse::<LitStr>()?.parse()?,
                _ => {
                    return Err(meta.error(
                        "expected `name`, `extensibility`, `autoid`, `plain`, `key`, `bit_bound`, `discriminator`, `nested`, `unbounded_key` or `crate`",
                    ));
                }
            }
            Ok(())
        })?;
        Ok(found)
    }

    /// Refuses the attributes that say nothing about this kind of type.
    pub fn refuse(&self, kind: &str, refused: &[&str]) -> Result<()> {
        let given = [
            ("name", self.name.as_ref().map(Spanned::span)),
            ("plain", self.plain),
            ("key", self.key),
            ("bit_bound", self.bit_bound.as_ref().map(Spanned::span)),
            ("discriminator", self.discriminator.as_ref().map(Spanned::span)),
            ("extensibility", self.extensibility.map(|_| Span::call_site())),
        ];
        match given.into_iter().find(|(word, span)| span.is_some() && refused.contains(word)) {
            Some((word, Some(span))) => Err(Error::new(span, format!("`{word}` does not apply to {kind}"))),
            _ => Ok(()),
        }
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
    /// In the default branch of a union: the field that takes the label.
    pub label: Option<Span>,
    pub name: Option<LitStr>,
}

impl MemberAttributes {
    pub fn parse(attributes: &[Attribute]) -> Result<Self> {
        let mut found = MemberAttributes {
            key: None,
            id: None,
            max_len: None,
            default: DefaultValue::OfType,
            must_understand: false,
            label: None,
            name: None,
        };
        for_each_entry(attributes, |meta| {
            match word_of(&meta)?.as_str() {
                "key" => found.key = Some(meta.path.span()),
                "id" => found.id = Some(meta.value()?.parse()?),
                "max_len" => found.max_len = Some(meta.value()?.parse()?),
                "default" if meta.input.peek(Token![=]) => {
                    found.default = DefaultValue::Given(Box::new(meta.value()?.parse()?));
                }
                "default" => found.default = DefaultValue::OfRust,
                "must_understand" => found.must_understand = true,
                "label" => found.label = Some(meta.path.span()),
                "name" => found.name = Some(meta.value()?.parse()?),
                _ => {
                    return Err(
                        meta.error("expected `name`, `key`, `id`, `max_len`, `default`, `must_understand` or `label`")
                    );
                }
            }
            Ok(())
        })?;
        Ok(found)
    }
}

/// The attributes of a variant of an enum or union.
pub struct VariantAttributes {
    /// The labels of a union's branch, as a pattern; the first one is written.
    pub case: Option<Pat>,
    pub default: Option<Span>,
    pub id: Option<LitInt>,
    pub name: Option<LitStr>,
}

impl VariantAttributes {
    pub fn parse(attributes: &[Attribute]) -> Result<Self> {
        let mut found = VariantAttributes { case: None, default: None, id: None, name: None };
        for_each_entry(attributes, |meta| {
            match word_of(&meta)?.as_str() {
                "case" => found.case = Some(Pat::parse_multi_with_leading_vert(meta.value()?)?),
                "default" => found.default = Some(meta.path.span()),
                "id" => found.id = Some(meta.value()?.parse()?),
                "name" => found.name = Some(meta.value()?.parse()?),
                _ => return Err(meta.error("expected `name`, `case`, `default` or `id`")),
            }
            Ok(())
        })?;
        Ok(found)
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

/// A member id: below 2^28, as its header has room for.
pub fn member_id(literal: &LitInt) -> Result<u32> {
    let id: u32 = literal.base10_parse()?;
    if id < 1 << 28 { Ok(id) } else { Err(Error::new(literal.span(), "member ids are below 2^28 (268435456)")) }
}

fn for_each_entry(attributes: &[Attribute], mut entry: impl FnMut(ParseNestedMeta<'_>) -> Result<()>) -> Result<()> {
    attributes
        .iter()
        .filter(|attribute| attribute.path().is_ident("topic"))
        .try_for_each(|attribute| attribute.parse_nested_meta(&mut entry))
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
