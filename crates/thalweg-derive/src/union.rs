//! Enums with data: IDL's unions.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::{DeriveInput, Error, Ident, Path, Result, Type, Variant, parse_quote};

use crate::attributes::{AutoId, ExtensibilityAttribute, TypeAttributes, VariantAttributes};
use crate::branch::{Branch, Wanted, parse_branches};
use crate::description;
use crate::member::{has_octets, names, needs};
use crate::structure::extensibility;
use crate::{ImplHeader, type_name};

/// A union and its attributes.
pub struct DerivedUnion<'a> {
    pub cdr: &'a Path,
    pub name: String,
    pub extensibility: ExtensibilityAttribute,
    pub discriminator: Type,
    pub discriminator_is_key: bool,
    /// Whether the discriminator is IDL's `octet`.
    pub octet: bool,
    pub branches: Vec<Branch<'a>>,
    pub nested: bool,
    pub auto_id: AutoId,
    /// The name in Rust.
    pub ident: &'a Ident,
    pub unbounded_key: bool,
}

pub fn expand(
    input: &DeriveInput,
    attributes: &TypeAttributes,
    variants: &[(&Variant, VariantAttributes)],
) -> Result<TokenStream> {
    attributes.refuse("a union", &["plain", "bit_bound"])?;
    let extensibility = attributes.extensibility.unwrap_or(ExtensibilityAttribute::Final);
    let discriminator = attributes.discriminator.clone().unwrap_or_else(|| parse_quote!(i32));
    let union = DerivedUnion {
        cdr: &attributes.cdr,
        name: type_name(input, attributes),
        extensibility,
        octet: has_octets(attributes.octet, &discriminator)?,
        discriminator,
        discriminator_is_key: attributes.key.is_some(),
        branches: parse_branches(variants, extensibility, attributes.auto_id)?,
        nested: attributes.nested,
        auto_id: attributes.auto_id,
        ident: &input.ident,
        unbounded_key: attributes.unbounded_key,
    };
    if !union.branches.is_empty() && union.branches.iter().all(|branch| union.is_endless(branch)) {
        return Err(Error::new_spanned(&input.ident, "every value would contain another one without end"));
    }
    let cdr = union.cdr;
    let header = ImplHeader::new(input, cdr);
    let implementations = [
        header.implement(quote!(#cdr::Layout), union.layout()),
        header.implement(quote!(#cdr::Encode), union.encode()),
        header.implement(quote!(#cdr::Decode), union.decode()),
        header.implement(quote!(#cdr::Topic), union.topic()),
    ];
    Ok(quote!(#(#implementations)*))
}

impl DerivedUnion<'_> {
    fn layout(&self) -> TokenStream {
        let cdr = self.cdr;
        let discriminator = &self.discriminator;
        let label_size = quote!(<#discriminator as #cdr::Layout>::KEY_SIZE);
        let values = || self.branches.iter().filter_map(|branch| branch.value.as_ref());
        let is_endless = self.unbounded_key || values().any(|value| names(value.of_type, self.ident));
        let value_sizes = values().map(|value| value.key_size(cdr));
        let optional_key = (!self.discriminator_is_key && !is_endless).then(|| {
            let types = values().map(|value| value.of_type);
            quote!(const KEY_HAS_OPTIONAL: bool = false #(|| <#types as #cdr::Layout>::KEY_HAS_OPTIONAL)*;)
        });
        let key_size = match self.discriminator_is_key {
            true => label_size,
            // The constant of a type that needs itself would need itself.
            false if is_endless => quote!(#cdr::KeySize::OVER),
            false => quote!(#label_size.then(#cdr::KeySize::ZERO #(.or(#value_sizes))*)),
        };
        let min_bytes = (self.extensibility == ExtensibilityAttribute::Final)
            .then(|| quote!(const MIN_BYTES: usize = <#discriminator as #cdr::Layout>::MIN_BYTES;));
        let description = description::of_union(self);
        quote!(const KEY_SIZE: #cdr::KeySize = #key_size; #optional_key #min_bytes #description)
    }

    fn encode(&self) -> TokenStream {
        let cdr = self.cdr;
        let result = quote!(::core::result::Result<(), #cdr::EncodeError>);
        let whole = self.frame_encode(self.encode_branches(&quote!(encode)));
        let key = match self.discriminator_is_key {
            false => self.frame_encode(self.encode_branches(&quote!(encode_key))),
            true => self.frame_encode(self.encode_label_alone()),
        };
        let discriminator = &self.discriminator;
        let size_hints = self.branches.iter().map(|branch| {
            let pattern = branch.destructure(Wanted { label: false, value: true });
            match branch.value {
                None => quote!(#pattern => 0),
                Some(_) => quote!(#pattern => #cdr::Encode::size_hint(value)),
            }
        });
        quote! {
            fn encode(&self, encoder: &mut #cdr::Encoder<'_>) -> #result { #whole }
            fn encode_key(&self, encoder: &mut #cdr::Encoder<'_>) -> #result { #key }
            fn size_hint(&self) -> usize {
                let value = match self { #(#size_hints),* };
                value.saturating_add(::core::mem::size_of::<#discriminator>() + 8)
            }
        }
    }

    fn frame_encode(&self, body: TokenStream) -> TokenStream {
        match self.extensibility {
            ExtensibilityAttribute::Final => body,
            ExtensibilityAttribute::Appendable => quote!(encoder.appendable_type(|encoder| { #body })),
            ExtensibilityAttribute::Mutable => quote!(encoder.mutable_type(|encoder| { #body })),
        }
    }

    fn encode_label_alone(&self) -> TokenStream {
        let arms = self.branches.iter().map(|branch| {
            let pattern = branch.destructure(Wanted { label: true, value: false });
            let label = self.write_label(branch);
            quote!(#pattern => { #label })
        });
        quote!(match self { #(#arms),* })
    }

    /// Writes label and value; `function` writes the value.
    fn encode_branches(&self, function: &TokenStream) -> TokenStream {
        let arms = self.branches.iter().map(|branch| {
            let pattern = branch.destructure(Wanted { label: true, value: true });
            let label = self.write_label(branch);
            match &branch.value {
                None => quote!(#pattern => { #label }),
                Some(_) => {
                    let value = self.write_value(branch, function);
                    quote!(#pattern => { #label?; #value })
                }
            }
        });
        quote!(match self { #(#arms),* })
    }

    /// The expression that writes `value`, as a member of its own in a mutable union.
    fn write_value(&self, branch: &Branch<'_>, function: &TokenStream) -> TokenStream {
        let cdr = self.cdr;
        let (type_name, name, id) = (&self.name, &branch.name, branch.id);
        let check = branch
            .value
            .as_ref()
            .and_then(|value| value.max_len.as_ref())
            .map(|max_len| quote!(#cdr::Bounded::check_bound(value, #max_len)?;));
        let plain = quote!(#cdr::Encode::#function(value, encoder));
        let written = self.as_parameter(&quote!(#cdr::Member { id: #id, must_understand: false }), plain);
        quote!((|| { #check #written })().map_err(|error| error.in_member(#type_name, #name)))
    }

    /// The expression that writes a branch's label, as a member of its own in a mutable union.
    fn write_label(&self, branch: &Branch<'_>) -> TokenStream {
        let cdr = self.cdr;
        let discriminator = &self.discriminator;
        let header = quote!(#cdr::Member { id: 0, must_understand: true });
        if !branch.captures_label {
            let label = &branch.label;
            return self.as_parameter(&header, quote!(<#discriminator as #cdr::Encode>::encode(&(#label), encoder)));
        }
        let others = self.branches.iter().filter(|other| !other.captures_label).filter_map(|other| other.pattern);
        let written = self.as_parameter(&header, quote!(#cdr::Encode::encode(label, encoder)));
        let (type_name, name) = (&self.name, &branch.name);
        quote! {
            match label {
                #(#others => ::core::result::Result::Err(
                    #cdr::EncodeError::new("the label is that of another branch").in_member(#type_name, #name)
                ),)*
                label => { #written }
            }
        }
    }

    fn as_parameter(&self, header: &TokenStream, written: TokenStream) -> TokenStream {
        if self.extensibility != ExtensibilityAttribute::Mutable {
            return written;
        }
        let cdr = self.cdr;
        quote! {
            if encoder.is_key_hash() {
                #written
            } else {
                encoder.parameter(#header, #cdr::LengthCode::Stated, |encoder| #written)
            }
        }
    }

    fn decode(&self) -> TokenStream {
        let cdr = self.cdr;
        let result = quote!(::core::result::Result<Self, #cdr::DecodeError>);
        let whole = self.decode_as(&quote!(decode));
        let key = match self.discriminator_is_key {
            false => self.decode_as(&quote!(decode_key)),
            true => self.decode_label_as_key(),
        };
        let default = self.default_value();
        quote! {
            fn decode(decoder: &mut #cdr::Decoder<'_>) -> #result { #whole }
            fn decode_key(decoder: &mut #cdr::Decoder<'_>) -> #result { #key }
            fn default_value() -> Self { #default }
        }
    }

    fn decode_as(&self, function: &TokenStream) -> TokenStream {
        let (cdr, discriminator) = (self.cdr, &self.discriminator);
        if self.extensibility == ExtensibilityAttribute::Mutable {
            return self.decode_mutable(function);
        }
        let arms = self.branch_arms(|branch| {
            let value = branch.value.as_ref()?;
            let (read, missing) = (value.read(cdr, function), value.default_value(cdr));
            Some(match self.extensibility {
                ExtensibilityAttribute::Appendable => {
                    let of_type = value.of_type;
                    let bytes_min = quote!(<#of_type as #cdr::Layout>::MIN_BYTES);
                    quote!(if decoder.ends_before(#bytes_min) { #missing } else { #read })
                }
                _ => read,
            })
        });
        let body = quote! {
            let label_offset = decoder.offset();
            let label = <#discriminator as #cdr::Decode>::decode(decoder)?;
            match label { #arms }
        };
        match self.extensibility {
            ExtensibilityAttribute::Appendable => quote!(decoder.appendable_type(|decoder| { #body })),
            _ => body,
        }
    }

    /// The members of a mutable union come in any order, and the label tells which one counts.
    fn decode_mutable(&self, function: &TokenStream) -> TokenStream {
        let (cdr, discriminator) = (self.cdr, &self.discriminator);
        let arms = self.branch_arms(|branch| {
            let value = branch.value.as_ref()?;
            let (read, missing) = (value.read(cdr, function), value.default_value(cdr));
            let slot = format_ident!("place_{}", branch.id);
            Some(quote! {
                match #slot {
                    ::core::option::Option::Some(place) => decoder.at_place(place, |decoder| #read),
                    ::core::option::Option::None => #missing,
                }
            })
        });
        let ids: Vec<_> =
            self.branches.iter().filter(|branch| branch.value.is_some()).map(|branch| branch.id).collect();
        let slots: Vec<_> = ids.iter().map(|id| format_ident!("place_{id}")).collect();
        let label_missing = self.label_missing();
        quote! {
            let label_offset = decoder.offset();
            let mut label = ::core::option::Option::None;
            #(let mut #slots = ::core::option::Option::None;)*
            decoder.mutable_type(|decoder, id| {
                match id {
                    0 => label = ::core::option::Option::Some(<#discriminator as #cdr::Decode>::decode(decoder)?),
                    #(#ids => #slots = ::core::option::Option::Some(decoder.clone()),)*
                    _ => return ::core::result::Result::Ok(false),
                }
                ::core::result::Result::Ok(true)
            })?;
            #label_missing
            match label { #arms }
        }
    }

    fn label_missing(&self) -> TokenStream {
        let name = &self.name;
        quote! {
            let label = label.ok_or_else(|| {
                decoder.error("a discriminator among the members").in_member(#name, "discriminator")
            })?;
        }
    }

    /// The arms of a `match` over `label`; `read` gives the expression that reads a branch's value.
    fn branch_arms(&self, read: impl Fn(&Branch<'_>) -> Option<TokenStream>) -> TokenStream {
        let cdr = self.cdr;
        let type_name = &self.name;
        let make = |branch: &Branch<'_>| match read(branch) {
            None => {
                let made = branch.construct(None);
                quote!(::core::result::Result::Ok(#made))
            }
            Some(value) => {
                let made = branch.construct(Some(quote!(value)));
                let name = &branch.name;
                quote!({ #value }.map(|value| #made).map_err(|error| error.in_member(#type_name, #name)))
            }
        };
        let arms = self.branches.iter().filter(|branch| !branch.default).map(|branch| {
            let (pattern, made) = (branch.pattern, make(branch));
            quote!(#pattern => #made,)
        });
        let expected = format!("a label of {type_name}");
        let otherwise = match self.branches.iter().find(|branch| branch.default) {
            Some(branch) => make(branch),
            None => quote!(::core::result::Result::Err(#cdr::DecodeError::new(label_offset, #expected))),
        };
        quote!(#(#arms)* _ => #otherwise,)
    }

    fn decode_label_as_key(&self) -> TokenStream {
        let (cdr, discriminator) = (self.cdr, &self.discriminator);
        let arms = self.branch_arms(|branch| branch.value.as_ref().map(|value| value.default_value(cdr)));
        let label = quote!(<#discriminator as #cdr::Decode>::decode(decoder));
        let read = match self.extensibility {
            ExtensibilityAttribute::Final => quote!(let label = #label?;),
            ExtensibilityAttribute::Appendable => quote!(let label = decoder.appendable_type(|decoder| #label)?;),
            ExtensibilityAttribute::Mutable => {
                let label_missing = self.label_missing();
                quote! {
                    let mut label = ::core::option::Option::None;
                    decoder.mutable_type(|decoder, id| {
                        if id == 0 {
                            label = ::core::option::Option::Some(#label?);
                        }
                        ::core::result::Result::Ok(true)
                    })?;
                    #label_missing
                }
            }
        };
        quote!(let label_offset = decoder.offset(); #read match label { #arms })
    }

    fn is_endless(&self, branch: &Branch<'_>) -> bool {
        branch.value.as_ref().is_some_and(|value| needs(value.of_type, self.ident))
    }

    /// The branch of the discriminator's own default; if that selects none, the default branch, or the first one. Branches that hold
    /// another union of the type are passed over: their default would not end.
    fn default_value(&self) -> TokenStream {
        let (cdr, discriminator) = (self.cdr, &self.discriminator);
        let make = |branch: &Branch<'_>| {
            branch.construct(branch.value.as_ref().map(|value| {
                let value_type = value.of_type;
                quote!(<#value_type as #cdr::Decode>::default_value())
            }))
        };
        let ends = |branch: &&Branch<'_>| !self.is_endless(branch);
        let arms = self.branches.iter().filter(|branch| !branch.default).filter(ends).map(|branch| {
            let (pattern, made) = (branch.pattern, make(branch));
            quote!(#pattern => #made,)
        });
        let mut finite = self.branches.iter().filter(ends);
        let otherwise = finite.clone().find(|branch| branch.default).or_else(|| finite.next()).map(make);
        quote! {
            let label = <#discriminator as #cdr::Decode>::default_value();
            match label { #(#arms)* _ => #otherwise, }
        }
    }

    fn topic(&self) -> TokenStream {
        let cdr = self.cdr;
        let (name, keyed) = (&self.name, self.discriminator_is_key);
        let extensibility = extensibility(cdr, self.extensibility);
        let fits = match keyed {
            true => quote!(<Self as #cdr::Layout>::KEY_SIZE.fits_key_hash()),
            false => quote!(true),
        };
        quote! {
            const TYPE_NAME: &'static str = #name;
            const KEYED: bool = #keyed;
            const EXTENSIBILITY: #cdr::Extensibility = #extensibility;
            const KEY_FITS_HASH: bool = #fits;
        }
    }
}
