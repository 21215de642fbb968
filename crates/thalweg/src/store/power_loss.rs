//! A store on a disk whose power fails: of what was written since the last sync there is any part, cut at sectors.

use std::io;
use std::ops::Bound;

use redb::{BackendError, StorageBackend};
use thalweg_rtps::rng::Rng;

use super::kept::KeptFile;
use super::tests::{Model, follow, model_of, random_group};
use super::*;

/// What a disk writes wholly or not at all.
const SECTOR_BYTES: usize = 512;

/// A disk with a volatile write cache.
#[derive(Debug)]
struct Disk(Mutex<Platter>);

#[derive(Debug)]
struct Platter {
    /// What is read while there is power.
    seen: Vec<u8>,
    /// What outlives the power for sure.
    stable: Vec<u8>,
    unsynced: Vec<Deed>,
    /// Changes and syncs until the power fails.
    left: u64,
}

#[derive(Debug)]
enum Deed {
    Write(usize, Vec<u8>),
    Length(usize),
}

impl Disk {
    fn new(content: Vec<u8>, left: u64) -> Arc<Disk> {
        Arc::new(Disk(Mutex::new(Platter { seen: content.clone(), stable: content, unsynced: Vec::new(), left })))
    }

    fn has_power(&self) -> bool {
        lock(&self.0).left > 0
    }

    /// The disk as it is when the power is back: each sector of the cache was written by this chance. It fails after `left` changes.
    fn back_again(&self, rng: &mut Rng, chance: f64, left: u64) -> Arc<Disk> {
        let mut platter = lock(&self.0);
        let mut content = std::mem::take(&mut platter.stable);
        for deed in std::mem::take(&mut platter.unsynced) {
            match deed {
                Deed::Length(len) if rng.chance(chance) => content.resize(len, 0),
                Deed::Length(_) => {}
                Deed::Write(at, bytes) => {
                    let mut from = 0;
                    while from < bytes.len() {
                        let up_to = bytes.len().min(from + SECTOR_BYTES - (at + from) % SECTOR_BYTES);
                        if let Some(place) = content.get_mut(at + from..at + up_to).filter(|_| rng.chance(chance)) {
                            place.copy_from_slice(&bytes[from..up_to]);
                        }
                        from = up_to;
                    }
                }
            }
        }
        Disk::new(content, left)
    }

    fn change(&self, change: impl FnOnce(&mut Platter)) -> io::Result<()> {
        let mut platter = lock(&self.0);
        platter.left = platter.left.saturating_sub(1);
        if platter.left == 0 {
            return Err(io::Error::other("the power is off"));
        }
        change(&mut platter);
        Ok(())
    }
}

impl Platter {
    fn apply(content: &mut Vec<u8>, deed: &Deed) {
        match deed {
            Deed::Length(len) => content.resize(*len, 0),
            Deed::Write(at, bytes) => content[*at..at + bytes.len()].copy_from_slice(bytes),
        }
    }

    fn cache(&mut self, deed: Deed) {
        Platter::apply(&mut self.seen, &deed);
        self.unsynced.push(deed);
    }
}

impl StorageBackend for Disk {
    fn len(&self) -> io::Result<u64> {
        Ok(lock(&self.0).seen.len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let platter = lock(&self.0);
        let range = offset as usize..offset as usize + out.len();
        out.copy_from_slice(platter.seen.get(range).ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.change(|platter| platter.cache(Deed::Length(len as usize)))
    }

    fn sync_data(&self) -> io::Result<()> {
        self.change(|platter| {
            for deed in std::mem::take(&mut platter.unsynced) {
                Platter::apply(&mut platter.stable, &deed);
            }
        })
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.change(|platter| platter.cache(Deed::Write(offset as usize, data.to_vec())))
    }

    fn try_lock_range(&self, _start: Bound<u64>, _end: Bound<u64>) -> Result<bool, BackendError> {
        Ok(true)
    }

    fn try_lock_shared_range(&self, _start: Bound<u64>, _end: Bound<u64>) -> Result<bool, BackendError> {
        Ok(true)
    }

    fn lock_range(&self, _start: Bound<u64>, _end: Bound<u64>) -> Result<(), BackendError> {
        Ok(())
    }

    fn lock_shared_range(&self, _start: Bound<u64>, _end: Bound<u64>) -> Result<(), BackendError> {
        Ok(())
    }

    fn unlock_range(&self, _start: Bound<u64>, _end: Bound<u64>) -> Result<(), BackendError> {
        Ok(())
    }

    fn query_lock_range(&self, _start: Bound<u64>, _end: Bound<u64>) -> Result<bool, BackendError> {
        Ok(false)
    }
}

/// What a store may hold when the power is back.
struct Sure {
    stored: Model,
    /// A commit that the power ended: all of it may be there, or nothing.
    or: Option<Model>,
}

/// Commits until the power fails, and returns how many commits it confirmed.
fn write_until_it_fails(file: &mut StoreFile, rng: &mut Rng, next: &mut [i64; 3], sure: &mut Sure) -> usize {
    let mut confirmed = 0;
    loop {
        let mut model = sure.stored.clone();
        let number = rng.below(3) as u32;
        let committed = if model.contains_key(&number) && rng.chance(0.05) {
            model.remove(&number);
            file.remove(HistoryNumber(number))
        } else {
            let held = model.entry(number).or_default();
            let group = random_group(rng, number, &mut next[number as usize], held);
            follow(&mut model, &group);
            file.commit(&[group])
        };
        match committed {
            Ok(()) => (sure.stored, confirmed) = (model, confirmed + 1),
            Err(_) => {
                sure.or = Some(model);
                return confirmed;
            }
        }
    }
}

#[test]
fn what_a_commit_confirmed_outlives_the_power_and_the_rest_is_whole_or_absent() {
    let (mut confirmed, mut whole) = (0, 0);
    for seed in 0..30 {
        let (mut rng, mut next) = (Rng::new(seed), [0; 3]);
        let mut sure = Sure { stored: Model::new(), or: None };
        let mut disk = Disk::new(Vec::new(), 1 + rng.below(300));
        for _ in 0..8 {
            match StoreFile::open_kept(KeptFile::on(disk.clone())) {
                Ok((mut file, found)) => {
                    let found = model_of(found);
                    let is_after = sure.or.as_ref().is_some_and(|model| *model == found);
                    assert!(is_after || found == sure.stored, "seed {seed}: the file holds something else");
                    whole += usize::from(is_after && found != sure.stored);
                    sure = Sure { stored: found, or: None };
                    confirmed += write_until_it_fails(&mut file, &mut rng, &mut next, &mut sure);
                }
                // It also fails while what it left is being repaired.
                Err(error) => assert!(!disk.has_power(), "seed {seed}: {error}"),
            }
            let chance = [0.0, 0.5, 0.95, 1.0, 1.0][rng.below(5) as usize];
            let most = if rng.chance(0.3) { 30 } else { 200 };
            let left = 1 + rng.below(most);
            disk = disk.back_again(&mut rng, chance, left);
        }
    }
    assert!(confirmed > 500 && whole > 0, "{confirmed} commits, {whole} whole though the power ended them");
}
