//! A pack of readings as one resource (RFC 8428).

use std::sync::Arc;
use std::time::Duration;

use crate::identity::Caller;
use crate::interaction::guard::{Guard, GuardRules};
use crate::link_format::WebLink;
use crate::message::{Code, OptionNumber, RequestBuf, Response, content_format};
use crate::resource::representation::{negotiate, senml_name};
use crate::resource::{Get, LocalStore, Put, Resource, ResourceError, ResourceRepresentation, link_of};
use crate::senml::{self, SenmlRecord};

/// All readings below a path: GET gives them as one pack; PUT and POST drive those that a pack names. A client gets and drives
/// by it what the rules let it get and drive one by one, or nothing at all.
pub(super) struct ReadingPack {
    path: String,
    root: String,
    store: LocalStore,
    guard: Arc<Guard>,
}

impl ReadingPack {
    pub(super) fn new(path: String, root: String, store: LocalStore, guard: Arc<Guard>) -> ReadingPack {
        ReadingPack { path, root, store, guard }
    }

    /// Resources below the root, without packs: two that contain each other would have no end.
    fn paths(&self) -> Vec<String> {
        let below = format!("{}/", self.root);
        let is_pack =
            |path: &String| self.store.find(path).is_ok_and(|resource| resource.link().attribute("if") == Some(PACK));
        let of = |path: &String| (path.starts_with(&below) || *path == self.root) && !is_pack(path);
        self.store.paths().into_iter().filter(of).collect()
    }

    /// Looks whether `caller` may use one of these methods on the resource at `path` itself, by the rules from before the resource
    /// was found, and by those now, in case both are changing.
    fn check(
        &self,
        before: &[Arc<GuardRules>],
        path: &str,
        methods: &[Code],
        caller: Option<&Caller>,
    ) -> Result<(), ResourceError> {
        let Some(caller) = caller else { return Ok(()) };
        let refuse = |method: &Code| {
            let add = |request: RequestBuf, part: &str| request.with_option(OptionNumber::URI_PATH, part.as_bytes());
            let request = path.split('/').fold(RequestBuf::new(*method, ""), add);
            let request = request.view().of(caller);
            let refused_before = before.iter().find_map(|rules| rules.refuse(&request, caller));
            refused_before.or_else(|| self.guard.refuse(&request, caller))
        };
        let refusals: Option<Vec<Response>> = methods.iter().map(refuse).collect();
        match refusals.and_then(|refusals| refusals.into_iter().next()) {
            None => Ok(()),
            Some(refusal) => {
                let reason = String::from_utf8_lossy(&refusal.payload);
                Err(ResourceError::Refused(refusal.code, format!("/{path} is in the pack: {reason}")))
            }
        }
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
        self.get_for(request, None)
    }

    fn get_for(&self, request: &Get<'_>, caller: Option<&Caller>) -> Result<ResourceRepresentation, ResourceError> {
        let format = negotiate(&FORMATS, request.accept)?;
        let (mut records, mut max_age) = (Vec::new(), Duration::MAX);
        let ask = Get { accept: Some(content_format::SENML_CBOR), queries: &[] };
        let before = self.guard.in_force();
        let find = |path: String| self.store.find(&path).ok().map(|resource| (path, resource));
        let found: Vec<_> = self.paths().into_iter().filter_map(find).filter(|(_, one)| one.has_state()).collect();
        // Looked at before anything is read.
        found.iter().try_for_each(|(path, _)| self.check(&before, path, &[Code::GET], caller))?;
        for (path, resource) in found {
            // What cannot be read at present is no reading.
            let Ok(reading) = resource.get_for(&ask, caller) else { continue };
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

    fn put(&self, request: &Put<'_>) -> Result<(), ResourceError> {
        self.put_for(request, None)
    }

    /// Drives what the records name, in their order; the first that fails ends it.
    fn put_for(&self, request: &Put<'_>, caller: Option<&Caller>) -> Result<(), ResourceError> {
        let format = request.content_format.ok_or(ResourceError::UnsupportedFormat)?;
        if !FORMATS.contains(&format) {
            return Err(ResourceError::UnsupportedFormat);
        }
        let bad = |reason: String| ResourceError::BadRequest(reason);
        let records = senml::parse(format, request.payload).map_err(|error| bad(error.to_string()))?;
        let (before, paths) = (self.guard.in_force(), self.paths());
        // All names are looked at before anything moves.
        let mut orders = Vec::with_capacity(records.len());
        for record in records {
            let path = paths.iter().find(|path| senml_name(path) == record.name);
            let path = path.ok_or_else(|| bad(format!("there is no /{} below /{}", record.name, self.root)))?;
            let resource = self.store.find(path)?;
            // Resources understand both methods alike.
            self.check(&before, path, &[Code::PUT, Code::POST], caller)?;
            let value = record.value.ok_or_else(|| bad(format!("{} has no value", record.name)))?;
            orders.push((resource, value));
        }
        for (resource, value) in orders {
            let text = value.to_string();
            resource.put_for(&Put { content_format: None, payload: text.as_bytes(), queries: &[] }, caller)?;
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
    use super::*;

    #[test]
    fn packs_that_contain_each_other_have_an_end() {
        let store = LocalStore::new();
        for path in ["s/a", "s/b", "s"] {
            let pack = ReadingPack::new(path.to_owned(), "s".to_owned(), store.clone(), Arc::default());
            store.insert(Arc::new(pack)).expect("a place");
        }
        let ask = Get { accept: None, queries: &[] };
        let error = store.find("s/a").expect("there").get(&ask).expect_err("no reading");
        assert!(matches!(error, ResourceError::Unavailable(..)), "{error}");
    }
}
