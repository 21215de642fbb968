//! `Layout::description`: the type as data, for those that are told of it.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Expr, Pat, Path, Type, Variant};

use crate::attributes::{AutoId, ExtensibilityAttribute, VariantAttributes};
use crate::structure::{DerivedStructure, extensibility};
use crate::union::DerivedUnion;

pub fn of_structure(structure: &DerivedStructure<'_>) -> TokenStream {
    let (cdr, name, is_nested) = (structure.cdr, &structure.name, structure.nested);
    let extensibility = extensibility(cdr, structure.extensibility);
    let has_hashed_ids = structure.auto_id == AutoId::Hash;
    let members = structure.members.iter().map(|member| {
        let (name, id) = (&member.name, member.id);
        let (is_key, is_optional, must_understand) = (member.key, member.optional, member.must_understand);
        let member_type = described(cdr, &member.value_type, member.max_len.as_ref(), member.octet);
        quote! {
            #cdr::description::StructureMember {
                is_key: #is_key,
                is_optional: #is_optional,
                must_understand: #must_understand,
                ..#cdr::description::StructureMember::new(#name, #id, #member_type)
            }
        }
    });
    let made = quote! {
        #cdr::description::Type::Structure(::std::sync::Arc::new(#cdr::description::Structure {
            name: ::std::string::String::from(#name),
            extensibility: #extensibility,
            base: ::core::option::Option::None,
            members: ::std::vec![#(#members),*],
            is_nested: #is_nested,
            has_hashed_ids: #has_hashed_ids,
        }))
    };
    function(cdr, made)
}

pub fn of_union(union: &DerivedUnion<'_>) -> TokenStream {
    let (cdr, name, is_nested, is_keyed) = (union.cdr, &union.name, union.nested, union.discriminator_is_key);
    let has_hashed_ids = union.auto_id == AutoId::Hash;
    let extensibility = extensibility(cdr, union.extensibility);
    let discriminator_type = &union.discriminator;
    let discriminator = described(cdr, discriminator_type, None, union.octet);
    let mut is_describable = true;
    let mut cases = Vec::new();
    for branch in &union.branches {
        let (name, id, is_default) = (&branch.name, branch.id, branch.default);
        let mut labels = Vec::new();
        for label in branch.pattern.map(alternatives).unwrap_or_default() {
            is_describable &= matches!(label, Pat::Lit(_) | Pat::Path(_) | Pat::Ident(_) | Pat::Verbatim(_));
            labels.push(quote!(((#label) as #discriminator_type) as i32));
        }
        let case_type = match &branch.value {
            None => quote!(::core::option::Option::None),
            Some(value) => {
                let value_type = described(cdr, value.of_type, value.max_len.as_ref(), value.octet);
                quote!(::core::option::Option::Some(#value_type))
            }
        };
        cases.push(quote! {
            #cdr::description::UnionCase {
                name: ::std::string::String::from(#name),
                id: #id,
                labels: ::std::vec![#(#labels),*],
                is_default: #is_default,
                case_type: #case_type,
                is_external: false,
                try_construct: #cdr::description::TryConstruct::Discard,
                annotations: ::core::default::Default::default(),
            }
        });
    }
    if !is_describable {
        return TokenStream::new();
    }
    let made = quote! {
        #cdr::description::Type::Union(::std::sync::Arc::new(#cdr::description::Union {
            name: ::std::string::String::from(#name),
            extensibility: #extensibility,
            discriminator: #discriminator,
            is_keyed: #is_keyed,
            cases: ::std::vec![#(#cases),*],
            is_nested: #is_nested,
            has_hashed_ids: #has_hashed_ids,
        }))
    };
    function(cdr, made)
}

pub fn of_enumeration(
    cdr: &Path,
    name: &str,
    bits: usize,
    permitted: ExtensibilityAttribute,
    variants: &[(&Variant, VariantAttributes)],
) -> TokenStream {
    let (bit_bound, extensibility) = (bits as u16, extensibility(cdr, permitted));
    let default = variants.iter().position(|(_, found)| found.default.is_some()).unwrap_or_default();
    let literals = variants.iter().map(|(variant, found)| {
        let (ident, name) = (&variant.ident, found.name_of(&variant.ident));
        quote!(#cdr::description::Literal { name: ::std::string::String::from(#name), value: Self::#ident as i32 })
    });
    let made = quote! {
        #cdr::description::Type::Enumeration(::std::sync::Arc::new(#cdr::description::Enumeration {
            name: ::std::string::String::from(#name),
            literals: ::std::vec![#(#literals),*],
            default: #default,
            bit_bound: #bit_bound,
            extensibility: ::core::option::Option::Some(#extensibility),
        }))
    };
    function(cdr, made)
}

pub fn of_newtype(cdr: &Path, name: &str, inner: &Type, max_len: Option<&Expr>, octet: bool) -> TokenStream {
    let aliased = described(cdr, inner, max_len, octet);
    let made = quote! {
        #cdr::description::Type::Alias(::std::sync::Arc::new(#cdr::description::Alias {
            name: ::std::string::String::from(#name),
            aliased: #aliased,
        }))
    };
    function(cdr, made)
}

fn function(cdr: &Path, made: TokenStream) -> TokenStream {
    quote! {
        fn description() -> ::core::option::Option<#cdr::description::Type> {
            #cdr::description::once(::core::any::type_name::<Self>(), || ::core::option::Option::Some(#made))
        }
    }
}

/// The description of a member's type, within its bound and with `octet` for `u8` where it is said; leaves the function with `None` where
/// there is none.
fn described(cdr: &Path, of: &Type, max_len: Option<&Expr>, octet: bool) -> TokenStream {
    let bounded = max_len.map(|max_len| quote!(.bounded(#max_len)));
    let of_octets = octet.then(|| quote!(.of_octets()));
    quote!(<#of as #cdr::Layout>::description()? #bounded #of_octets)
}

fn alternatives(pattern: &Pat) -> Vec<&Pat> {
    match pattern {
        Pat::Or(several) => several.cases.iter().collect(),
        one => vec![one],
    }
}
