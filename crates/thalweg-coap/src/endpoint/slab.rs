//! Places that are used again, under names that are not.

/// Holds values under ids; an id is never given twice, its place is.
#[derive(Debug)]
pub struct Slab<T> {
    places: Vec<Place<T>>,
    free: Vec<u32>,
}

#[derive(Debug)]
struct Place<T> {
    generation: u32,
    value: Option<T>,
}

impl<T> Slab<T> {
    pub const fn new() -> Slab<T> {
        Slab { places: Vec::new(), free: Vec::new() }
    }

    pub fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }

    /// Holds a value; gives its id.
    pub fn insert(&mut self, value: T) -> u64 {
        let index = self.free.pop().unwrap_or_else(|| {
            self.places.push(Place { generation: 0, value: None });
            (self.places.len() - 1) as u32
        });
        let place = &mut self.places[index as usize];
        place.value = Some(value);
        u64::from(place.generation) << 32 | u64::from(index)
    }

    pub fn get(&self, id: u64) -> Option<&T> {
        let place = self.places.get(index_of(id) as usize)?;
        place.value.as_ref().filter(|_| place.generation == (id >> 32) as u32)
    }

    pub fn get_mut(&mut self, id: u64) -> Option<&mut T> {
        let place = self.places.get_mut(index_of(id) as usize)?;
        place.value.as_mut().filter(|_| place.generation == (id >> 32) as u32)
    }

    pub fn remove(&mut self, id: u64) -> Option<T> {
        let place = self.places.get_mut(index_of(id) as usize)?;
        if place.generation != (id >> 32) as u32 {
            return None;
        }
        let value = place.value.take()?;
        place.generation = place.generation.wrapping_add(1);
        self.free.push(index_of(id));
        Some(value)
    }

    /// All ids and values.
    pub fn iter(&self) -> impl Iterator<Item = (u64, &T)> {
        (0..self.places.len() as u32).filter_map(|index| self.at(index))
    }

    /// All values.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.places.iter_mut().filter_map(|place| place.value.as_mut())
    }

    /// The id and value at a place now.
    pub fn at(&self, index: u32) -> Option<(u64, &T)> {
        let place = self.places.get(index as usize)?;
        let value = place.value.as_ref()?;
        Some((u64::from(place.generation) << 32 | u64::from(index), value))
    }
}

/// The place of an id.
pub fn index_of(id: u64) -> u32 {
    id as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_does_not_come_back() {
        let mut slab = Slab::new();
        let first = slab.insert('a');
        assert_eq!(slab.remove(first), Some('a'));
        let second = slab.insert('b');
        assert_eq!(index_of(first), index_of(second), "the place is used again");
        assert_eq!((slab.get(first).copied(), slab.remove(first), slab.len()), (None, None, 1));
        assert_eq!(slab.at(index_of(second)), Some((second, &'b')));
        assert_eq!(slab.iter().collect::<Vec<_>>(), [(second, &'b')]);
    }
}
