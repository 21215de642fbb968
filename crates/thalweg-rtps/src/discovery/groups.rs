//! Communication groups: they decide which participants of a domain discover each other.
//!
//! A participant's groups stand in its USER_DATA as an entry `groups=radar,ops;` beside whatever else is there (ROS 2 writes
//! `enclave=/;`), so that programs of other vendors can take part by setting the same bytes, and in the property
//! [`GROUPS_PROPERTY`]. Participants without groups form the group [`DEFAULT_GROUP`]. Two participants meet when they have a
//! group in common, or when one of them is in [`EVERY_GROUP`].

use std::collections::BTreeSet;
use std::fmt;

use super::participant_data::ParticipantData;

/// Property that carries the groups, separated by commas. It takes precedence over USER_DATA, which belongs to the application.
pub const GROUPS_PROPERTY: &str = "thalweg.groups";
/// The group of participants that name none.
pub const DEFAULT_GROUP: &str = "default";
/// A group that meets every other one; for tools that inspect a whole domain.
pub const EVERY_GROUP: &str = "*";

/// Most groups of one participant; more are refused at creation, and not read from peers.
pub const GROUPS_MAX: usize = 64;
/// Longest name of a group, in bytes.
pub const GROUP_NAME_MAX_BYTES: usize = 64;

/// Beginning of the entry in USER_DATA.
const ENTRY: &str = "groups=";

/// The groups of one participant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Groups(BTreeSet<String>);

/// Why a participant cannot be in these groups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GroupsError {
    /// The name is empty, too long, begins or ends with a space, or has one of `,` `;` `=` or a control character.
    BadName(String),
    /// More than [`GROUPS_MAX`].
    TooMany(usize),
    /// The application's USER_DATA has an entry `groups=` of its own.
    InUserData,
}

impl fmt::Display for GroupsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GroupsError::BadName(name) => write!(
                f,
                "{name:?} cannot name a communication group: 1 to {GROUP_NAME_MAX_BYTES} bytes without comma, semicolon, \
                 equals sign, control characters, and spaces at either end"
            ),
            GroupsError::TooMany(count) => write!(f, "{count} communication groups are more than {GROUPS_MAX}"),
            GroupsError::InUserData => {
                f.write_str("USER_DATA has an entry groups= already; name the groups there or here, not in both places")
            }
        }
    }
}

impl std::error::Error for GroupsError {}

impl Groups {
    /// These groups, each once; none means [`DEFAULT_GROUP`].
    ///
    /// # Errors
    /// [`GroupsError::BadName`] and [`GroupsError::TooMany`].
    pub fn new(names: impl IntoIterator<Item = impl Into<String>>) -> Result<Groups, GroupsError> {
        let names: BTreeSet<String> = names.into_iter().map(Into::into).collect();
        if let Some(bad) = names.iter().find(|name| !is_name(name)) {
            return Err(GroupsError::BadName(bad.clone()));
        }
        if names.len() > GROUPS_MAX {
            return Err(GroupsError::TooMany(names.len()));
        }
        Ok(Groups(names))
    }

    /// The groups that a participant announces.
    pub fn of(data: &ParticipantData) -> Groups {
        let property = data.properties.iter().find(|(name, _)| name == GROUPS_PROPERTY);
        match property {
            Some((_, value)) => Groups::from_list(value),
            None => entry_of(&data.user_data).map(|list| Groups::from_list(&list)).unwrap_or_default(),
        }
    }

    /// Invalid names are left out: they are no reason to ignore the participant.
    fn from_list(list: &str) -> Groups {
        Groups(
            list.split(',').map(str::trim).filter(|name| is_name(name)).take(GROUPS_MAX).map(str::to_owned).collect(),
        )
    }

    /// Whether no group is named, so that the participant is in [`DEFAULT_GROUP`].
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The names in alphabetical order; none for the default group.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    /// Whether participants of these groups discover each other.
    pub fn meet(&self, other: &Groups) -> bool {
        let has = |groups: &Groups, name: &str| match groups.is_empty() {
            true => name == DEFAULT_GROUP,
            false => groups.0.contains(name),
        };
        has(self, EVERY_GROUP)
            || has(other, EVERY_GROUP)
            || self.is_empty() && has(other, DEFAULT_GROUP)
            || self.names().any(|name| has(other, name))
    }

    /// Adds the entry to an application's USER_DATA, with a semicolon between them.
    ///
    /// # Errors
    /// [`GroupsError::InUserData`].
    pub fn add_to_user_data(&self, user_data: &mut Vec<u8>) -> Result<(), GroupsError> {
        if self.is_empty() {
            return Ok(());
        }
        if entry_of(user_data).is_some() {
            return Err(GroupsError::InUserData);
        }
        if user_data.last().is_some_and(|last| *last != b';') {
            user_data.push(b';');
        }
        user_data.extend_from_slice(format!("{ENTRY}{self};").as_bytes());
        Ok(())
    }
}

impl fmt::Display for Groups {
    /// The names, separated by commas.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, name) in self.names().enumerate() {
            write!(f, "{}{name}", if position == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}

fn is_name(name: &str) -> bool {
    let fits = (1..=GROUP_NAME_MAX_BYTES).contains(&name.len());
    fits && name.trim() == name && !name.contains([',', ';', '=']) && !name.contains(char::is_control)
}

/// The list behind `groups=` in USER_DATA; C programs may have left a NUL at the end.
fn entry_of(user_data: &[u8]) -> Option<String> {
    let entries = user_data.split(|byte| matches!(byte, b';' | 0));
    let mut lists = entries.filter_map(|entry| entry.trim_ascii_start().strip_prefix(ENTRY.as_bytes()));
    lists.next().map(|list| String::from_utf8_lossy(list).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::GuidPrefix;

    fn announced(user_data: &[u8], property: Option<&str>) -> String {
        let mut data = ParticipantData::new(GuidPrefix([1; 12]));
        data.user_data = user_data.to_vec();
        data.properties = property.map(|value| (GROUPS_PROPERTY.to_owned(), value.to_owned())).into_iter().collect();
        Groups::of(&data).to_string()
    }

    #[test]
    fn groups_are_read_beside_other_user_data_and_from_the_property() {
        assert_eq!(announced(b"", None), "");
        assert_eq!(announced(b"groups=radar,ops;", None), "ops,radar");
        assert_eq!(announced(b"enclave=/x;groups=radar", None), "radar");
        assert_eq!(announced(b"groups= radar , ,ops\0", None), "ops,radar");
        assert_eq!(announced(b"mygroups=radar;", None), "");
        assert_eq!(announced(b"\xff\xfe;groups=r\xffdar,ok;", None), "ok,r\u{fffd}dar");
        assert_eq!(announced(b"groups=radar;", Some("ops")), "ops");
        let many: Vec<String> = (0..1000).map(|number| format!("g{number:03}")).collect();
        assert_eq!(announced(format!("groups={};", many.join(",")).as_bytes(), None).split(',').count(), GROUPS_MAX);
    }

    #[test]
    fn groups_join_user_data_without_disturbing_it() {
        let groups = Groups::new(["radar", "ops"]).expect("names");
        for (before, after) in
            [("", "groups=ops,radar;"), ("enclave=/;", "enclave=/;groups=ops,radar;"), ("x", "x;groups=ops,radar;")]
        {
            let mut bytes = before.as_bytes().to_vec();
            assert_eq!(groups.add_to_user_data(&mut bytes), Ok(()));
            assert_eq!(String::from_utf8_lossy(&bytes), after);
            assert_eq!(announced(&bytes, None), "ops,radar");
            assert_eq!(groups.add_to_user_data(&mut bytes), Err(GroupsError::InUserData));
        }
    }

    #[test]
    fn names_that_the_format_cannot_carry_are_refused() {
        for bad in ["", "a,b", "a;b", "a=b", "a\0", " a", "a\n", &"x".repeat(65)] {
            assert_eq!(Groups::new([bad]), Err(GroupsError::BadName(bad.to_owned())));
        }
        assert_eq!(Groups::new((0..65).map(|number| number.to_string())), Err(GroupsError::TooMany(65)));
        assert!(Groups::new(["überwachung", "a b", "*"]).is_ok());
    }

    #[test]
    fn those_meet_who_share_a_group() {
        let check = |one: &[&str], other: &[&str], expect: bool| {
            let groups = |names: &[&str]| Groups::new(names.iter().copied()).expect("names");
            assert_eq!(groups(one).meet(&groups(other)), expect, "{one:?} {other:?}");
            assert_eq!(groups(other).meet(&groups(one)), expect, "{other:?} {one:?}");
        };
        check(&[], &[], true);
        check(&["a"], &["a", "b"], true);
        check(&["a"], &["b"], false);
        check(&["a"], &[], false);
        check(&["a", "default"], &[], true);
        check(&["a", "default"], &["default"], true);
        check(&["*"], &["b"], true);
        check(&["*"], &[], true);
    }
}
