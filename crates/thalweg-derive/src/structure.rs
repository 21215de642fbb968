//! Structs.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::{DeriveInput, Error, Fields, Ident, Path, Result};

use crate::attributes::{AutoId, ExtensibilityAttribute, TypeAttributes, has_repr};
use crate::description;
use crate::member::{DerivedMember, names, needs};
use crate::structure_key;
use crate::{ImplHeader, type_name};

/// A struct and its attributes.
pub struct DerivedStructure<'a> {
    pub cdr: &'a Path,
    pub name: String,
    pub extensibility: ExtensibilityAttribute,
    pub members: Vec<DerivedMember>,
    pub plain: bool,
    pub nested: bool,
    pub auto_id: AutoId,
    /// The name in Rust.
    pub ident: &'a Ident,
    pub unbounded_key: bool,
}

pub fn expand(input: &DeriveInput, attributes: &TypeAttributes, fields: &Fields) -> Result<TokenStream> {
    attributes.refuse("a struct", &["bit_bound", "discriminator", "octet"])?;
    if let Some(span) = attributes.key {
        return Err(Error::new(span, "`key` stands on the members that are the key"));
    }
    let structure = DerivedStructure {
        cdr: &attributes.cdr,
        name: type_name(input, attributes),
        extensibility: attributes.extensibility.unwrap_or(ExtensibilityAttribute::Final),
        members: DerivedMember::parse_all(fields.iter(), attributes.auto_id)?,
        plain: attributes.plain.is_some(),
        nested: attributes.nested,
        auto_id: attributes.auto_id,
        ident: &input.ident,
        unbounded_key: attributes.unbounded_key,
    };
    if let Some(member) =
        structure.members.iter().find(|member| !member.optional && needs(&member.value_type, &input.ident))
    {
        let message = "every value would contain another one without end: put it into an `Option` or a `Vec`";
        return Err(Error::new_spanned(&member.value_type, message));
    }
    if let Some(span) = attributes.plain {
        structure.check_plain(input).map_err(|message| Error::new(span, message))?;
    }
    let cdr = structure.cdr;
    let header = ImplHeader::new(input, cdr);
    let is_generic = !input.generics.params.is_empty();
    let plain_check = structure.plain_check(is_generic);
    let key_check = structure_key::check(&structure, is_generic);
    let implementations = [
        header.implement(quote!(#cdr::Layout), structure.layout()),
        header.implement(quote!(#cdr::Encode), structure.encode()),
        header.implement(quote!(#cdr::Decode), structure.decode()),
        header.implement(quote!(#cdr::Topic), structure.topic()),
    ];
    Ok(quote!(#(#implementations)* #plain_check #key_check))
}

impl DerivedStructure<'_> {
    pub fn is_keyed(&self) -> bool {
        self.members.iter().any(|member| member.key)
    }

    /// The key holder's members: those marked as key, or all of them (DDS-XTypes 1.3 §7.6.8.3).
    pub fn key_members(&self) -> Vec<&DerivedMember> {
        let keyed = self.is_keyed();
        self.members.iter().filter(|member| member.key || !keyed).collect()
    }

    pub fn key_members_by_id(&self) -> Vec<&DerivedMember> {
        let mut members = self.key_members();
        members.sort_by_key(|member| member.id);
        members
    }

    /// Runs `body`, an expression over `encoder`, in the frame of the extensibility.
    pub fn frame_encode(&self, body: TokenStream) -> TokenStream {
        match self.extensibility {
            ExtensibilityAttribute::Final => body,
            ExtensibilityAttribute::Appendable => quote!(encoder.appendable_type(|encoder| { #body })),
            ExtensibilityAttribute::Mutable => quote!(encoder.mutable_type(|encoder| { #body })),
        }
    }

    fn layout(&self) -> TokenStream {
        let cdr = self.cdr;
        let key_members = self.key_members_by_id();
        // The constant of a type that needs itself would need itself.
        let is_endless = self.unbounded_key || key_members.iter().any(|member| names(&member.value_type, self.ident));
        let optional_key = structure_key::optional_key(self, is_endless);
        let key_sizes = key_members.into_iter().filter(|_| !is_endless).map(|member| member.key_size(cdr));
        let start = if is_endless { quote!(OVER) } else { quote!(ZERO) };
        let key_size = quote!(const KEY_SIZE: #cdr::KeySize = #cdr::KeySize::#start #(.then(#key_sizes))*;);
        let description = description::of_structure(self);
        if self.extensibility != ExtensibilityAttribute::Final {
            return quote!(#key_size #optional_key #description);
        }
        let min_bytes = self.members.iter().map(|member| match member.optional {
            true => quote!(1),
            false => {
                let value_type = &member.value_type;
                quote!(<#value_type as #cdr::Layout>::MIN_BYTES)
            }
        });
        let plain = self.plain.then(|| {
            let start = self.members.first().map(|member| {
                let value_type = &member.value_type;
                quote!(const START_ALIGNMENT: usize = <#value_type as #cdr::Layout>::START_ALIGNMENT;)
            });
            quote!(const PLAIN: bool = true; #start)
        });
        quote! {
            #plain
            #key_size
            #optional_key
            const MIN_BYTES: usize = 0usize #(.saturating_add(#min_bytes))*;
            #description
        }
    }

    fn encode(&self) -> TokenStream {
        let cdr = self.cdr;
        let result = quote!(::core::result::Result<(), #cdr::EncodeError>);
        let members = self.members.iter().map(|member| self.encode_member(member, &quote!(encode)));
        let by_member = quote!(#(#members)* ::core::result::Result::Ok(()));
        let copied = self.plain.then(|| {
            quote! {
                if #cdr::plain::encode(::core::slice::from_ref(self), encoder) {
                    return ::core::result::Result::Ok(());
                }
            }
        });
        let body = self.frame_encode(quote!(#copied #by_member));
        let elements = (self.plain && self.extensibility == ExtensibilityAttribute::Final).then(|| {
            quote! {
                fn encode_elements(elements: &[Self], encoder: &mut #cdr::Encoder<'_>) -> #result {
                    if #cdr::plain::encode(elements, encoder) {
                        return ::core::result::Result::Ok(());
                    }
                    elements.iter().try_for_each(|element| #cdr::Encode::encode(element, encoder))
                }
            }
        });
        let key = structure_key::encode_key(self);
        let size_hint = self.size_hint();
        let fields = self.fields();
        quote! {
            fn encode(&self, encoder: &mut #cdr::Encoder<'_>) -> #result { #body }
            fn encode_key(&self, encoder: &mut #cdr::Encoder<'_>) -> #result { #key }
            #elements
            fn size_hint(&self) -> usize { #size_hint }
            #fields
        }
    }

    /// The statement that writes one member in its place; `function` writes its value.
    pub fn encode_member(&self, member: &DerivedMember, function: &TokenStream) -> TokenStream {
        let cdr = self.cdr;
        let (field, value_type) = (&member.field, &member.value_type);
        let named = member.named(&self.name);
        let header = member.header(cdr);
        let of_field = member.encode_value(cdr, &quote!(&self.#field), function);
        let of_value = member.encode_value(cdr, &quote!(value), function);
        match (self.extensibility, member.optional) {
            (ExtensibilityAttribute::Mutable, optional) => {
                let (pattern, value) = match optional {
                    true => (quote!(::core::option::Option::Some(value)), quote!(&self.#field)),
                    false => (quote!(value), quote!(&self.#field)),
                };
                let written = quote! {
                    encoder.parameter(#header, <#value_type as #cdr::Layout>::LENGTH_CODE, |encoder| #of_value)
                        #named?;
                };
                match optional {
                    true => quote!(if let #pattern = #value { #written }),
                    false => quote!({ let #pattern = #value; #written }),
                }
            }
            (_, true) => quote! {
                encoder.optional(#header, self.#field.as_ref(), |value, encoder| #of_value)#named?;
            },
            (_, false) => quote!(#of_field #named?;),
        }
    }

    /// The members by their names, for content filters.
    fn fields(&self) -> TokenStream {
        let cdr = self.cdr;
        let values = self.members.iter().map(|member| {
            let (name, field) = (&member.name, &member.field);
            match member.optional {
                true => quote!(#name => self.#field.as_ref().and_then(|value| #cdr::Encode::field(value, rest)),),
                false => quote!(#name => #cdr::Encode::field(&self.#field, rest),),
            }
        });
        let kinds = self.members.iter().map(|member| {
            let (name, value_type) = (&member.name, &member.value_type);
            quote!(#name => <#value_type as #cdr::Encode>::field_kind(rest),)
        });
        let step = quote! {
            let ::core::option::Option::Some((#cdr::FieldStep::Member(name), rest)) = path.split_first() else {
                return ::core::option::Option::None;
            };
        };
        quote! {
            fn field(&self, path: &[#cdr::FieldStep]) -> ::core::option::Option<#cdr::FieldValue<'_>> {
                #step
                match name.as_str() { #(#values)* _ => ::core::option::Option::None }
            }
            fn field_kind(path: &[#cdr::FieldStep]) -> ::core::option::Option<#cdr::FieldKind> {
                #step
                match name.as_str() { #(#kinds)* _ => ::core::option::Option::None }
            }
        }
    }

    fn size_hint(&self) -> TokenStream {
        let cdr = self.cdr;
        if self.plain && self.extensibility == ExtensibilityAttribute::Final {
            return quote!(::core::mem::size_of::<Self>());
        }
        let (frame, header) = match self.extensibility {
            ExtensibilityAttribute::Final => (0usize, 3usize),
            ExtensibilityAttribute::Appendable => (4, 3),
            ExtensibilityAttribute::Mutable => (4, 11),
        };
        let slack = frame + header * self.members.len();
        let members = self.members.iter().map(|member| {
            let field = &member.field;
            match member.optional {
                true => quote!(self.#field.as_ref().map_or(0, #cdr::Encode::size_hint)),
                false => quote!(#cdr::Encode::size_hint(&self.#field)),
            }
        });
        if self.plain {
            return quote!(4 + ::core::mem::size_of::<Self>());
        }
        quote!(#slack #(.saturating_add(#members))*)
    }

    fn decode(&self) -> TokenStream {
        let cdr = self.cdr;
        let result = quote!(::core::result::Result<Self, #cdr::DecodeError>);
        let body = self.decode_body();
        let key = structure_key::decode_key(self);
        let skip = self.skip();
        let in_place = self.decode_in_place();
        let transfer = structure_key::transfer_key(self);
        let fields = self.members.iter().map(|member| &member.field);
        let defaults = self.members.iter().map(|member| member.default_value(cdr));
        let elements = (self.plain && self.extensibility == ExtensibilityAttribute::Final).then(|| {
            quote! {
                fn decode_elements(
                    decoder: &mut #cdr::Decoder<'_>,
                    count: usize,
                ) -> ::core::result::Result<::std::vec::Vec<Self>, #cdr::DecodeError> {
                    if let ::core::option::Option::Some(elements) = #cdr::plain::decode_elements(decoder, count) {
                        return ::core::result::Result::Ok(elements);
                    }
                    decoder.charge(count, ::core::mem::size_of::<Self>())?;
                    (0..count).map(|_| <Self as #cdr::Decode>::decode(decoder)).collect()
                }
            }
        });
        quote! {
            fn decode(decoder: &mut #cdr::Decoder<'_>) -> #result { #body }
            fn decode_key(decoder: &mut #cdr::Decoder<'_>) -> #result { #key }
            fn default_value() -> Self { Self { #(#fields: #defaults),* } }
            #in_place
            #elements
            fn skip(
                decoder: &mut #cdr::Decoder<'_>,
            ) -> ::core::result::Result<(), #cdr::DecodeError> { #skip }
            #transfer
        }
    }

    fn decode_body(&self) -> TokenStream {
        let cdr = self.cdr;
        if self.extensibility == ExtensibilityAttribute::Mutable {
            return self.decode_mutable(|member| member.decode_value(cdr), |_| true);
        }
        let fields = self.members.iter().map(|member| {
            let field = &member.field;
            let value = self.decode_member(member, member.decode_value(cdr));
            quote!(#field: #value)
        });
        let copied = self.plain.then(|| {
            quote! {
                if let ::core::option::Option::Some(value) = #cdr::plain::decode(decoder) {
                    return ::core::result::Result::Ok(value);
                }
            }
        });
        let body = quote!(#copied ::core::result::Result::Ok(Self { #(#fields),* }));
        match self.extensibility {
            ExtensibilityAttribute::Appendable => quote!(decoder.appendable_type(|decoder| { #body })),
            _ => body,
        }
    }

    /// The expression that reads one member of a final or appendable struct, given the one that reads its value.
    pub fn decode_member(&self, member: &DerivedMember, value: TokenStream) -> TokenStream {
        let named = member.named(&self.name);
        let id = member.id;
        let present = match member.optional {
            true => quote!(decoder.optional(#id, |decoder| #value)#named?),
            false => quote!(#value #named?),
        };
        match self.extensibility {
            // A key member is never missing: what names an instance cannot be guessed.
            ExtensibilityAttribute::Appendable if !member.key => {
                let (missing, bytes_min) = (member.default_value(self.cdr), member.bytes_min(self.cdr));
                quote!(if decoder.ends_before(#bytes_min) { #missing } else { #present })
            }
            _ => present,
        }
    }

    /// Reads a mutable struct: of the members that `wanted` names, the value by `read`; of the others, their default.
    pub fn decode_mutable(
        &self,
        read: impl Fn(&DerivedMember) -> TokenStream,
        wanted: impl Fn(&DerivedMember) -> bool,
    ) -> TokenStream {
        let cdr = self.cdr;
        let slots: Vec<_> = (0..self.members.len()).map(|index| format_ident!("member_{index}")).collect();
        let parts = self.members.iter().zip(&slots);
        let declarations = parts
            .clone()
            .filter(|(member, _)| wanted(member))
            .map(|(_, slot)| quote!(let mut #slot = ::core::option::Option::None;));
        let arms = parts.clone().map(|(member, slot)| {
            let (id, named) = (member.id, member.named(&self.name));
            let value = read(member);
            match wanted(member) {
                true => quote!(#id => #slot = ::core::option::Option::Some(#value #named?),),
                false => quote!(#id => {}),
            }
        });
        let fields = parts.map(|(member, slot)| {
            let (field, named) = (&member.field, member.named(&self.name));
            let missing = member.default_value(cdr);
            match (wanted(member), member.optional, member.key) {
                (false, _, _) => quote!(#field: #missing),
                (true, true, _) => quote!(#field: #slot),
                (true, false, true) => {
                    let message = format!("key member {}", member.id);
                    quote!(#field: #slot.ok_or_else(|| decoder.error(#message))#named?)
                }
                (true, false, false) => quote! {
                    #field: match #slot {
                        ::core::option::Option::Some(value) => value,
                        ::core::option::Option::None => #missing,
                    }
                },
            }
        });
        quote! {
            #(#declarations)*
            decoder.mutable_type(|decoder, id| {
                match id {
                    #(#arms)*
                    _ => return ::core::result::Result::Ok(false),
                }
                ::core::result::Result::Ok(true)
            })?;
            ::core::result::Result::Ok(Self { #(#fields),* })
        }
    }

    fn skip(&self) -> TokenStream {
        let cdr = self.cdr;
        let members = self.members.iter().map(|member| self.skip_member(member));
        let by_member = quote!(#(#members)* ::core::result::Result::Ok(()));
        match self.extensibility {
            ExtensibilityAttribute::Final => by_member,
            ExtensibilityAttribute::Appendable => quote! {
                if decoder.representation() == #cdr::Representation::Xcdr2 {
                    return decoder.skip_delimited();
                }
                #by_member
            },
            ExtensibilityAttribute::Mutable => quote!(decoder.mutable_type(|_, _| ::core::result::Result::Ok(true))),
        }
    }

    /// The statement that passes over one member of a final or appendable struct.
    pub fn skip_member(&self, member: &DerivedMember) -> TokenStream {
        let cdr = self.cdr;
        let (id, value_type) = (member.id, &member.value_type);
        let named = member.named(&self.name);
        let skipped = match member.optional {
            true => quote!(decoder.skip_optional(#id, <#value_type as #cdr::Decode>::skip)#named?;),
            false => quote!(<#value_type as #cdr::Decode>::skip(decoder)#named?;),
        };
        match self.extensibility {
            ExtensibilityAttribute::Appendable => {
                let bytes_min = member.bytes_min(cdr);
                quote!(if !decoder.ends_before(#bytes_min) { #skipped })
            }
            _ => skipped,
        }
    }

    fn topic(&self) -> TokenStream {
        let cdr = self.cdr;
        let (name, keyed) = (&self.name, structure_key::keyed(self));
        let extensibility = extensibility(cdr, self.extensibility);
        let fits = match self.is_keyed() {
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

    fn check_plain(&self, input: &DeriveInput) -> core::result::Result<(), &'static str> {
        if !has_repr(&input.attrs, "C") || has_repr(&input.attrs, "packed") || has_repr(&input.attrs, "align") {
            return Err("a plain struct is `#[repr(C)]`, neither packed nor aligned otherwise");
        }
        if self.extensibility == ExtensibilityAttribute::Mutable {
            return Err("a mutable struct is not plain: each member has a header");
        }
        if self.members.iter().any(|member| member.optional || member.max_len.is_some()) {
            return Err("a plain struct has numbers, arrays of numbers and plain structs as members only");
        }
        Ok(())
    }

    /// Compile-time proof that the members are plain; `zerocopy`'s traits prove that there is no padding between them.
    fn plain_check(&self, generic: bool) -> TokenStream {
        if !self.plain || generic {
            return TokenStream::new();
        }
        let cdr = self.cdr;
        let types = self.members.iter().map(|member| &member.value_type);
        let messages = self.members.iter().map(|member| {
            format!("`{}` is not plain: only numbers, arrays of numbers and final plain structs are", member.name)
        });
        quote!(const _: () = { #(::core::assert!(<#types as #cdr::Layout>::PLAIN, #messages);)* };)
    }
}

pub fn extensibility(cdr: &Path, extensibility: ExtensibilityAttribute) -> TokenStream {
    match extensibility {
        ExtensibilityAttribute::Final => quote!(#cdr::Extensibility::Final),
        ExtensibilityAttribute::Appendable => quote!(#cdr::Extensibility::Appendable),
        ExtensibilityAttribute::Mutable => quote!(#cdr::Extensibility::Mutable),
    }
}
