//! Newtypes: IDL's typedefs, the same on the wire as their inner type.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{DeriveInput, Field, Result};

use crate::attributes::{MemberAttributes, TypeAttributes};
use crate::member::has_octets;
use crate::{ImplHeader, description, type_name};

pub fn expand(input: &DeriveInput, attributes: &TypeAttributes, field: &Field) -> Result<TokenStream> {
    let kind = "a newtype, which is a typedef: name the member to make it a struct";
    let refused = ["plain", "key", "bit_bound", "discriminator", "octet", "extensibility", "autoid", "nested"];
    attributes.refuse(kind, &refused)?;
    let found = MemberAttributes::parse(&field.attrs)?;
    found.given.refuse(kind, &["name", "key", "id", "default", "must_understand", "label"])?;
    let cdr = &attributes.cdr;
    let inner = &field.ty;
    let name = type_name(input, attributes);
    let header = ImplHeader::new(input, cdr);
    let decode_into = match &found.max_len {
        None => quote!(<#inner as #cdr::Decode>::decode_into(&mut self.0, decoder)),
        Some(max_len) => quote!(<#inner as #cdr::Bounded>::decode_bounded_into(&mut self.0, decoder, #max_len)),
    };
    let (decode_key, transfer_key) = match &found.max_len {
        None => (
            quote!(<#inner as #cdr::Decode>::decode_key(decoder)),
            quote!(<#inner as #cdr::Decode>::transfer_key(decoder, encoder)),
        ),
        Some(max_len) => (
            quote!(<#inner as #cdr::Bounded>::decode_key_bounded(decoder, #max_len)),
            quote!(<#inner as #cdr::Bounded>::transfer_key_bounded(decoder, encoder, #max_len)),
        ),
    };
    let (check, decode, key_size) = match &found.max_len {
        None => (None, quote!(<#inner as #cdr::Decode>::decode), quote!(<#inner as #cdr::Layout>::KEY_SIZE)),
        Some(max_len) => (
            Some(quote!(#cdr::Bounded::check_bound(&self.0, #max_len).map_err(|error| error.in_member(#name, "0"))?;)),
            quote!((|decoder: &mut #cdr::Decoder<'_>| <#inner as #cdr::Bounded>::decode_bounded(decoder, #max_len))),
            quote!(<#inner as #cdr::Bounded>::BOUNDED_KEY_SIZE.at_most(#max_len)),
        ),
    };
    let (key_size, optional_key) = match attributes.unbounded_key {
        // The constant of a type that needs itself would need itself.
        true => (quote!(#cdr::KeySize::OVER), None),
        false => {
            let of_inner = quote!(const KEY_HAS_OPTIONAL: bool = <#inner as #cdr::Layout>::KEY_HAS_OPTIONAL;);
            (key_size, Some(of_inner))
        }
    };
    let octet = has_octets(found.octet, inner)?;
    let description = description::of_newtype(cdr, &name, inner, found.max_len.as_ref(), octet);
    let layout = header.implement(
        quote!(#cdr::Layout),
        quote! {
            const PRIMITIVE: bool = <#inner as #cdr::Layout>::PRIMITIVE;
            const ARRAY: bool = <#inner as #cdr::Layout>::ARRAY;
            const ELEMENT_PRIMITIVE: bool = <#inner as #cdr::Layout>::ELEMENT_PRIMITIVE;
            const DIMENSION_KEY_SIZE: #cdr::KeySize = <#inner as #cdr::Layout>::DIMENSION_KEY_SIZE;
            const LENGTH_CODE: #cdr::LengthCode = <#inner as #cdr::Layout>::LENGTH_CODE;
            const KEY_SIZE: #cdr::KeySize = #key_size;
            #optional_key
            const MIN_BYTES: usize = <#inner as #cdr::Layout>::MIN_BYTES;
            #description
        },
    );
    let encode_result = quote!(::core::result::Result<(), #cdr::EncodeError>);
    let encode = header.implement(
        quote!(#cdr::Encode),
        quote! {
            #[inline]
            fn encode(&self, encoder: &mut #cdr::Encoder<'_>) -> #encode_result {
                #check
                #cdr::Encode::encode(&self.0, encoder)
            }
            fn encode_key(&self, encoder: &mut #cdr::Encoder<'_>) -> #encode_result {
                #check
                #cdr::Encode::encode_key(&self.0, encoder)
            }
            fn size_hint(&self) -> usize { #cdr::Encode::size_hint(&self.0) }
            fn field(&self, path: &[#cdr::FieldStep]) -> ::core::option::Option<#cdr::FieldValue<'_>> {
                #cdr::Encode::field(&self.0, path)
            }
            fn field_kind(path: &[#cdr::FieldStep]) -> ::core::option::Option<#cdr::FieldKind> {
                <#inner as #cdr::Encode>::field_kind(path)
            }
        },
    );
    let decode_result = |of: TokenStream| quote!(::core::result::Result<#of, #cdr::DecodeError>);
    let (whole, nothing) = (decode_result(quote!(Self)), decode_result(quote!(())));
    let decode = header.implement(
        quote!(#cdr::Decode),
        quote! {
            #[inline]
            fn decode(decoder: &mut #cdr::Decoder<'_>) -> #whole {
                #decode(decoder).map(Self)
            }
            #[inline]
            fn decode_into(&mut self, decoder: &mut #cdr::Decoder<'_>) -> #nothing { #decode_into }
            fn decode_key(decoder: &mut #cdr::Decoder<'_>) -> #whole {
                #decode_key.map(Self)
            }
            fn default_value() -> Self { Self(<#inner as #cdr::Decode>::default_value()) }
            fn skip(decoder: &mut #cdr::Decoder<'_>) -> #nothing {
                <#inner as #cdr::Decode>::skip(decoder)
            }
            fn skip_elements(decoder: &mut #cdr::Decoder<'_>, count: usize) -> #nothing {
                <#inner as #cdr::Decode>::skip_elements(decoder, count)
            }
            fn transfer_key(decoder: &mut #cdr::Decoder<'_>, encoder: &mut #cdr::Encoder<'_>) -> #nothing {
                #transfer_key
            }
        },
    );
    Ok(quote!(#layout #encode #decode))
}
