//! What tells two definitions of one type name apart.

use thalweg::Type;
use thalweg_types::type_object::{TypeIdentifier, TypeInformation, describe};

/// A definition of a type, by its equivalence hash (DDS-XTypes 1.3 §7.3.4.2): that of the minimal type object, which says how samples lie
/// on the wire; of the complete one where there is no other.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TypeIdentity(TypeIdentifier);

impl TypeIdentity {
    /// The definition that an endpoint announces by this TYPE_INFORMATION; `None` without one that is understood.
    pub fn announced(information: Option<&[u8]>) -> Option<TypeIdentity> {
        TypeInformation::from_bytes(information?).ok().map(TypeIdentity::told)
    }

    /// The definition that a type is; `None` when it cannot be told to others.
    pub fn of(of: &Type) -> Option<TypeIdentity> {
        describe(of).ok().map(|described| TypeIdentity::told(described.information))
    }

    fn told(information: TypeInformation) -> TypeIdentity {
        TypeIdentity(match information.minimal.of.identifier {
            TypeIdentifier::None => information.complete.of.identifier,
            minimal => minimal,
        })
    }
}

#[cfg(test)]
mod tests {
    use thalweg_types::idl;

    use super::*;

    #[test]
    fn definitions_differ_by_what_is_on_the_wire_and_not_by_remarks() {
        let identity = |text: &str| {
            let types = idl::parse(text).expect("IDL");
            let of = types.find("T").expect("T");
            let announced = describe(of).and_then(|described| described.information.to_bytes()).expect("described");
            let identity = TypeIdentity::of(of).expect("it can be told");
            assert_eq!(TypeIdentity::announced(Some(&announced)), Some(identity.clone()), "{text}");
            identity
        };
        let plain = identity("@final struct T { long x; };");
        assert_eq!(plain, identity("@final struct T { @unit(\"m\") long x; };"));
        assert_ne!(plain, identity("@final struct T { double x; };"));
        assert_ne!(plain, identity("@final struct T { long x; long y; };"));
        assert_eq!((TypeIdentity::announced(None), TypeIdentity::announced(Some(&[1, 2, 3]))), (None, None));
    }
}
