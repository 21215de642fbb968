//! Reading a struct in place of one that is there.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};

use crate::attributes::ExtensibilityAttribute;
use crate::member::DerivedMember;
use crate::structure::DerivedStructure;

impl DerivedStructure<'_> {
    /// The methods of `Decode` that read in place.
    pub fn decode_in_place(&self) -> TokenStream {
        let cdr = self.cdr;
        let result = quote!(::core::result::Result<(), #cdr::DecodeError>);
        let body = match self.extensibility {
            ExtensibilityAttribute::Final => self.in_order(),
            ExtensibilityAttribute::Appendable => {
                let body = self.in_order();
                quote!(decoder.appendable_type(|decoder| { #body }))
            }
            ExtensibilityAttribute::Mutable => self.by_id(),
        };
        let elements = (self.plain && self.extensibility == ExtensibilityAttribute::Final).then(|| {
            quote! {
                fn decode_elements_into(
                    elements: &mut ::std::vec::Vec<Self>,
                    decoder: &mut #cdr::Decoder<'_>,
                    count: usize,
                ) -> #result {
                    if #cdr::plain::decode_elements_into(elements, decoder, count) {
                        return ::core::result::Result::Ok(());
                    }
                    *elements = <Self as #cdr::Decode>::decode_elements(decoder, count)?;
                    ::core::result::Result::Ok(())
                }
            }
        });
        quote! {
            fn decode_into(&mut self, decoder: &mut #cdr::Decoder<'_>) -> #result { #body }
            #elements
        }
    }

    fn in_order(&self) -> TokenStream {
        let cdr = self.cdr;
        let members = self.members.iter().map(|member| {
            let field = &member.field;
            let present = self.read_member(member);
            match self.extensibility {
                // A key member is never missing: what names an instance cannot be guessed.
                ExtensibilityAttribute::Appendable if !member.key => {
                    let (missing, bytes_min) = (member.default_value(cdr), member.bytes_min(cdr));
                    quote!(if decoder.ends_before(#bytes_min) { self.#field = #missing; } else { #present })
                }
                _ => present,
            }
        });
        let copied = self.plain.then(|| {
            quote! {
                if let ::core::option::Option::Some(value) = #cdr::plain::decode(decoder) {
                    *self = value;
                    return ::core::result::Result::Ok(());
                }
            }
        });
        quote!(#copied #(#members)* ::core::result::Result::Ok(()))
    }

    /// The statement that reads one member of a final or appendable struct which is there.
    fn read_member(&self, member: &DerivedMember) -> TokenStream {
        let (field, id, named) = (&member.field, member.id, member.named(&self.name));
        if member.optional {
            let value = member.decode_value(self.cdr);
            return quote!(self.#field = decoder.optional(#id, |decoder| #value)#named?;);
        }
        let read = member.decode_into_field(self.cdr);
        quote!(#read #named?;)
    }

    fn by_id(&self) -> TokenStream {
        let cdr = self.cdr;
        let flags: Vec<_> = (0..self.members.len()).map(|index| format_ident!("has_member_{index}")).collect();
        let parts = self.members.iter().zip(&flags);
        let arms = parts.clone().map(|(member, flag)| {
            let (field, id, named) = (&member.field, member.id, member.named(&self.name));
            let read = match member.optional {
                true => {
                    let value = member.decode_value(cdr);
                    quote!(self.#field = ::core::option::Option::Some(#value #named?);)
                }
                false => {
                    let read = member.decode_into_field(cdr);
                    quote!(#read #named?;)
                }
            };
            quote!(#id => { #read #flag = true; })
        });
        let missing = parts.map(|(member, flag)| {
            let (field, named) = (&member.field, member.named(&self.name));
            let otherwise = if member.key {
                let message = format!("key member {}", member.id);
                quote!(return ::core::result::Result::Err(decoder.error(#message))#named;)
            } else if member.optional {
                quote!(self.#field = ::core::option::Option::None;)
            } else {
                let missing = member.default_value(cdr);
                quote!(self.#field = #missing;)
            };
            quote!(if !#flag { #otherwise })
        });
        quote! {
            #(let mut #flags = false;)*
            decoder.mutable_type(|decoder, id| {
                match id {
                    #(#arms)*
                    _ => return ::core::result::Result::Ok(false),
                }
                ::core::result::Result::Ok(true)
            })?;
            #(#missing)*
            ::core::result::Result::Ok(())
        }
    }
}
