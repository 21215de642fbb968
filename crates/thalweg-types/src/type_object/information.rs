//! TYPE_INFORMATION: what discovery says of an endpoint's type (DDS-XTypes 1.3 §7.6.3.2).

use thalweg_cdr::description::Type;
use thalweg_cdr::{
    ByteOrder, Decode, DecodeError, Decoder, Encode, EncodeError, Encoder, Layout, LengthCode, Member, Representation,
};

use super::convert::{DescribedComponent, Describing};
use super::identifier::{Equivalence, TypeHash, TypeIdentifier};

/// The identifiers of a type and of all that it refers to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TypeInformation {
    /// Of the minimal objects.
    pub minimal: TypeWithDependencies,
    /// Of the complete objects; `TypeIdentifier::None` where a peer has none.
    pub complete: TypeWithDependencies,
}

/// A type with those that it refers to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TypeWithDependencies {
    /// The type.
    pub of: TypeWithSize,
    /// How many types it refers to, directly or not; -1 where the peer does not say.
    pub dependency_count: i32,
    /// They, or as many of them as the peer tells here.
    pub dependencies: Vec<TypeWithSize>,
}

/// The identifier of a type, and the size of its object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TypeWithSize {
    /// The identifier.
    pub identifier: TypeIdentifier,
    /// Bytes of the object.
    pub object_bytes: u32,
}

/// Our objects of a type and what discovery says of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Described {
    /// What discovery says.
    pub information: TypeInformation,
    /// The objects, minimal and complete, but for those of types that contain themselves.
    pub objects: Vec<(TypeHash, Vec<u8>)>,
    /// The objects of types that contain themselves, minimal and complete.
    pub components: Vec<DescribedComponent>,
}

const MINIMAL_ID: u32 = 0x1001;
const COMPLETE_ID: u32 = 0x1002;

/// Describes a type for others.
///
/// # Errors
/// When an annotation is no value of its member, or a bound exceeds 32 bits.
pub fn describe(of: &Type) -> Result<Described, EncodeError> {
    let (mut objects, mut components) = (Vec::new(), Vec::new());
    let mut one = |equivalence| {
        let mut describing = Describing::new(equivalence);
        let identifier = describing.identifier(of)?;
        let size = |bytes: usize| u32::try_from(bytes).unwrap_or(u32::MAX);
        let mut all: Vec<TypeWithSize> = describing
            .objects()
            .iter()
            .map(|(hash, bytes)| TypeWithSize {
                identifier: TypeIdentifier::Hash(equivalence, *hash),
                object_bytes: size(bytes.len()),
            })
            .collect();
        // Of a component, discovery tells the whole (DDS-XTypes 1.3 §7.6.3.2.1).
        all.extend(describing.components().iter().map(|component| TypeWithSize {
            identifier: component.identifier.clone(),
            object_bytes: size(component.objects.iter().map(Vec::len).sum()),
        }));
        objects.extend_from_slice(describing.objects());
        components.extend_from_slice(describing.components());
        let own = own_of(identifier, &mut all, describing.components());
        let dependency_count = i32::try_from(all.len()).unwrap_or(-1);
        Ok::<_, EncodeError>(TypeWithDependencies { of: own, dependency_count, dependencies: all })
    };
    let information = TypeInformation { minimal: one(Equivalence::Minimal)?, complete: one(Equivalence::Complete)? };
    Ok(Described { information, objects, components })
}

/// Takes the described type out of all that was described; a component of several types stays, since the others are in it.
fn own_of(identifier: TypeIdentifier, all: &mut Vec<TypeWithSize>, components: &[DescribedComponent]) -> TypeWithSize {
    let whole = identifier.whole();
    let at = all.iter().position(|with_size| with_size.identifier == whole);
    let TypeIdentifier::Component { length, index, .. } = identifier else {
        return at.map(|at| all.remove(at)).unwrap_or(TypeWithSize { identifier, object_bytes: 0 });
    };
    if let Some(at) = at.filter(|_| length == 1) {
        all.remove(at);
    }
    let component = components.iter().find(|component| component.identifier == whole);
    let object = component.and_then(|component| component.objects.get(usize::try_from(index - 1).ok()?));
    let object_bytes = object.map_or(0, |object| u32::try_from(object.len()).unwrap_or(u32::MAX));
    TypeWithSize { identifier, object_bytes }
}

impl TypeInformation {
    /// The value of the parameter: XCDR2, little-endian, without encapsulation header.
    ///
    /// # Errors
    /// When it exceeds 2^32 bytes.
    pub fn to_bytes(&self) -> Result<Vec<u8>, EncodeError> {
        let mut out = Vec::new();
        self.encode(&mut Encoder::new(&mut out, Representation::Xcdr2, ByteOrder::Little))?;
        Ok(out)
    }

    /// Reads the value of the parameter, with or without padding behind it.
    ///
    /// # Errors
    /// When the bytes are no TYPE_INFORMATION; it then counts as absent.
    pub fn from_bytes(bytes: &[u8]) -> Result<TypeInformation, DecodeError> {
        let mut decoder = Decoder::new(bytes, Representation::Xcdr2, ByteOrder::Little);
        let information = TypeInformation::decode(&mut decoder)?;
        match information.identifier() {
            TypeIdentifier::None => Err(DecodeError::new(0, "the identifier of a type")),
            _ => Ok(information),
        }
    }

    /// The better identifier: the complete one where there is one.
    pub fn identifier(&self) -> &TypeIdentifier {
        match &self.complete.of.identifier {
            TypeIdentifier::None => &self.minimal.of.identifier,
            complete => complete,
        }
    }
}

impl Layout for TypeInformation {}

impl Encode for TypeInformation {
    fn encode(&self, encoder: &mut Encoder<'_>) -> Result<(), EncodeError> {
        encoder.mutable_type(|encoder| {
            for (id, part) in [(MINIMAL_ID, &self.minimal), (COMPLETE_ID, &self.complete)] {
                let member = Member { id, must_understand: false };
                encoder.parameter(member, LengthCode::Stated, |encoder| part.encode(encoder))?;
            }
            Ok(())
        })
    }
}

impl Decode for TypeInformation {
    fn decode(decoder: &mut Decoder<'_>) -> Result<TypeInformation, DecodeError> {
        let mut information = TypeInformation::default();
        decoder.mutable_type(|decoder, id| {
            match id {
                MINIMAL_ID => information.minimal = TypeWithDependencies::decode(decoder)?,
                COMPLETE_ID => information.complete = TypeWithDependencies::decode(decoder)?,
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        Ok(information)
    }

    fn default_value() -> TypeInformation {
        TypeInformation::default()
    }
}

impl Layout for TypeWithDependencies {}

impl Encode for TypeWithDependencies {
    fn encode(&self, encoder: &mut Encoder<'_>) -> Result<(), EncodeError> {
        encoder.appendable_type(|encoder| {
            self.of.encode(encoder)?;
            self.dependency_count.encode(encoder)?;
            self.dependencies.encode(encoder)
        })
    }
}

impl Decode for TypeWithDependencies {
    fn decode(decoder: &mut Decoder<'_>) -> Result<TypeWithDependencies, DecodeError> {
        decoder.appendable_type(|decoder| {
            Ok(TypeWithDependencies {
                of: TypeWithSize::decode(decoder)?,
                dependency_count: i32::decode(decoder)?,
                dependencies: Vec::decode(decoder)?,
            })
        })
    }

    fn default_value() -> TypeWithDependencies {
        TypeWithDependencies::default()
    }
}

impl Layout for TypeWithSize {
    const MIN_BYTES: usize = 4;
}

impl Encode for TypeWithSize {
    fn encode(&self, encoder: &mut Encoder<'_>) -> Result<(), EncodeError> {
        encoder.appendable_type(|encoder| {
            self.identifier.encode(encoder)?;
            self.object_bytes.encode(encoder)
        })
    }
}

impl Decode for TypeWithSize {
    fn decode(decoder: &mut Decoder<'_>) -> Result<TypeWithSize, DecodeError> {
        decoder.appendable_type(|decoder| {
            Ok(TypeWithSize { identifier: TypeIdentifier::decode(decoder)?, object_bytes: u32::decode(decoder)? })
        })
    }

    fn default_value() -> TypeWithSize {
        TypeWithSize::default()
    }
}
