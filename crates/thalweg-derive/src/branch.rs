//! One branch of a union.

use proc_macro2::TokenStream;
use quote::quote;
use syn::spanned::Spanned;
use syn::{Error, Expr, ExprLit, Field, Fields, Ident, Lit, Pat, Path, Result, Type, Variant};

use crate::attributes::{AutoId, ExtensibilityAttribute, MemberAttributes, VariantAttributes, assigned_id};
use crate::member::has_octets;

/// A variant of the enum.
pub struct Branch<'a> {
    pub variant: &'a Ident,
    /// The name of its member in IDL.
    pub name: String,
    /// The labels that select it; none for a default branch without. A default branch is selected by all that no other has, too.
    pub pattern: Option<&'a Pat>,
    /// The label that is written, unless the variant has it.
    pub label: TokenStream,
    pub default: bool,
    /// Whether the variant's first field is the label.
    pub captures_label: bool,
    pub value: Option<BranchValue<'a>>,
    pub id: u32,
}

/// Which parts of a branch a pattern binds.
#[derive(Clone, Copy)]
pub struct Wanted {
    pub label: bool,
    pub value: bool,
}

/// The member that a branch has.
pub struct BranchValue<'a> {
    pub of_type: &'a Type,
    pub max_len: Option<Expr>,
    /// Whether its `u8` are IDL's `octet`.
    pub octet: bool,
}

/// In a mutable union the discriminator has the id 0, and the branches count from 1; else they count from 0, as Cyclone DDS has it.
pub fn parse_branches<'a>(
    variants: &'a [(&'a Variant, VariantAttributes)],
    extensibility: ExtensibilityAttribute,
    auto_id: AutoId,
) -> Result<Vec<Branch<'a>>> {
    let first_id = u32::from(extensibility == ExtensibilityAttribute::Mutable);
    check_labels(variants)?;
    let unused = unused_label(variants);
    let mut branches: Vec<Branch<'_>> = Vec::new();
    for (variant, found) in variants {
        let (captures_label, value) = parse_fields(variant, found)?;
        let label = match (found.labels().first(), found.default) {
            (Some(label), _) => quote!(#label),
            (None, Some(_)) if captures_label => TokenStream::new(),
            (None, Some(span)) => unused.clone().ok_or_else(|| {
                Error::new(span, "no label can be guessed for the default branch: add `case = …` or a `label` field")
            })?,
            (None, None) => {
                let message = "a branch of a union needs `#[topic(case = …)]` or `#[topic(default)]`";
                return Err(Error::new_spanned(variant, message));
            }
        };
        let next_id = branches.last().map_or(first_id, |previous| previous.id + 1);
        let name = found.name_of(&variant.ident);
        let id = assigned_id(found.id.as_ref(), auto_id, &name, next_id, variant.span())?;
        if branches.iter().any(|other| other.name == name) {
            return Err(Error::new_spanned(variant, format!("there is a branch of the name `{name}` already")));
        }
        if id < first_id || branches.iter().any(|other| other.id == id) {
            return Err(Error::new_spanned(variant, format!("member id {id} is taken")));
        }
        let (pattern, default) = (found.case.as_ref(), found.default.is_some());
        branches.push(Branch { variant: &variant.ident, name, pattern, label, default, captures_label, value, id });
    }
    match branches.iter().filter(|branch| branch.default).nth(1) {
        Some(second) => Err(Error::new_spanned(second.variant, "a union has one default branch")),
        None => Ok(branches),
    }
}

fn parse_fields<'a>(variant: &'a Variant, found: &VariantAttributes) -> Result<(bool, Option<BranchValue<'a>>)> {
    let fields: Vec<&Field> = match &variant.fields {
        Fields::Unit => Vec::new(),
        Fields::Unnamed(fields) => fields.unnamed.iter().collect(),
        Fields::Named(fields) => {
            return Err(Error::new_spanned(fields, "a branch has one value without name: put several into a struct"));
        }
    };
    let mut parsed = Vec::new();
    for field in fields {
        parsed.push((field, MemberAttributes::parse(&field.attrs)?));
    }
    let captures_label = parsed.first().is_some_and(|(_, attributes)| attributes.label.is_some());
    if captures_label && found.default.is_none() {
        return Err(Error::new_spanned(variant, "only a default branch takes the label"));
    }
    let of_label = parsed.first().filter(|_| captures_label);
    if let Some(place) = of_label.and_then(|(_, attributes)| attributes.given.other_than(&["label"])) {
        return Err(Error::new(place, "the field that takes the label has no other attribute"));
    }
    let mut values = parsed.into_iter().skip(usize::from(captures_label));
    let value = match (values.next(), values.next()) {
        (None, _) => None,
        (Some((field, attributes)), None) => {
            if let Some(place) = attributes.given.other_than(&["max_len", "octet"]) {
                return Err(Error::new(place, "the value of a branch takes `max_len` and `octet` only"));
            }
            let octet = has_octets(attributes.octet, &field.ty)?;
            Some(BranchValue { of_type: &field.ty, max_len: attributes.max_len, octet })
        }
        (Some(_), Some((second, _))) => {
            return Err(Error::new_spanned(second, "a branch has one value: put several into a struct"));
        }
    };
    Ok((captures_label, value))
}

/// Refuses a label that selects two branches, as far as both write it alike.
fn check_labels(variants: &[(&Variant, VariantAttributes)]) -> Result<()> {
    let mut known: Vec<String> = Vec::new();
    for label in variants.iter().flat_map(|(_, found)| found.labels()) {
        let text = quote!(#label).to_string().replace(' ', "");
        if known.contains(&text) {
            return Err(Error::new_spanned(label, format!("the label {text} is taken")));
        }
        known.push(text);
    }
    Ok(())
}

/// The least label from zero that no branch has, if all of them are plain numbers.
fn unused_label(variants: &[(&Variant, VariantAttributes)]) -> Option<TokenStream> {
    let mut used: Vec<i128> = Vec::new();
    for label in variants.iter().flat_map(|(_, found)| found.labels()) {
        match label {
            Pat::Lit(ExprLit { lit: Lit::Int(number), .. }) => used.push(number.base10_parse().ok()?),
            _ => return None,
        }
    }
    let unused = (0..).find(|candidate| !used.contains(candidate))?;
    let literal = proc_macro2::Literal::i128_unsuffixed(unused);
    Some(quote!(#literal))
}

impl Branch<'_> {
    /// The pattern of the variant, which binds `label` and `value` as far as it has them and they are wanted.
    pub fn destructure(&self, wanted: Wanted) -> TokenStream {
        let variant = self.variant;
        let label = self.captures_label.then(|| if wanted.label { quote!(label,) } else { quote!(_,) });
        let value = self.value.is_some().then(|| if wanted.value { quote!(value) } else { quote!(_) });
        match (&label, &value) {
            (None, None) => quote!(Self::#variant),
            _ => quote!(Self::#variant(#label #value)),
        }
    }

    /// The variant, made of `label` and the value's expression as far as it has them.
    pub fn construct(&self, value: Option<TokenStream>) -> TokenStream {
        let variant = self.variant;
        match (self.captures_label, value) {
            (false, None) => quote!(Self::#variant),
            (false, Some(value)) => quote!(Self::#variant(#value)),
            (true, None) => quote!(Self::#variant(label)),
            (true, Some(value)) => quote!(Self::#variant(label, #value)),
        }
    }
}

impl BranchValue<'_> {
    /// The expression that reads the value by this function of `Decode`, within its bound.
    pub fn read(&self, cdr: &Path, function: &TokenStream) -> TokenStream {
        let of_type = self.of_type;
        match &self.max_len {
            None => quote!(<#of_type as #cdr::Decode>::#function(decoder)),
            Some(max_len) => {
                let bounded = quote::format_ident!("{}_bounded", function.to_string());
                quote!(<#of_type as #cdr::Bounded>::#bounded(decoder, #max_len))
            }
        }
    }

    /// The value that a missing member takes, as the result of a decoder.
    pub fn default_value(&self, cdr: &Path) -> TokenStream {
        let of_type = self.of_type;
        quote! {
            ::core::result::Result::<_, #cdr::DecodeError>::Ok(<#of_type as #cdr::Decode>::default_value())
        }
    }

    /// The value's part of the union's key size.
    pub fn key_size(&self, cdr: &Path) -> TokenStream {
        let of_type = self.of_type;
        match &self.max_len {
            None => quote!(<#of_type as #cdr::Layout>::KEY_SIZE),
            Some(max_len) => quote!(<#of_type as #cdr::Bounded>::BOUNDED_KEY_SIZE.at_most(#max_len)),
        }
    }
}
