//! Members found by their ids.

/// Finds the members of a mutable type by their ids. Most senders write them in the order of the type, so that the next one is the one
/// behind.
pub(super) struct IdLookup<'a, T> {
    members: &'a [T],
    id_of: fn(&T) -> u32,
    /// The place behind that of the last one.
    next: usize,
    has_missed: bool,
    /// Ids and places in order, made for the second id that is not the expected one.
    by_id: Option<Vec<(u32, usize)>>,
}

impl<'a, T> IdLookup<'a, T> {
    pub(super) fn of(members: &'a [T], id_of: fn(&T) -> u32) -> IdLookup<'a, T> {
        IdLookup { members, id_of, next: 0, has_missed: false, by_id: None }
    }

    /// The place of the first member with this id; the one behind it is expected next.
    pub(super) fn take_place_of(&mut self, id: u32) -> Option<usize> {
        let is_expected = self.members.get(self.next).is_some_and(|member| (self.id_of)(member) == id);
        let place = if is_expected { self.next } else { self.looked_up(id)? };
        self.next = place + 1;
        Some(place)
    }

    fn looked_up(&mut self, id: u32) -> Option<usize> {
        if !std::mem::replace(&mut self.has_missed, true) {
            return self.members.iter().position(|member| (self.id_of)(member) == id);
        }
        let by_id = self.by_id.get_or_insert_with(|| {
            let mut by_id: Vec<(u32, usize)> = self.members.iter().map(self.id_of).zip(0..).collect();
            by_id.sort_unstable();
            by_id
        });
        let first = by_id.partition_point(|(other, _)| *other < id);
        by_id.get(first).filter(|(other, _)| *other == id).map(|(_, place)| *place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lookup(ids: &[u32]) -> IdLookup<'_, u32> {
        IdLookup::of(ids, |id| *id)
    }

    #[test]
    fn members_in_the_order_of_the_type_are_found_without_search() {
        let mut places = lookup(&[7, 3, 0x0fff_ffff, 0]);
        let found = [7, 3, 0x0fff_ffff, 0].map(|id| places.take_place_of(id));
        assert_eq!(found, [Some(0), Some(1), Some(2), Some(3)]);
        assert!(!places.has_missed);
    }

    #[test]
    fn members_in_any_order_are_found_and_unknown_ids_are_not() {
        let mut some = lookup(&[7, 3, 9, 0]);
        let found = [0, 7, 8, 3, 0, 0, u32::MAX, 9].map(|id| some.take_place_of(id));
        assert_eq!(found, [Some(3), Some(0), None, Some(1), Some(3), Some(3), None, Some(2)]);
        assert!(some.by_id.is_some(), "one search at most");
        assert_eq!(lookup(&[]).take_place_of(0), None);
    }

    #[test]
    fn of_members_with_one_id_the_first_is_found() {
        let mut places = lookup(&[1, 5, 5, 2]);
        assert_eq!([2, 5, 1, 5].map(|id| places.take_place_of(id)), [Some(3), Some(1), Some(0), Some(1)]);
    }
}
