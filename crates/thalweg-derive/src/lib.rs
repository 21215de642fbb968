//! `#[derive(Topic)]`: makes a Rust type a DDS type.
#![forbid(unsafe_code)]

#[cfg(test)]
mod tests;

mod attributes;
mod branch;
mod description;
mod enumeration;
mod in_place;
mod member;
mod newtype;
mod structure;
mod structure_key;
mod union;

use proc_macro::TokenStream;
use quote::quote;
use syn::{Data, DeriveInput, Error, Fields, Ident, Result, parse_macro_input};

use crate::attributes::{TypeAttributes, VariantAttributes};

/// Implements `Layout`, `Encode`, `Decode` and, for structs and unions, `Topic` of thalweg-cdr.
///
/// A struct is an IDL struct, an enum without data an IDL enum, an enum with data an IDL union, and a newtype a typedef:
/// the same on the wire as its inner type. An `Option<…>` member is optional.
///
/// ```
/// use thalweg_derive::Topic;
///
/// #[derive(Topic)]
/// # #[topic(crate = "thalweg_cdr")]
/// #[topic(extensibility = "appendable")]
/// struct ShapeType {
///     #[topic(key, max_len = 128)]
///     color: String,
///     x: i32,
///     y: i32,
///     shapesize: i32,
/// }
///
/// let shape = ShapeType { color: "BLUE".into(), x: 1, y: 2, shapesize: 30 };
/// let mut payload = Vec::new();
/// thalweg_cdr::encode(&shape, thalweg_cdr::Representation::Xcdr2, &mut payload)?;
/// assert_eq!(payload[..8], [0, 9, 0, 0, 24, 0, 0, 0]);
/// # Ok::<(), thalweg_cdr::EncodeError>(())
/// ```
///
/// # On types
///
/// | `#[topic(…)]` | applies to | meaning |
/// |---|---|---|
/// | `name = "module::Type"` | all | The name in IDL's spelling. Default: the Rust name. |
/// | `extensibility = "final"`, `"appendable"`, `"mutable"` | structs, unions, enums | How the type may change; an enum is never mutable. Default: final. |
/// | `autoid = "sequential"`, `"hash"` | structs, unions | Member ids count up from the one before, or come from the name. Default: sequential. |
/// | `plain` | structs | Copied whole, not member by member: see below. |
/// | `bit_bound = 8` | enums | 1 to 32 bits; the wire has 1, 2 or 4 bytes. Default: 32. |
/// | `discriminator = Type` | unions | An integer, `bool`, `char` or enum type. Default: `i32`. |
/// | `octet` | unions | The discriminator, a `u8`, is IDL's `octet`; see below. |
/// | `key` | unions | The discriminator is the key. |
/// | `nested` | structs, unions | The type is only part of others, never that of a topic. |
/// | `unbounded_key` | structs, unions, newtypes | The key contains other values of the type, by way of other types; the default must not. A member that names its own type says so already. |
/// | `crate = "path"` | all | Where thalweg-cdr is found. Default: `::thalweg::cdr`. |
///
/// The default is final, although DDS-XTypes 1.3 has appendable: with XCDR1 the two are the same bytes, with XCDR2 a
/// final type is what Cyclone DDS's IDL compiler makes of unannotated IDL, four bytes less in every nested value, and
/// the one that can be copied whole. Fast DDS, RTI and OpenDDS default to appendable, so annotate types that are shared.
///
/// # On members
///
/// | `#[topic(…)]` | meaning |
/// |---|---|
/// | `name = "x"` | The name in IDL. Default: the Rust name. |
/// | `key` | Part of what names an instance. Neither it nor a member within it that is part of the key is optional. |
/// | `id = 3` | The member id, below 2^28. |
/// | `max_len = 128` | The bound of a string (in bytes), sequence or map, held when writing and when reading. |
/// | `must_understand` | A receiver that does not know the member drops the sample. |
/// | `octet` | Each `u8` in the type of the member, of a newtype or of a branch's value is told to others as IDL's `octet`; without, as `uint8`, which does not match an `octet`. The bytes are the same. |
/// | `default`, `default = expression` | What the member is when the sender's type lacks it: `Default::default()`, or this. Without: zero, empty, the default literal. |
///
/// To bound the elements of a sequence, wrap them: `struct Name(#[topic(max_len = 16)] String);`.
///
/// # On variants
///
/// `name = "RED"` gives the name in IDL of a literal, or of the member of a union's branch. In an enum, `default` marks the literal that a missing member takes; without, it is the first. In a union, each
/// variant has at most one value and says which labels select it:
///
/// ```
/// # use thalweg_derive::Topic;
/// #[derive(Topic)]
/// # #[topic(crate = "thalweg_cdr")]
/// #[topic(discriminator = u8)]
/// enum Target {
///     #[topic(case = 1)]
///     Point([f64; 3]),
///     #[topic(case = 2 | 3)] // 2 is written
///     Name(#[topic(max_len = 32)] String),
///     #[topic(default)]
///     Other(#[topic(label)] u8), // takes the label that was received; without such a field, a free one is written
/// }
/// ```
///
/// A default branch may have a `case` as well, whose labels select it like all that no other branch has: others are told of them.
///
/// # Plain structs
///
/// A struct with `plain` is `#[repr(C)]`, has no padding, and numbers, arrays of numbers and final plain structs as
/// members. `zerocopy`'s derives prove that, and such a struct and sequences of it are copied at once:
///
/// ```
/// # use thalweg_derive::Topic;
/// use thalweg_cdr::zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};
///
/// #[derive(Topic, FromBytes, IntoBytes, Immutable, KnownLayout)]
/// # #[topic(crate = "thalweg_cdr")]
/// # #[zerocopy(crate = "thalweg_cdr::zerocopy")]
/// #[topic(plain)]
/// #[repr(C)]
/// struct Point {
///     x: f64,
///     y: f64,
///     id: u32,
///     flags: [u16; 2],
/// }
/// ```
///
/// # Errors
///
/// Types without a counterpart in DDS do not compile, nor do attributes that mean nothing where they stand, or stand there twice:
///
/// ```compile_fail
/// # use thalweg_derive::Topic;
/// #[derive(Topic)]
/// # #[topic(crate = "thalweg_cdr")]
/// struct Wrong {
///     size: usize, // `usize` cannot be encoded as CDR
/// }
/// ```
///
/// ```compile_fail
/// # use thalweg_derive::Topic;
/// # use thalweg_cdr::zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};
/// #[derive(Topic, FromBytes, IntoBytes, Immutable, KnownLayout)]
/// # #[topic(crate = "thalweg_cdr")]
/// # #[zerocopy(crate = "thalweg_cdr::zerocopy")]
/// #[topic(plain)]
/// #[repr(C)]
/// struct Padded {
///     a: u32,
///     b: u64, // padding in front of it
/// }
/// ```
///
/// ```compile_fail
/// # use thalweg_derive::Topic;
/// #[derive(Topic)]
/// # #[topic(crate = "thalweg_cdr")]
/// struct Plate {
///     number: String,
///     state: Option<String>,
/// }
///
/// #[derive(Topic)]
/// # #[topic(crate = "thalweg_cdr")]
/// struct Car {
///     #[topic(key)]
///     plate: Plate, // all its members are key, and one of them is optional
/// }
/// ```
///
/// ```compile_fail
/// # use thalweg_derive::Topic;
/// #[derive(Topic)]
/// # #[topic(crate = "thalweg_cdr")]
/// #[topic(bit_bound = 8)]
/// enum Wide {
///     Literal = 300, // does not fit its bit bound
/// }
/// ```
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

/// The name on the wire: given, or that of the Rust type without `r#`.
fn type_name(input: &DeriveInput, attributes: &TypeAttributes) -> String {
    let own = || input.ident.to_string().trim_start_matches("r#").to_owned();
    attributes.name.as_ref().map_or_else(own, syn::LitStr::value)
}
