//! The variables of the environment.

use std::ffi::OsString;
use std::fmt;
use std::sync::Arc;

use super::participant::DOMAIN_MAX;
use super::{Configuration, SettingOrigin, Sourced};
use crate::{Error, ErrorKind};

impl Configuration {
    /// The settings with those of the environment in their place; `variable` reads one, `None` where it is not set.
    pub(crate) fn with_variables(
        mut self,
        variable: impl Fn(&str) -> Option<OsString>,
    ) -> Result<Configuration, Error> {
        let settings = &mut Arc::make_mut(&mut self.parts).participant;
        let text_of = |name: &'static str| -> Result<Option<String>, Error> {
            let text = variable(name).map(OsString::into_string).transpose();
            text.map_err(|value| refused(name, &value, "it is not UTF-8"))
        };
        let domain = |name: &'static str| text_of(name).map(|text| text.map(|text| (name, text)));
        let domain = match domain("THALWEG_DOMAIN")? {
            None => domain("ROS_DOMAIN_ID")?,
            given => given,
        };
        if let Some((name, text)) = domain {
            let value = text.trim().parse().ok().filter(|domain| *domain <= DOMAIN_MAX);
            let value = value.ok_or_else(|| refused(name, &text, "a domain is 0 to 232"))?;
            settings.domain = Sourced { value, origin: SettingOrigin::Environment(name) };
        }
        if let Some(text) = text_of("ROS_STATIC_PEERS")? {
            let peers = text.split(';').map(str::trim).filter(|peer| !peer.is_empty()).map(str::to_owned);
            let peers: Vec<String> = settings.peers.value.drain(..).chain(peers).collect();
            settings.peers = Sourced { value: peers, origin: SettingOrigin::Environment("ROS_STATIC_PEERS") };
        }
        let Some(range) = text_of("ROS_AUTOMATIC_DISCOVERY_RANGE")? else { return Ok(self) };
        let origin = SettingOrigin::Environment("ROS_AUTOMATIC_DISCOVERY_RANGE");
        match range.trim() {
            "SUBNET" | "SYSTEM_DEFAULT" | "NOT_SET" => {}
            // Participants of this host are announced to without multicast. The other interfaces are for static peers, those that a program
            // names among them, and for participants elsewhere whose static peer this host is.
            "LOCALHOST" => settings.network.multicast = Sourced { value: false, origin },
            "OFF" => {
                settings.network.loopback_only = Sourced { value: true, origin: origin.clone() };
                settings.network.multicast = Sourced { value: false, origin: origin.clone() };
                // Participants of other tags do not meet (DDSI-RTPS 2.5 §8.5.3.2), on this host neither.
                let value = format!("off {} {:x}", std::process::id(), thalweg_transport::clock::now().as_nanos());
                settings.domain_tag = Sourced { value, origin: origin.clone() };
                settings.peers = Sourced { value: Vec::new(), origin };
                settings.is_alone = true;
            }
            other => {
                let known = "known are SUBNET, LOCALHOST, OFF and SYSTEM_DEFAULT";
                return Err(refused("ROS_AUTOMATIC_DISCOVERY_RANGE", &other, known));
            }
        }
        Ok(self)
    }
}

fn refused(name: &'static str, value: &dyn fmt::Debug, rule: &str) -> Error {
    Error::new(ErrorKind::BadParameter, "configuration", format!("failed: {name} is {value:?}; {rule}"))
}
