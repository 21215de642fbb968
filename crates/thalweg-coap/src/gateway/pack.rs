//! A pack of readings as one resource (RFC 8428).

use std::time::Duration;

use crate::link_format::WebLink;
use crate::message::content_format;
use crate::resource::representation::{negotiate, senml_name};
use crate::resource::{Get, LocalStore, Put, Resource, ResourceError, ResourceRepresentation, link_of};
use crate::senml::{self, SenmlRecord};

/// All readings below a path: GET gives them as one pack; PUT and POST drive those that a pack names.
pub(super) struct ReadingPack {
    path: String,
    root: String,
    store: LocalStore,
}

impl ReadingPack {
    pub(super) fn new(path: String, root: String, store: LocalStore) -> ReadingPack {
        ReadingPack { path, root, store }
    }

    /// Resources below the root, without packs: two that contain each other would have no end.
    fn paths(&self) -> Vec<String> {
        let below = format!("{}/", self.root);
        let is_pack =
            |path: &String| self.store.find(path).is_ok_and(|resource| resource.link().attribute("if") == Some(PACK));
        let of = |path: &String| (path.starts_with(&below) || *path == self.root) && !is_pack(path);
        self.store.paths().into_iter().filter(of).collect()
    }
}

impl Resource for ReadingPack {
    fn path(&self) -> &str {
        &self.path
    }

    fn link(&self) -> WebLink {
        link_of(&self.path, "", "", PACK, &FORMATS)
    }

    fn blocks(&self) -> bool {
        true
    }

    fn get(&self, request: &Get<'_>) -> Result<ResourceRepresentation, ResourceError> {
        let format = negotiate(&FORMATS, request.accept)?;
        let (mut records, mut max_age) = (Vec::new(), Duration::MAX);
        for path in self.paths() {
            let ask = Get { accept: Some(content_format::SENML_CBOR), queries: &[] };
            // Instructions and what cannot be read at present are no readings.
            let Ok(reading) = self.store.find(&path).and_then(|resource| resource.get(&ask)) else { continue };
            let Ok((value, unit)) = reading.value() else { continue };
            max_age = max_age.min(reading.max_age);
            let name = senml_name(&path);
            records.push(SenmlRecord::new(name, unit, value));
        }
        if records.is_empty() {
            return Err(ResourceError::Unavailable(format!("nothing below /{} can be read", self.root), RETRY_AFTER));
        }
        let payload = senml::encode(format, &records).map_err(|error| ResourceError::Failed(error.to_string()))?;
        Ok(ResourceRepresentation::new(format, payload, max_age))
    }

    /// Drives what the records name, in their order; the first that fails ends it.
    fn put(&self, request: &Put<'_>) -> Result<(), ResourceError> {
        let format = request.content_format.ok_or(ResourceError::UnsupportedFormat)?;
        if !FORMATS.contains(&format) {
            return Err(ResourceError::UnsupportedFormat);
        }
        let bad = |reason: String| ResourceError::BadRequest(reason);
        let records = senml::parse(format, request.payload).map_err(|error| bad(error.to_string()))?;
        let paths = self.paths();
        // All names are looked at before anything moves.
        let mut orders = Vec::with_capacity(records.len());
        for record in records {
            let path = paths.iter().find(|path| senml_name(path) == record.name);
            let path = path.ok_or_else(|| bad(format!("there is no /{} below /{}", record.name, self.root)))?;
            let value = record.value.ok_or_else(|| bad(format!("{} has no value", record.name)))?;
            orders.push((self.store.find(path)?, value));
        }
        for (resource, value) in orders {
            let text = value.to_string();
            resource.put(&Put { content_format: None, payload: text.as_bytes(), queries: &[] })?;
        }
        Ok(())
    }

    fn is_timed(&self) -> bool {
        false
    }
}

/// The interface of packs: a batch (core.interfaces).
const PACK: &str = "core.b";
const FORMATS: [u16; 2] = [content_format::SENML_JSON, content_format::SENML_CBOR];
const RETRY_AFTER: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn packs_that_contain_each_other_have_an_end() {
        let store = LocalStore::new();
        for path in ["s/a", "s/b", "s"] {
            let pack = ReadingPack::new(path.to_owned(), "s".to_owned(), store.clone());
            store.insert(Arc::new(pack)).expect("a place");
        }
        let ask = Get { accept: None, queries: &[] };
        let error = store.find("s/a").expect("there").get(&ask).expect_err("no reading");
        assert!(matches!(error, ResourceError::Unavailable(..)), "{error}");
    }
}
