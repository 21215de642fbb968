//! The order in which things were used last, at a constant cost.

/// Places in the order of their use.
#[derive(Debug)]
pub struct Recency {
    links: Vec<Links>,
    newest: u32,
    oldest: u32,
    len: usize,
}

#[derive(Clone, Copy, Debug)]
struct Links {
    newer: u32,
    older: u32,
}

const NONE: u32 = u32::MAX;

impl Recency {
    pub fn new() -> Recency {
        Recency { links: Vec::new(), newest: NONE, oldest: NONE, len: 0 }
    }

    /// How many places are in the order.
    pub fn len(&self) -> usize {
        self.len
    }

    /// All places, the one that was not used for the longest time first.
    pub fn oldest_first(&self) -> impl Iterator<Item = u32> {
        std::iter::successors(self.oldest(), |place| {
            Some(self.links[*place as usize].newer).filter(|newer| *newer != NONE)
        })
    }

    /// The place that was not used for the longest time.
    pub fn oldest(&self) -> Option<u32> {
        (self.oldest != NONE).then_some(self.oldest)
    }

    /// Adds a place that is not in the order.
    pub fn insert(&mut self, place: u32) {
        if self.links.len() <= place as usize {
            self.links.resize(place as usize + 1, Links { newer: NONE, older: NONE });
        }
        self.links[place as usize] = Links { newer: NONE, older: self.newest };
        match self.newest {
            NONE => self.oldest = place,
            newest => self.links[newest as usize].newer = place,
        }
        self.newest = place;
        self.len += 1;
    }

    /// Takes a place that is in the order out of it.
    pub fn remove(&mut self, place: u32) {
        let Links { newer, older } = self.links[place as usize];
        match newer {
            NONE => self.newest = older,
            newer => self.links[newer as usize].older = older,
        }
        match older {
            NONE => self.oldest = newer,
            older => self.links[older as usize].newer = newer,
        }
        self.len -= 1;
    }

    /// A place that is in the order is used.
    #[inline]
    pub fn touch(&mut self, place: u32) {
        if self.newest != place {
            self.remove(place);
            self.insert(place);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_is_the_one_that_was_not_touched() {
        let mut order = Recency::new();
        (0..4).for_each(|place| order.insert(place));
        order.touch(0);
        order.touch(1);
        order.remove(2);
        let mut drained = Vec::new();
        while let Some(place) = order.oldest() {
            drained.push(place);
            order.remove(place);
        }
        assert_eq!(drained, [3, 0, 1]);
        order.insert(2);
        assert_eq!(order.oldest(), Some(2));
    }
}
