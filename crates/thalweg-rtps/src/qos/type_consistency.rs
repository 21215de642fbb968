//! How far the types of a writer and a reader may differ.

/// TYPE_CONSISTENCY_ENFORCEMENT of a reader (DDS-XTypes 1.3 §7.6.3.7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TypeConsistency {
    /// False when both types must be the same (DISALLOW_TYPE_COERCION). Default true.
    pub allows_coercion: bool,
    /// Bounds of sequences may differ so that the writer's is larger. Default true.
    pub ignores_sequence_bounds: bool,
    /// As for sequences, of texts. Default true.
    pub ignores_string_bounds: bool,
    /// Members of one id may have different names. Default false.
    pub ignores_member_names: bool,
    /// A writer's type that lacks members of the reader's does not fit. Default false.
    pub prevents_widening: bool,
    /// It matches only with writers whose type was compared with its own: both describe it, and all objects came. Default false.
    pub forces_validation: bool,
}

impl Default for TypeConsistency {
    fn default() -> TypeConsistency {
        TypeConsistency {
            allows_coercion: true,
            ignores_sequence_bounds: true,
            ignores_string_bounds: true,
            ignores_member_names: false,
            prevents_widening: false,
            forces_validation: false,
        }
    }
}

impl TypeConsistency {
    /// The seven octets of the policy: the kind, little-endian, and five booleans.
    pub(crate) fn to_bytes(self) -> [u8; 7] {
        let flags = [
            self.ignores_sequence_bounds,
            self.ignores_string_bounds,
            self.ignores_member_names,
            self.prevents_widening,
            self.forces_validation,
        ]
        .map(u8::from);
        [u8::from(self.allows_coercion), 0, flags[0], flags[1], flags[2], flags[3], flags[4]]
    }

    /// Reverses [`TypeConsistency::to_bytes`]; the kind may have either byte order, since there are 0 and 1 alone.
    pub(crate) fn from_bytes(octets: [u8; 7]) -> TypeConsistency {
        let is_set = |at: usize| octets[at] != 0;
        TypeConsistency {
            allows_coercion: is_set(0) || is_set(1),
            ignores_sequence_bounds: is_set(2),
            ignores_string_bounds: is_set(3),
            ignores_member_names: is_set(4),
            prevents_widening: is_set(5),
            forces_validation: is_set(6),
        }
    }
}
