//! `#[derive(Topic)]`: makes a Rust type a DDS type.

mod attributes;
mod branch;
mod enumeration;
mod member;
mod newtype;
mod structure;
mod structure_key;
mod union;

use proc_macro::TokenStream;
use quote::quote;
use syn::{Data, DeriveInput, Error, Fields, Ident, Result, parse_macro_input};

use crate::attributes::{TypeAttributes, VariantAttributes};

/// Implements `Encode`, `Decode` and `Topic` of thalweg-cdr for a struct, enum or newtype.
///
/// Attributes stand in `#[topic(…)]`.
#[proc_macro_derive(Topic, attributes(topic))]
pub fn derive_topic(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    expand(&input).unwrap_or_else(Error::into_compile_error).into()
}

fn expand(input: &DeriveInput) -> Result<proc_macro2::TokenStream> {
    let attributes = TypeAttributes::parse(&input.attrs)?;
    match &input.data {
        Data::Struct(data) => match &data.fields {
            Fields::Unnamed(fields) if fields.unnamed.len() == 1 => {
                newtype::expand(input, &attributes, &fields.unnamed[0])
            }
            Fields::Unnamed(fields) => Err(Error::new_spanned(fields, "members of a topic type need names")),
            fields => structure::expand(input, &attributes, fields),
        },
        Data::Enum(data) => {
            let mut variants = Vec::new();
            for variant in &data.variants {
                variants.push((variant, VariantAttributes::parse(&variant.attrs)?));
            }
            let is_union = attributes.discriminator.is_some()
                || variants.iter().any(|(variant, found)| !variant.fields.is_empty() || found.case.is_some());
            if is_union {
                union::expand(input, &attributes, &variants)
            } else {
                enumeration::expand(input, &attributes, &variants)
            }
        }
        Data::Union(_) => Err(Error::new_spanned(&input.ident, "an IDL union is a Rust enum with data")),
    }
}

/// The parts of an `impl` header, with the bounds that the codec needs on type parameters.
struct ImplHeader {
    generics: syn::Generics,
    name: Ident,
}

impl ImplHeader {
    fn new(input: &DeriveInput, cdr: &syn::Path) -> Self {
        let mut generics = input.generics.clone();
        for parameter in generics.type_params_mut() {
            parameter.bounds.push(syn::parse_quote!(#cdr::Encode));
            parameter.bounds.push(syn::parse_quote!(#cdr::Decode));
        }
        ImplHeader { generics, name: input.ident.clone() }
    }

    /// `impl Trait for Type { body }`
    fn implement(&self, of: proc_macro2::TokenStream, body: proc_macro2::TokenStream) -> proc_macro2::TokenStream {
        let (parameters, arguments, conditions) = self.generics.split_for_impl();
        let name = &self.name;
        quote! {
            #[automatically_derived]
            impl #parameters #of for #name #arguments #conditions { #body }
        }
    }
}

/// The name on the wire: given, or that of the Rust type.
fn type_name(input: &DeriveInput, attributes: &TypeAttributes) -> String {
    attributes.name.as_ref().map_or_else(|| input.ident.to_string(), syn::LitStr::value)
}
