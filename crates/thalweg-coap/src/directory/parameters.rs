//! The parameters of a registration (RFC 9176 §5).

use std::time::Duration;

use super::{DirectoryError, EndpointName};
use crate::link_format;

/// What the query of a registration or of an update says.
#[derive(Debug, Default)]
pub(super) struct Parameters {
    endpoint: Option<String>,
    sector: Option<String>,
    pub base: Option<String>,
    pub lifetime: Option<Duration>,
    /// Further attributes of the endpoint, those with the same name one behind the other.
    pub attributes: Vec<(String, String)>,
}

impl Parameters {
    pub(super) fn read<'a>(queries: impl Iterator<Item = &'a str>) -> Result<Parameters, DirectoryError> {
        let mut read = Parameters::default();
        for argument in queries {
            let (name, value) = argument.split_once('=').unwrap_or((argument, ""));
            match name {
                "ep" => put(&mut read.endpoint, name, endpoint_name(name, value)?)?,
                "d" => put(&mut read.sector, name, endpoint_name(name, value)?)?,
                "lt" => put(&mut read.lifetime, name, lifetime(value)?)?,
                "base" => put(&mut read.base, name, value.to_owned())?,
                _ if !link_format::is_attribute_name(name) => {
                    return Err(DirectoryError::Bad(format!("{name:?} is no name of an attribute")));
                }
                _ if value.contains(['"', '\\']) || value.chars().any(char::is_control) => {
                    return Err(DirectoryError::Bad(format!("{name} has letters that no attribute has")));
                }
                _ => read.attributes.push((name.to_owned(), value.to_owned())),
            }
        }
        check_count(&read.attributes)?;
        Ok(read)
    }

    /// Whether it says of which endpoint the registration is.
    pub(super) fn has_name(&self) -> bool {
        self.endpoint.is_some() || self.sector.is_some()
    }

    /// The endpoint.
    pub(super) fn name(&self) -> Result<EndpointName, DirectoryError> {
        let endpoint = self.endpoint.clone();
        let endpoint = endpoint.ok_or_else(|| DirectoryError::Bad("ep is needed: the endpoint's name".to_owned()))?;
        Ok(EndpointName { endpoint, sector: self.sector.clone().unwrap_or_default() })
    }
}

pub(super) fn check_count(attributes: &[(String, String)]) -> Result<(), DirectoryError> {
    if attributes.len() > ATTRIBUTES_MAX {
        let reason = format!("at most {ATTRIBUTES_MAX} attributes are registered, not {}", attributes.len());
        return Err(DirectoryError::Bad(reason));
    }
    Ok(())
}

fn endpoint_name(name: &str, value: &str) -> Result<String, DirectoryError> {
    if value.is_empty() || value.len() > NAME_MAX_BYTES || value.chars().any(char::is_control) {
        return Err(DirectoryError::Bad(format!("{name} is a name of 1 to {NAME_MAX_BYTES} bytes")));
    }
    Ok(value.to_owned())
}

fn lifetime(value: &str) -> Result<Duration, DirectoryError> {
    let seconds = value.parse::<u32>().ok().filter(|seconds| *seconds > 0);
    let wrong = || DirectoryError::Bad("lt is a number of seconds, 1 to 4294967295".to_owned());
    seconds.map(|seconds| Duration::from_secs(seconds.into())).ok_or_else(wrong)
}

fn put<T>(place: &mut Option<T>, name: &str, value: T) -> Result<(), DirectoryError> {
    match place.replace(value) {
        Some(_) => Err(DirectoryError::Bad(format!("{name} stands there twice"))),
        None => Ok(()),
    }
}

/// RFC 9176 §5: names of up to 63 bytes.
const NAME_MAX_BYTES: usize = 63;
const ATTRIBUTES_MAX: usize = 32;
