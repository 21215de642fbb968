//! How to draw values of the types.

use proptest::collection::{btree_map, hash_map, vec};
use proptest::prelude::*;
use thalweg_cdr::WString;

use crate::types::{Choice, Color, Growing, Inner, Medium, Note, Point, Small, UnorderedKey};
use crate::zoo::{
    Collections, Generic, Head, Heads, Identity, Keyed, KeyedParts, Metres, Mutating, Name, Nothing, Options, Tree,
};

pub fn text() -> impl Strategy<Value = String> {
    vec(prop_oneof![Just('a'), Just('é'), Just('水'), Just('🌊'), Just('\u{1}')], 0..5)
        .prop_map(|characters| characters.into_iter().collect())
}

pub fn point() -> impl Strategy<Value = Point> {
    (-1e9..1e9, -1e9f32..1e9).prop_map(|(x, y)| Point { x, y })
}

pub fn note() -> impl Strategy<Value = Note> {
    (any::<u8>(), text()).prop_map(|(level, text)| Note { level, text })
}

pub fn color() -> impl Strategy<Value = Color> {
    prop_oneof![Just(Color::Red), Just(Color::Green), Just(Color::Blue)]
}

pub fn name() -> impl Strategy<Value = Name> {
    "[a-z]{0,6}".prop_map(Name)
}

pub fn choice() -> impl Strategy<Value = Choice> {
    prop_oneof![
        any::<i64>().prop_map(Choice::Number),
        text().prop_map(Choice::Text),
        (4i32.., any::<u8>()).prop_map(|(label, value)| Choice::Other(label, value)),
    ]
}

pub fn growing() -> impl Strategy<Value = Growing> {
    prop_oneof![point().prop_map(Growing::Point), note().prop_map(Growing::Note), Just(Growing::Nothing)]
}

pub fn mutating() -> impl Strategy<Value = Mutating> {
    prop_oneof![
        any::<u64>().prop_map(Mutating::Number),
        vec(name(), 0..4).prop_map(Mutating::Names),
        Just(Mutating::Nothing),
        (8i16..).prop_map(Mutating::Unknown),
    ]
}

pub fn tree() -> impl Strategy<Value = Tree> {
    let leaf = any::<u16>().prop_map(|value| Tree { value, branches: Vec::new(), next: None });
    leaf.prop_recursive(4, 16, 3, |inner| {
        (any::<u16>(), vec(inner.clone(), 0..3), proptest::option::of(inner.prop_map(Box::new)))
            .prop_map(|(value, branches, next)| Tree { value, branches, next })
    })
}

pub fn collections() -> impl Strategy<Value = Collections> {
    let maps = (
        btree_map(color(), [point(), point()], 0..3),
        hash_map(text(), vec(note(), 0..3), 0..3),
        btree_map(any::<u8>(), any::<u64>(), 0..3),
    );
    let arrays = ([[note(), note()], [note(), note()]], [color(), color(), color()], [name(), name()]);
    let lists = (
        vec(any::<u8>().prop_map(char::from), 0..5),
        vec((-1e3f32..1e3).prop_map(Metres), 0..4),
        text().prop_map(WString),
        vec(Just(Nothing {}), 0..4),
        vec(any::<[[u16; 2]; 2]>(), 0..3),
        vec(growing(), 0..4),
    );
    (any::<bool>(), maps, arrays, lists, any::<u64>()).prop_map(|(lead, maps, arrays, lists, last)| {
        let (sorted, hashed, small) = maps;
        let (notes, colors, names) = arrays;
        let (characters, metres, wide, empty, rows, growing) = lists;
        Collections {
            lead,
            sorted,
            hashed,
            small,
            notes,
            colors,
            characters,
            metres,
            names,
            wide,
            empty,
            rows,
            growing,
            last,
        }
    })
}

pub fn options() -> impl Strategy<Value = Options> {
    use proptest::option::of;
    let medium = prop_oneof![Just(Medium::Near), Just(Medium::Far)];
    let rest = (of(btree_map(any::<u16>(), text(), 0..3)), of(medium), of(choice()), of(mutating()));
    (of(any::<bool>()), of(vec(any::<u8>(), 0..3)), of(any::<u64>()), of(note()), rest, any::<u8>()).prop_map(
        |(flag, bytes, number, note, (map, medium, choice, mutating), last)| Options {
            flag,
            bytes,
            number,
            note,
            map,
            medium,
            choice,
            mutating,
            last,
        },
    )
}

pub fn keyed() -> impl Strategy<Value = Keyed> {
    let identity = (any::<u64>(), any::<[u8; 3]>(), choice()).prop_map(|(second, first, choice)| Identity {
        second,
        first,
        choice,
    });
    let small = prop_oneof![Just(Small::One), Just(Small::Two)];
    (vec(options(), 0..3), identity, small, vec(text(), 0..3), tree(), mutating())
        .prop_map(|(far, id, small, path, tree, mutating)| Keyed { far, id, small, path, tree, mutating })
}

pub fn keyed_parts() -> impl Strategy<Value = KeyedParts> {
    let inner = || (text(), any::<u16>()).prop_map(|(ignored, group)| Inner { ignored, group });
    let more = (any::<u32>(), text(), any::<u8>()).prop_map(|(late, text, early)| UnorderedKey { late, text, early });
    (vec(tree(), 0..2), [inner(), inner()], proptest::option::of(text()), vec(more, 0..3), text())
        .prop_map(|(lead, parts, mid, more, last)| KeyedParts { lead, parts, mid, more, last })
}

pub fn generic() -> impl Strategy<Value = Generic<Choice, 2>> {
    ([choice(), choice()], vec(choice(), 0..3)).prop_map(|(items, list)| Generic { items, list })
}

pub fn heads() -> impl Strategy<Value = Heads> {
    let head = || (any::<u8>(), text()).prop_map(|(id, text)| Head { id, text });
    let small = || prop_oneof![Just(Small::One), Just(Small::Two)];
    let wide = [[small(), small()], [small(), small()]];
    (head(), vec(text(), 0..3), head(), wide, text()).prop_map(|(first, between, second, wide, last)| Heads {
        first,
        between,
        second,
        wide,
        last,
    })
}
