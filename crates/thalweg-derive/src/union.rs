//! Enums with data: IDL's unions.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::spanned::Spanned;
use syn::{DeriveInput, Error, ExprLit, Fields, Ident, Lit, Pat, Path, Result, Type, Variant, parse_quote};

use crate::attributes::{DefaultValue, Extensibility, MemberAttributes, TypeAttributes, VariantAttributes, member_id};
use crate::structure::extensibility;
use crate::{ImplHeader, type_name};

/// A union, with what its attributes say.
struct Union<'a> {
    cdr: &'a Path,
    name: String,
    extensibility: Extensibility,
    discriminator: Type,
    discriminator_is_key: bool,
    branches: Vec<Branch<'a>>,
}

/// One branch: a variant of the enum.
struct Branch<'a> {
    variant: &'a Ident,
    /// The labels that select it; none for a default branch without.
    pattern: Option<&'a Pat>,
    /// The label that is written.
    label: TokenStream,
    default: bool,
    /// The value's type, attributes and member id; none for a branch without member.
    value: Option<(&'a Type, MemberAttributes)>,
    id: u32,
}

pub fn expand(
    input: &DeriveInput,
    attributes: &TypeAttributes,
    variants: &[(&Variant, VariantAttributes)],
) -> Result<TokenStream> {
    attributes.refuse("a union", &["plain", "bit_bound"])?;
    let union = Union {
        cdr: &attributes.cdr,
        name: type_name(input, attributes),
        extensibility: attributes.extensibility.unwrap_or(Extensibility::Final),
        discriminator: attributes.discriminator.clone().unwrap_or_else(|| parse_quote!(i32)),
        discriminator_is_key: attributes.key.is_some(),
        branches: branches(variants)?,
    };
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

fn branches<'a>(variants: &'a [(&'a Variant, VariantAttributes)]) -> Result<Vec<Branch<'a>>> {
    let unused = unused_label(variants);
    let mut branches = Vec::new();
    for (variant, found) in variants {
        let labels = found.labels();
        let label = match (labels.first(), found.default) {
            (Some(label), _) => quote!(#label),
            (None, Some(span)) => unused.clone().ok_or_else(|| {
                Error::new(span, "the label that a default branch is written with cannot be guessed: add `case = …`")
            })?,
            (None, None) => {
                return Err(Error::new_spanned(
                    variant,
                    "a branch of a union needs `#[topic(case = …)]` or `#[topic(default)]`",
                ));
            }
        };
        let value = match &variant.fields {
            Fields::Unit => None,
            Fields::Unnamed(fields) if fields.unnamed.len() == 1 => {
                let field = &fields.unnamed[0];
                let attributes = MemberAttributes::parse(&field.attrs)?;
                check_value(field.span(), &attributes)?;
                Some((&field.ty, attributes))
            }
            other => {
                return Err(Error::new_spanned(other, "a branch of a union has one value: put several into a struct"));
            }
        };
        // 0 is the discriminator's.
        let next_id = branches.last().map_or(1, |previous: &Branch<'_>| previous.id + 1);
        branches.push(Branch {
            variant: &variant.ident,
            pattern: found.case.as_ref(),
            label,
            default: found.default.is_some(),
            value,
            id: found.id.as_ref().map_or(Ok(next_id), member_id)?,
        });
    }
    match branches.iter().filter(|branch| branch.default).nth(1) {
        Some(second) => Err(Error::new_spanned(second.variant, "a union has one default branch")),
        None => Ok(branches),
    }
}

fn check_value(span: proc_macro2::Span, attributes: &MemberAttributes) -> Result<()> {
    let defaulted = !matches!(attributes.default, DefaultValue::OfType);
    if attributes.key.is_some() || attributes.must_understand || attributes.id.is_some() || defaulted {
        return Err(Error::new(span, "the value of a branch takes `max_len` only"));
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

impl Union<'_> {
    fn layout(&self) -> TokenStream {
        let cdr = self.cdr;
        let discriminator = &self.discriminator;
        let label_size = quote!(<#discriminator as #cdr::Layout>::KEY_SIZE);
        let value_sizes =
            self.branches.iter().filter_map(|branch| branch.value.as_ref()).map(
                |(value, attributes)| match &attributes.max_len {
                    None => quote!(<#value as #cdr::Layout>::KEY_SIZE),
                    Some(max_len) => quote!(<#value as #cdr::Bounded>::BOUNDED_KEY_SIZE.at_most(#max_len)),
                },
            );
        let key_size = match self.discriminator_is_key {
            true => label_size,
            false => quote!(#label_size.then(#cdr::KeySize::ZERO #(.or(#value_sizes))*)),
        };
        let framed = match self.extensibility {
            Extensibility::Final => quote!(const MIN_BYTES: usize = <#discriminator as #cdr::Layout>::MIN_BYTES;),
            _ => quote!(const LENGTH_CODE: #cdr::LengthCode = #cdr::LengthCode::OwnBytes;),
        };
        quote!(const KEY_SIZE: #cdr::KeySize = #key_size; #framed)
    }

    fn encode(&self) -> TokenStream {
        let cdr = self.cdr;
        let result = quote!(::core::result::Result<(), #cdr::EncodeError>);
        let whole = self.frame_encode(self.encode_branches(&quote!(encode)));
        let key = match self.discriminator_is_key {
            false => self.frame_encode(self.encode_branches(&quote!(encode_key))),
            true => self.frame_encode(self.encode_label()),
        };
        let discriminator = &self.discriminator;
        let size_hints = self.branches.iter().map(|branch| {
            let variant = branch.variant;
            match branch.value {
                None => quote!(Self::#variant => 0),
                Some(_) => quote!(Self::#variant(value) => #cdr::Encode::size_hint(value)),
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
            Extensibility::Final => body,
            Extensibility::Appendable => quote!(encoder.appendable_type(|encoder| { #body })),
            Extensibility::Mutable => quote!(encoder.mutable_type(|encoder| { #body })),
        }
    }

    /// Writes the label alone.
    fn encode_label(&self) -> TokenStream {
        let arms = self.branches.iter().map(|branch| {
            let (pattern, label) = (self.any_value(branch), self.write_label(branch));
            quote!(#pattern => #label)
        });
        quote!(match self { #(#arms),* })
    }

    /// Writes label and value; `function` writes the value.
    fn encode_branches(&self, function: &TokenStream) -> TokenStream {
        let cdr = self.cdr;
        let arms = self.branches.iter().map(|branch| {
            let (variant, label, id) = (branch.variant, self.write_label(branch), branch.id);
            let Some((_, attributes)) = &branch.value else {
                return quote!(Self::#variant => #label);
            };
            let name = variant.to_string();
            let type_name = &self.name;
            let check =
                attributes.max_len.as_ref().map(|max_len| quote!(#cdr::Bounded::check_bound(value, #max_len)?;));
            let plain = quote!({ #check #cdr::Encode::#function(value, encoder) });
            let value = match self.extensibility {
                Extensibility::Mutable => quote! {
                    if encoder.is_key_hash() {
                        #plain
                    } else {
                        let header = #cdr::Member { id: #id, must_understand: false };
                        encoder.parameter(header, #cdr::LengthCode::Stated, |encoder| #plain)
                    }
                },
                _ => plain,
            };
            quote! {
                Self::#variant(value) => {
                    #label?;
                    (|| #value)().map_err(|error| error.in_member(#type_name, #name))
                }
            }
        });
        quote!(match self { #(#arms),* })
    }

    /// The expression that writes a branch's label.
    fn write_label(&self, branch: &Branch<'_>) -> TokenStream {
        let cdr = self.cdr;
        let (label, discriminator) = (&branch.label, &self.discriminator);
        let plain = quote!(<#discriminator as #cdr::Encode>::encode(&(#label), encoder));
        match self.extensibility {
            Extensibility::Mutable => quote! {
                if encoder.is_key_hash() {
                    #plain
                } else {
                    let header = #cdr::Member { id: 0, must_understand: true };
                    encoder.parameter(header, #cdr::LengthCode::Stated, |encoder| #plain)
                }
            },
            _ => plain,
        }
    }

    fn any_value(&self, branch: &Branch<'_>) -> TokenStream {
        let variant = branch.variant;
        if branch.value.is_some() { quote!(Self::#variant(_)) } else { quote!(Self::#variant) }
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
        let discriminator = &self.discriminator;
        let cdr = self.cdr;
        if self.extensibility == Extensibility::Mutable {
            return self.decode_mutable(function);
        }
        let arms = self.branch_arms(|branch| match &branch.value {
            None => None,
            Some((value_type, attributes)) => {
                let read = read_value(cdr, value_type, attributes, function);
                Some(match self.extensibility {
                    Extensibility::Appendable => quote! {
                        if decoder.is_at_end() {
                            ::core::result::Result::Ok(<#value_type as #cdr::Decode>::default_value())
                        } else {
                            #read
                        }
                    },
                    _ => read,
                })
            }
        });
        let body = quote! {
            let label_offset = decoder.offset();
            let label = <#discriminator as #cdr::Decode>::decode(decoder)?;
            match label { #arms }
        };
        match self.extensibility {
            Extensibility::Appendable => quote!(decoder.appendable_type(|decoder| { #body })),
            _ => body,
        }
    }

    /// The members of a mutable union come in any order, and the label tells which one counts.
    fn decode_mutable(&self, function: &TokenStream) -> TokenStream {
        let cdr = self.cdr;
        let (discriminator, name) = (&self.discriminator, &self.name);
        let arms = self.branch_arms(|branch| {
            let (value_type, attributes) = branch.value.as_ref()?;
            let slot = format_ident!("place_{}", branch.id);
            let read = read_value(cdr, value_type, attributes, function);
            Some(quote! {
                match #slot {
                    ::core::option::Option::Some(mut place) => {
                        let decoder = &mut place;
                        #read
                    }
                    ::core::option::Option::None => {
                        ::core::result::Result::Ok(<#value_type as #cdr::Decode>::default_value())
                    }
                }
            })
        });
        let ids: Vec<_> =
            self.branches.iter().filter(|branch| branch.value.is_some()).map(|branch| branch.id).collect();
        let slots: Vec<_> = ids.iter().map(|id| format_ident!("place_{id}")).collect();
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
            let label = label.ok_or_else(|| decoder.error("the discriminator, member 0").in_member(#name, "0"))?;
            match label { #arms }
        }
    }

    /// A `match` over `label`; `read` gives the expression that reads a branch's value.
    fn branch_arms(&self, read: impl Fn(&Branch<'_>) -> Option<TokenStream>) -> TokenStream {
        let cdr = self.cdr;
        let type_name = &self.name;
        let make = |branch: &Branch<'_>| {
            let variant = branch.variant;
            let name = variant.to_string();
            match read(branch) {
                None => quote!(::core::result::Result::Ok(Self::#variant)),
                Some(value) => quote! {
                    { #value }.map(Self::#variant).map_err(|error| error.in_member(#type_name, #name))
                },
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
        let cdr = self.cdr;
        let discriminator = &self.discriminator;
        let arms = self.branch_arms(|branch| {
            let (value_type, _) = branch.value.as_ref()?;
            Some(quote! {
                ::core::result::Result::<_, #cdr::DecodeError>::Ok(<#value_type as #cdr::Decode>::default_value())
            })
        });
        let label = quote!(<#discriminator as #cdr::Decode>::decode(decoder)?);
        let read = match self.extensibility {
            Extensibility::Final => quote!(let label = #label;),
            Extensibility::Appendable => quote! {
                let label = decoder.appendable_type(|decoder| <#discriminator as #cdr::Decode>::decode(decoder))?;
            },
            Extensibility::Mutable => quote! {
                let mut label = ::core::option::Option::None;
                decoder.mutable_type(|decoder, id| {
                    if id == 0 {
                        label = ::core::option::Option::Some(#label);
                    }
                    ::core::result::Result::Ok(true)
                })?;
                let label = label.ok_or_else(|| decoder.error("the discriminator, member 0"))?;
            },
        };
        quote!(let label_offset = decoder.offset(); #read match label { #arms })
    }

    /// The branch of the discriminator's own default, or the first one.
    fn default_value(&self) -> TokenStream {
        let cdr = self.cdr;
        let discriminator = &self.discriminator;
        let make = |branch: &Branch<'_>| {
            let variant = branch.variant;
            match &branch.value {
                None => quote!(Self::#variant),
                Some((value_type, _)) => quote!(Self::#variant(<#value_type as #cdr::Decode>::default_value())),
            }
        };
        let arms = self.branches.iter().filter(|branch| !branch.default).map(|branch| {
            let (pattern, made) = (branch.pattern, make(branch));
            quote!(#pattern => #made,)
        });
        let otherwise = self.branches.iter().find(|branch| branch.default).or(self.branches.first()).map(make);
        quote!(match <#discriminator as #cdr::Decode>::default_value() { #(#arms)* _ => #otherwise, })
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

fn read_value(cdr: &Path, value_type: &Type, attributes: &MemberAttributes, function: &TokenStream) -> TokenStream {
    match &attributes.max_len {
        None => quote!(<#value_type as #cdr::Decode>::#function(decoder)),
        Some(max_len) => quote!(<#value_type as #cdr::Bounded>::decode_bounded(decoder, #max_len)),
    }
}
