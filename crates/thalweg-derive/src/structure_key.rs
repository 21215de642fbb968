//! The key of a struct: written, read back, and copied from a payload to a key hash.

use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::spanned::Spanned;

use crate::attributes::ExtensibilityAttribute;
use crate::member::DerivedMember;
use crate::structure::DerivedStructure;

/// The body of `encode_key`: in a payload, the key members as the struct has them; for a key hash, by their ids and
/// without frame.
pub fn encode_key(structure: &DerivedStructure<'_>) -> TokenStream {
    let cdr = structure.cdr;
    let ordered = is_ordered(structure);
    let in_payload = structure.key_members().into_iter().map(|member| {
        let function = if member.optional { quote!(encode) } else { quote!(encode_key) };
        structure.encode_member(member, &function)
    });
    let payload = structure.frame_encode(quote!(#(#in_payload)* ::core::result::Result::Ok(())));
    if structure.extensibility != ExtensibilityAttribute::Mutable && ordered {
        return payload;
    }
    let by_id = structure.key_members_by_id().into_iter().map(|member| {
        let (field, named) = (&member.field, member.named(&structure.name));
        let header = member.header(cdr);
        match member.optional {
            true => {
                let value = member.encode_value(cdr, &quote!(value), &quote!(encode));
                quote!(encoder.optional(#header, self.#field.as_ref(), |value, encoder| #value)#named?;)
            }
            false => {
                let value = member.encode_value(cdr, &quote!(&self.#field), &quote!(encode_key));
                quote!(#value #named?;)
            }
        }
    });
    quote! {
        if encoder.is_key_hash() {
            #(#by_id)*
            return ::core::result::Result::Ok(());
        }
        #payload
    }
}

/// The body of `decode_key`.
pub fn decode_key(structure: &DerivedStructure<'_>) -> TokenStream {
    let cdr = structure.cdr;
    let keyed = structure.is_keyed();
    let wanted = |member: &DerivedMember| member.key || !keyed;
    let read = |member: &DerivedMember| match member.optional {
        true => member.decode_value(cdr),
        false => member.decode_key_value(cdr),
    };
    if structure.extensibility == ExtensibilityAttribute::Mutable {
        return structure.decode_mutable(read, wanted);
    }
    let fields = structure.members.iter().map(|member| {
        let field = &member.field;
        let value = match wanted(member) {
            true => structure.decode_member(member, read(member)),
            false => member.default_value(cdr),
        };
        quote!(#field: #value)
    });
    let body = quote!(::core::result::Result::Ok(Self { #(#fields),* }));
    match structure.extensibility {
        ExtensibilityAttribute::Appendable => quote!(decoder.appendable_type(|decoder| { #body })),
        _ => body,
    }
}

/// `transfer_key`, where the key can be copied member by member; nothing where it must be made first.
pub fn transfer_key(structure: &DerivedStructure<'_>) -> TokenStream {
    let cdr = structure.cdr;
    if structure.key_members().iter().any(|member| member.optional) {
        return TokenStream::new();
    }
    let body = match structure.extensibility {
        ExtensibilityAttribute::Mutable => transfer_mutable(structure),
        _ if is_ordered(structure) => transfer_in_order(structure),
        _ => return TokenStream::new(),
    };
    quote! {
        fn transfer_key(
            decoder: &mut #cdr::Decoder<'_>,
            encoder: &mut #cdr::Encoder<'_>,
        ) -> ::core::result::Result<(), #cdr::DecodeError> { #body }
    }
}

/// Key members are copied and others skipped as they come; behind the last key member, only a nested struct goes on.
fn transfer_in_order(structure: &DerivedStructure<'_>) -> TokenStream {
    let cdr = structure.cdr;
    let keyed = structure.is_keyed();
    let last_key = structure.members.iter().rposition(|member| member.key || !keyed);
    let statements: Vec<_> = structure
        .members
        .iter()
        .map(|member| {
            let named = member.named(&structure.name);
            if member.key || !keyed {
                let value = member.transfer_key(cdr, &quote!(decoder));
                let transferred = quote!(#value #named?;);
                if member.key || structure.extensibility != ExtensibilityAttribute::Appendable {
                    return transferred;
                }
                let missing = encode_default(structure, member);
                let bytes_min = member.bytes_min(cdr);
                return quote!(if decoder.ends_before(#bytes_min) { #missing } else { #transferred });
            }
            let skipped = structure.skip_member(member);
            quote!(if !decoder.is_key_only() { #skipped })
        })
        .collect();
    let (upto_key, rest) = statements.split_at(last_key.map_or(0, |index| index + 1));
    let rest = (!rest.is_empty()).then(|| quote!(if !outermost { #(#rest)* }));
    let body = quote!(#(#upto_key)* #rest ::core::result::Result::Ok(()));
    let outermost =
        if rest.is_some() { quote!(let outermost = decoder.begin_key();) } else { quote!(decoder.begin_key();) };
    match structure.extensibility {
        ExtensibilityAttribute::Appendable => quote!(#outermost decoder.appendable_type(|decoder| { #body })),
        _ => quote!(#outermost #body),
    }
}

/// Members come in any order: the places of the key members are noted, then copied by id.
fn transfer_mutable(structure: &DerivedStructure<'_>) -> TokenStream {
    let cdr = structure.cdr;
    let members = structure.key_members_by_id();
    let slots: Vec<_> = (0..members.len()).map(|index| format_ident!("member_{index}")).collect();
    let ids = members.iter().map(|member| member.id);
    let others = structure.members.iter().map(|member| member.id).filter(|id| members.iter().all(|key| key.id != *id));
    let transfers = members.iter().zip(&slots).map(|(member, slot)| {
        let (value, named) = (member.transfer_key(cdr, &quote!(&mut place)), member.named(&structure.name));
        let message = format!("key member {}", member.id);
        // A struct without key members is one key as a whole, and its members may be missing like any others.
        let missing = match structure.is_keyed() {
            true => quote!(return ::core::result::Result::Err(decoder.error(#message))#named),
            false => encode_default(structure, member),
        };
        quote! {
            match #slot {
                ::core::option::Option::Some(mut place) => #value #named?,
                ::core::option::Option::None => #missing,
            }
        }
    });
    let other_arm = {
        let others: Vec<_> = others.collect();
        (!others.is_empty()).then(|| quote!(#(#others)|* => {}))
    };
    quote! {
        decoder.begin_key();
        #(let mut #slots = ::core::option::Option::None;)*
        decoder.mutable_type(|decoder, id| {
            match id {
                #(#ids => #slots = ::core::option::Option::Some(decoder.clone()),)*
                #other_arm
                _ => return ::core::result::Result::Ok(false),
            }
            ::core::result::Result::Ok(true)
        })?;
        #(#transfers)*
        ::core::result::Result::Ok(())
    }
}

/// `KEY_HAS_OPTIONAL`, where it is not false. Of a key that is `endless` only the structure itself is looked at: the constant of a type
/// that needs itself would need itself.
pub fn optional_key(structure: &DerivedStructure<'_>, endless: bool) -> Option<TokenStream> {
    let cdr = structure.cdr;
    if structure.is_keyed() {
        return None;
    }
    if structure.members.iter().any(|member| member.optional) {
        return Some(quote!(
            const KEY_HAS_OPTIONAL: bool = true;
        ));
    }
    let types = structure.members.iter().filter(|_| !endless).map(|member| &member.value_type);
    Some(quote!(const KEY_HAS_OPTIONAL: bool = false #(|| <#types as #cdr::Layout>::KEY_HAS_OPTIONAL)*;))
}

/// The value of `KEYED`, which does not compile for a key with an optional member within (DDS-XTypes 1.3 §7.2.2.4.4.4.8).
pub fn keyed(structure: &DerivedStructure<'_>) -> TokenStream {
    let cdr = structure.cdr;
    if !structure.is_keyed() {
        return quote!(false);
    }
    let checks = structure.members.iter().filter(|member| member.key).map(|member| {
        let value_type = &member.value_type;
        let message = format!(
            "the key member `{}` of {} has an optional member within, which a key cannot have: make that one required, \
             or mark the members of its struct that are the key",
            member.name, structure.name
        );
        quote_spanned! {Span::call_site().located_at(value_type.span())=>
            ::core::assert!(!<#value_type as #cdr::Layout>::KEY_HAS_OPTIONAL, #message);
        }
    });
    quote!({ #(#checks)* true })
}

/// What makes the compiler look at `KEYED` also where no topic of the type is made.
pub fn check(structure: &DerivedStructure<'_>, generic: bool) -> Option<TokenStream> {
    let (cdr, ident) = (structure.cdr, structure.ident);
    (structure.is_keyed() && !generic).then(|| quote!(const _: bool = <#ident as #cdr::Topic>::KEYED;))
}

/// Writes the default of a member that is missing from a struct that is a key as a whole.
fn encode_default(structure: &DerivedStructure<'_>, member: &DerivedMember) -> TokenStream {
    let cdr = structure.cdr;
    let (value_type, named) = (&member.value_type, member.named(&structure.name));
    let default = member.default_value(cdr);
    quote! {
        <#value_type as #cdr::Encode>::encode_key(&#default, encoder)
            .map_err(|error| decoder.error(::std::string::ToString::to_string(&error)))#named?
    }
}

/// Whether the key members stand in the order of their ids.
fn is_ordered(structure: &DerivedStructure<'_>) -> bool {
    structure.key_members().is_sorted_by_key(|member| member.id)
}
