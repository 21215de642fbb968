//! One member of a struct, and the code that moves it.

use proc_macro2::{Span, TokenStream, TokenTree};
use quote::{ToTokens, format_ident, quote};
use syn::spanned::Spanned;
use syn::{Error, Expr, Field, GenericArgument, Ident, Path, PathArguments, Result, Type};

use crate::attributes::{AutoId, DefaultValue, MemberAttributes, assigned_id};

pub struct DerivedMember {
    pub field: Ident,
    /// The name in IDL: given, or that of the field without `r#`.
    pub name: String,
    /// The type of the value: of an optional member, the type in the `Option`.
    pub value_type: Type,
    pub optional: bool,
    pub key: bool,
    pub id: u32,
    pub must_understand: bool,
    /// Whether its `u8` are IDL's `octet`.
    pub octet: bool,
    pub max_len: Option<Expr>,
    pub default: DefaultValue,
}

impl DerivedMember {
    /// The members with their ids: given ones, else sequential after the one before, else from the name.
    pub fn parse_all<'a>(fields: impl Iterator<Item = &'a Field>, auto_id: AutoId) -> Result<Vec<Self>> {
        let mut members: Vec<DerivedMember> = Vec::new();
        for field in fields {
            let next_id = members.last().map_or(0, |previous| previous.id + 1);
            let member = DerivedMember::parse(field, auto_id, next_id)?;
            if members.iter().any(|other| other.name == member.name) {
                let message = format!("there is a member of the name `{}` already", member.name);
                return Err(Error::new(field.span(), message));
            }
            if let Some(other) = members.iter().find(|other| other.id == member.id) {
                let message = format!("member id {} is already that of `{}`", member.id, other.name);
                return Err(Error::new(field.span(), message));
            }
            members.push(member);
        }
        Ok(members)
    }

    /// The fewest bytes that it takes in XCDR1: an optional one has a header there.
    pub fn bytes_min(&self, cdr: &Path) -> TokenStream {
        let value_type = &self.value_type;
        if self.optional { quote!(4) } else { quote!(<#value_type as #cdr::Layout>::MIN_BYTES) }
    }

    fn parse(field: &Field, auto_id: AutoId, next_id: u32) -> Result<Self> {
        let attributes = MemberAttributes::parse(&field.attrs)?;
        let Some(ident) = field.ident.clone() else {
            return Err(Error::new(field.span(), "members of a topic type need names"));
        };
        if let Some(span) = attributes.label {
            return Err(Error::new(span, "`label` stands in the default branch of a union"));
        }
        let inner = in_option(&field.ty);
        if let (Some(span), Some(_)) = (attributes.key, inner) {
            return Err(Error::new(span, "a key member cannot be optional"));
        }
        if let (Some(span), Some("BTreeMap" | "HashMap")) = (attributes.key, last_segment(&field.ty).as_deref()) {
            return Err(Error::new(span, "a map cannot be a key"));
        }
        let name = name_of(field, &attributes);
        Ok(DerivedMember {
            id: assigned_id(attributes.id.as_ref(), auto_id, &name, next_id, field.span())?,
            name,
            value_type: inner.unwrap_or(&field.ty).clone(),
            optional: inner.is_some(),
            key: attributes.key.is_some(),
            must_understand: attributes.must_understand,
            octet: has_octets(attributes.octet, &field.ty)?,
            max_len: attributes.max_len,
            default: attributes.default,
            field: ident,
        })
    }

    /// `DerivedMember { … }` of thalweg-cdr.
    pub fn header(&self, cdr: &Path) -> TokenStream {
        let (id, must_understand) = (self.id, self.must_understand);
        quote!(#cdr::Member { id: #id, must_understand: #must_understand })
    }

    /// `.map_err(…)` that names the member.
    pub fn named(&self, type_name: &str) -> TokenStream {
        let name = &self.name;
        quote!(.map_err(|error| error.in_member(#type_name, #name)))
    }

    /// Writes `value`, a reference; all members or, with `function` `encode_key`, its key.
    pub fn encode_value(&self, cdr: &Path, value: &TokenStream, function: &TokenStream) -> TokenStream {
        let value_type = &self.value_type;
        let written = quote!(<#value_type as #cdr::Encode>::#function(#value, encoder));
        match &self.max_len {
            None => written,
            Some(max_len) => quote! {
                <#value_type as #cdr::Bounded>::check_bound(#value, #max_len).and_then(|()| #written)
            },
        }
    }

    /// Reads a value.
    pub fn decode_value(&self, cdr: &Path) -> TokenStream {
        let value_type = &self.value_type;
        match &self.max_len {
            None => quote!(<#value_type as #cdr::Decode>::decode(decoder)),
            Some(max_len) => quote!(<#value_type as #cdr::Bounded>::decode_bounded(decoder, #max_len)),
        }
    }

    /// Reads a value in place of the one that the field has; of an optional member, a new one.
    pub fn decode_into_field(&self, cdr: &Path) -> TokenStream {
        let (field, value_type) = (&self.field, &self.value_type);
        match &self.max_len {
            None => quote!(<#value_type as #cdr::Decode>::decode_into(&mut self.#field, decoder)),
            Some(max_len) => {
                quote!(<#value_type as #cdr::Bounded>::decode_bounded_into(&mut self.#field, decoder, #max_len))
            }
        }
    }

    /// Reads the key of a value.
    pub fn decode_key_value(&self, cdr: &Path) -> TokenStream {
        let value_type = &self.value_type;
        match &self.max_len {
            None => quote!(<#value_type as #cdr::Decode>::decode_key(decoder)),
            Some(max_len) => quote!(<#value_type as #cdr::Bounded>::decode_key_bounded(decoder, #max_len)),
        }
    }

    /// Copies the key of a value from `decoder`, a mutable reference, to `encoder`.
    pub fn transfer_key(&self, cdr: &Path, decoder: &TokenStream) -> TokenStream {
        let value_type = &self.value_type;
        match &self.max_len {
            None => quote!(<#value_type as #cdr::Decode>::transfer_key(#decoder, encoder)),
            Some(max_len) => {
                quote!(<#value_type as #cdr::Bounded>::transfer_key_bounded(#decoder, encoder, #max_len))
            }
        }
    }

    /// The value that the member takes when there is none.
    pub fn default_value(&self, cdr: &Path) -> TokenStream {
        let value_type = &self.value_type;
        match &self.default {
            DefaultValue::Given(expression) => quote!(#expression),
            DefaultValue::OfRust => quote!(::core::default::Default::default()),
            DefaultValue::OfType if self.optional => quote!(::core::option::Option::None),
            DefaultValue::OfType => quote!(<#value_type as #cdr::Decode>::default_value()),
        }
    }

    /// The member's part of the type's key size.
    pub fn key_size(&self, cdr: &Path) -> TokenStream {
        let value_type = &self.value_type;
        match &self.max_len {
            _ if self.optional => quote!(#cdr::KeySize::OVER),
            None => quote!(<#value_type as #cdr::Layout>::KEY_SIZE),
            Some(max_len) => quote!(<#value_type as #cdr::Bounded>::BOUNDED_KEY_SIZE.at_most(#max_len)),
        }
    }
}

/// The name in IDL: given, or that of the field without `r#`.
fn name_of(field: &Field, attributes: &MemberAttributes) -> String {
    let own =
        || field.ident.as_ref().map_or_else(String::new, |ident| ident.to_string().trim_start_matches("r#").to_owned());
    attributes.name.as_ref().map_or_else(own, syn::LitStr::value)
}

/// The `T` of `Option<T>`, however the path to `Option` is written.
fn in_option(candidate: &Type) -> Option<&Type> {
    let Type::Path(path) = candidate else { return None };
    let last = path.path.segments.last().filter(|segment| segment.ident == "Option")?;
    let PathArguments::AngleBracketed(arguments) = &last.arguments else { return None };
    match arguments.args.first() {
        Some(GenericArgument::Type(inner)) if arguments.args.len() == 1 => Some(inner),
        _ => None,
    }
}

fn last_segment(of: &Type) -> Option<String> {
    let Type::Path(path) = of else { return None };
    path.path.segments.last().map(|segment| segment.ident.to_string())
}

/// Whether `octet` stands at a type, which then has to have a `u8`.
pub fn has_octets(octet: Option<Span>, of: &Type) -> Result<bool> {
    match octet {
        Some(place) if !names(of, &format_ident!("u8")) => {
            Err(Error::new(place, "`octet` tells what a `u8` is, which is not here"))
        }
        octet => Ok(octet.is_some()),
    }
}

/// Whether a type holds the name of the type that is derived, or `Self`, but not a path that ends in it: that is another type.
pub fn names(of: &Type, own: &Ident) -> bool {
    fn holds(tokens: TokenStream, own: &Ident) -> bool {
        let mut is_path = false;
        tokens.into_iter().any(|token| match token {
            TokenTree::Ident(ident) => !std::mem::take(&mut is_path) && (ident == *own || ident == "Self"),
            TokenTree::Group(group) => holds(group.stream(), own),
            TokenTree::Punct(punct) => {
                is_path = punct.as_char() == ':';
                false
            }
            TokenTree::Literal(_) => false,
        })
    }
    holds(of.to_token_stream(), own)
}

/// Whether each value of a type holds one of the type that is derived: in the value itself, an array or a `Box`.
pub fn needs(of: &Type, own: &Ident) -> bool {
    match of {
        Type::Array(array) => needs(&array.elem, own),
        Type::Path(path) => {
            let is_own = path.path.get_ident().is_some_and(|ident| ident == own || ident == "Self");
            let arguments = path.path.segments.last().filter(|last| last.ident == "Box").map(|last| &last.arguments);
            let Some(PathArguments::AngleBracketed(arguments)) = arguments else { return is_own };
            arguments.args.iter().any(|argument| matches!(argument, GenericArgument::Type(of) if needs(of, own)))
        }
        _ => false,
    }
}
