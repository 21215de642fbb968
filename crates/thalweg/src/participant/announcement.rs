//! What a participant says of itself: one datagram carries all of it.

use thalweg_rtps::discovery::groups::Groups;
use thalweg_rtps::discovery::participant_data::PROPERTIES_MAX;
use thalweg_rtps::participant::ParticipantConfig;

use crate::{Error, ErrorKind};

/// Most bytes of name, domain tag, USER_DATA, properties and groups together. Chosen by Thalweg: announcements leave unfragmented, in
/// datagrams of at most 65,507 bytes, which tell addresses as well.
const DESCRIPTION_MAX_BYTES: usize = 60_000;
/// Longest domain tag: `string<256>` (RTPS 2.5 §9.6.3) less its terminating NUL.
const DOMAIN_TAG_MAX_BYTES: usize = 255;
/// Most bytes of a text beside its own: length, terminating NUL, padding.
const TEXT_HEAD_BYTES: usize = 8;
/// Properties that every announcement may have beside those of the configuration: batches and groups.
const PROPERTIES_ADDED_MAX: usize = 2;

/// Refuses what others would not hear of, or would read as something else. `groups` are those that are to be announced.
///
/// # Errors
/// [`ErrorKind::BadParameter`] for a text with a NUL, a domain tag above 255 bytes, more properties than participants read, or more than
/// 60,000 bytes together.
pub(super) fn check_announcement(
    operation: &'static str,
    config: &ParticipantConfig,
    groups: &Groups,
) -> Result<(), Error> {
    let refuse = |cause: String, advice| Err(Error::new(ErrorKind::BadParameter, operation, cause).advise(advice));
    if let Some(what) = text_with_nul(config) {
        return refuse(
            format!("failed: {what} contains a NUL character"),
            "use text without NUL, which ends it for others",
        );
    }
    let tag_bytes = config.domain_tag.len();
    if tag_bytes > DOMAIN_TAG_MAX_BYTES {
        return refuse(format!("failed: the domain tag has {tag_bytes} bytes"), "use at most 255 bytes");
    }
    let properties = config.properties.len() + PROPERTIES_ADDED_MAX;
    if properties > PROPERTIES_MAX {
        let cause = format!("failed: with Thalweg's own, there are {properties} properties");
        return refuse(cause, "announce fewer, since participants read 64");
    }
    let bytes = description_bytes(config, groups);
    if bytes > DESCRIPTION_MAX_BYTES {
        let cause = format!("failed: name, domain tag, USER_DATA, properties and groups have {bytes} bytes together");
        return refuse(cause, "use at most 60000 bytes, which one datagram carries");
    }
    Ok(())
}

fn text_with_nul(config: &ParticipantConfig) -> Option<&'static str> {
    let named = [("the name", &config.entity_name), ("the domain tag", &config.domain_tag)];
    let of_properties =
        config.properties.iter().flat_map(|(name, value)| [("a property", name), ("a property", value)]);
    named.into_iter().chain(of_properties).find(|(_, text)| text.contains('\0')).map(|(what, _)| what)
}

fn description_bytes(config: &ParticipantConfig, groups: &Groups) -> usize {
    let text = |text: &str| text.len() + TEXT_HEAD_BYTES;
    let properties: usize = config.properties.iter().map(|(name, value)| text(name) + text(value)).sum();
    // They stand in USER_DATA and in a property.
    let groups = if groups.is_empty() { 0 } else { 2 * text(&groups.to_string()) };
    text(&config.entity_name) + text(&config.domain_tag) + config.user_data.len() + properties + groups
}
