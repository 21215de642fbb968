//! How many dimensions an array may have.

use super::*;

#[test]
fn an_array_has_64_dimensions_at_most() {
    let with = |dimensions: usize| format!("struct A {{ long x{}; }};", "[1]".repeat(dimensions));
    let found = structure(&with(64), "A");
    let mut of = &found.members[0].member_type;
    for _ in 0..64 {
        let Type::Array { element, count: 1 } = of else { panic!("{of:?}") };
        of = element;
    }
    assert_eq!(*of, Type::Primitive(Primitive::Int32));
    for dimensions in [65, 100_000] {
        refused(&with(dimensions), 1, "the array x has more than 64 dimensions");
    }
}
