//! The participant, with a store where shapes are to outlive their publisher.

use thalweg::configuration::{Configuration, SettingOrigin};
use thalweg::{DomainParticipant, ErrorKind};

use super::creation;
use super::options::{DurabilityWord, ShapesOptions};
use crate::outcome::Failure;
use crate::state_folder;

/// Publishers of PERSISTENT shapes of one user and domain at once: each has a store of its own.
const STORES_MAX: u32 = 16;

/// Joins the domain. A publisher of PERSISTENT shapes keeps them where `participant.store` of the configuration says, else in the first
/// file of the user's state that no other publisher has open: the next one goes on with what it finds there.
///
/// # Errors
/// The configuration is not understood, there is no home for the file or none is free, or the participant cannot be created.
pub fn create(options: &ShapesOptions) -> Result<DomainParticipant, Failure> {
    let builder = || DomainParticipant::builder(options.domain);
    let persists = options.publishes() && options.durability == DurabilityWord::Persistent;
    if !persists || has_store()? {
        return builder().create().map_err(creation);
    }
    let folder = state_folder::of_user().ok_or_else(|| {
        Failure::Usage(
            "there is no home for PERSISTENT shapes; set HOME, XDG_STATE_HOME or participant.store".to_owned(),
        )
    })?;
    let folder = folder.join("shapes");
    std::fs::create_dir_all(&folder).map_err(|error| Failure::Failed(format!("{}: {error}", folder.display())))?;
    let open = |number: u32| builder().store(folder.join(format!("domain-{}-{number}", options.domain))).create();
    let mut opened = (0..STORES_MAX)
        .map(open)
        .skip_while(|opened| opened.as_ref().is_err_and(|error| error.kind() == ErrorKind::PreconditionNotMet));
    let none_free = || Failure::Usage(format!("{STORES_MAX} publishers of PERSISTENT shapes are there already"));
    opened.next().ok_or_else(none_free)?.map_err(creation)
}

/// Whether the configuration names a store.
fn has_store() -> Result<bool, Failure> {
    let settings = Configuration::from_environment().map_err(creation)?.settings();
    Ok(settings.iter().any(|setting| setting.key == "participant.store" && setting.origin != SettingOrigin::Default))
}
