//! Enums without data.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::{DeriveInput, Error, Result, Variant};

use crate::attributes::{ExtensibilityAttribute, TypeAttributes, VariantAttributes};
use crate::{ImplHeader, description, type_name};

pub fn expand(
    input: &DeriveInput,
    attributes: &TypeAttributes,
    variants: &[(&Variant, VariantAttributes)],
) -> Result<TokenStream> {
    let refused = ["plain", "key", "octet", "autoid", "nested", "unbounded_key"];
    attributes.refuse("an enum without data", &refused)?;
    let extensibility = attributes.extensibility.unwrap_or(ExtensibilityAttribute::Final);
    if extensibility == ExtensibilityAttribute::Mutable {
        return Err(Error::new_spanned(&input.ident, "an enum without data is final or appendable, never mutable"));
    }
    let Some((first, _)) = variants.first() else {
        return Err(Error::new_spanned(&input.ident, "an enum needs a literal"));
    };
    let literal_names = names_of(variants)?;
    let bits: usize = attributes.bit_bound.as_ref().map_or(Ok(32), syn::LitInt::base10_parse)?;
    let holder_bytes: usize = match bits {
        1..=8 => 1,
        9..=16 => 2,
        17..=32 => 4,
        _ => return Err(Error::new_spanned(&attributes.bit_bound, "the bit bound of an enum is 1 to 32")),
    };
    let cdr = &attributes.cdr;
    let name = type_name(input, attributes);
    let holder = format_ident!("i{}", holder_bytes * 8);
    let idents: Vec<_> = variants.iter().map(|(variant, _)| &variant.ident).collect();
    let default =
        variants.iter().find(|(_, found)| found.default.is_some()).map_or(&first.ident, |(variant, _)| &variant.ident);
    let expected = format!("a literal of {name}");
    let header = ImplHeader::new(input, cdr);
    let description = description::of_enumeration(cdr, &name, bits, extensibility, variants);
    let layout = header.implement(
        quote!(#cdr::Layout),
        quote! {
            const LENGTH_CODE: #cdr::LengthCode = #cdr::LengthCode::of_number(#holder_bytes);
            const KEY_SIZE: #cdr::KeySize = #cdr::KeySize::number(#holder_bytes);
            const MIN_BYTES: usize = #holder_bytes;
            #description
        },
    );
    let encode = header.implement(
        quote!(#cdr::Encode),
        quote! {
            #[inline]
            fn encode(&self, encoder: &mut #cdr::Encoder<'_>) -> ::core::result::Result<(), #cdr::EncodeError> {
                let literal = match self { #(Self::#idents => Self::#idents as #holder),* };
                #cdr::Encode::encode(&literal, encoder)
            }
            fn size_hint(&self) -> usize { #holder_bytes }
            fn field(&self, path: &[#cdr::FieldStep]) -> ::core::option::Option<#cdr::FieldValue<'_>> {
                let (name, number) = match self { #(Self::#idents => (#literal_names, Self::#idents as i64)),* };
                path.is_empty().then_some(#cdr::FieldValue::Literal { name, number })
            }
            fn field_kind(path: &[#cdr::FieldStep]) -> ::core::option::Option<#cdr::FieldKind> {
                path.is_empty().then_some(#cdr::FieldKind::Literal(&[#(#literal_names),*]))
            }
        },
    );
    let decode = header.implement(
        quote!(#cdr::Decode),
        quote! {
            #[inline]
            fn decode(decoder: &mut #cdr::Decoder<'_>) -> ::core::result::Result<Self, #cdr::DecodeError> {
                let literal = <#holder as #cdr::Decode>::decode(decoder)?;
                #(if literal == Self::#idents as #holder { return ::core::result::Result::Ok(Self::#idents); })*
                ::core::result::Result::Err(#cdr::DecodeError::new(decoder.offset() - #holder_bytes, #expected))
            }
            fn default_value() -> Self { Self::#default }
            fn skip(decoder: &mut #cdr::Decoder<'_>) -> ::core::result::Result<(), #cdr::DecodeError> {
                <#holder as #cdr::Decode>::skip(decoder)
            }
            fn skip_elements(
                decoder: &mut #cdr::Decoder<'_>,
                count: usize,
            ) -> ::core::result::Result<(), #cdr::DecodeError> {
                <#holder as #cdr::Decode>::skip_elements(decoder, count)
            }
        },
    );
    let type_ident = &input.ident;
    let too_wide = format!("a literal of {name} does not fit its bit bound of {bits}");
    let check = quote! {
        const _: () = {
            let literals = [#(#type_ident::#idents as i64),*];
            let (mut least, mut greatest, mut index) = (0, 0, 0);
            while index < literals.len() {
                if literals[index] < least {
                    least = literals[index];
                }
                if literals[index] > greatest {
                    greatest = literals[index];
                }
                index += 1;
            }
            // Without negative literals, the sign bit is one more.
            let end = if least < 0 { 1i64 << (#bits - 1) } else { 1i64 << #bits };
            ::core::assert!(least >= -(1i64 << (#bits - 1)) && greatest < end, #too_wide);
        };
    };
    Ok(quote!(#layout #encode #decode #check))
}

/// The names of the literals in IDL, with the attributes that only other variants take refused.
fn names_of(variants: &[(&Variant, VariantAttributes)]) -> Result<Vec<String>> {
    let mut names: Vec<String> = Vec::new();
    for (variant, found) in variants {
        found.given.refuse("a literal of an enum", &["id"])?;
        let name = found.name_of(&variant.ident);
        if names.contains(&name) {
            return Err(Error::new_spanned(variant, format!("there is a literal of the name `{name}` already")));
        }
        names.push(name);
    }
    match variants.iter().filter_map(|(_, found)| found.default).nth(1) {
        Some(second) => Err(Error::new(second, "an enum has one default literal")),
        None => Ok(names),
    }
}
