//! Which process a participant runs in, as properties tell it.

use std::path::Path;

use thalweg_rtps::discovery::participant_data::ParticipantData;
use thalweg_transport::host;

/// Host, process and program of a participant, as far as it announces them.
///
/// Thalweg announces the properties of Cyclone DDS, `__Hostname`, `__Pid` and `__ProcessName`, which that project's tools show of
/// any participant. Those of Fast DDS (`fastdds.physical_data.host` and `.process`) and RTI Connext (`dds.sys_info.hostname`,
/// `.process_id` and `.executable_filepath`) are understood as well.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProcessDescription {
    /// Name of the host; of Fast DDS whatever tells its hosts apart.
    pub host: Option<String>,
    /// Process id, as text since other vendors may call their processes as they like.
    pub process_id: Option<String>,
    /// File name of the program.
    pub program: Option<String>,
}

const HOST: [&str; 3] = ["__Hostname", "dds.sys_info.hostname", "fastdds.physical_data.host"];
const PROCESS_ID: [&str; 3] = ["__Pid", "dds.sys_info.process_id", "fastdds.physical_data.process"];
const PROGRAM: [&str; 2] = ["__ProcessName", "dds.sys_info.executable_filepath"];

impl ProcessDescription {
    /// The description that a participant announces.
    pub fn of(data: &ParticipantData) -> ProcessDescription {
        let find = |names: &[&str]| {
            let properties = || data.properties.iter().filter(|(_, value)| !value.is_empty());
            let value = names.iter().find_map(|name| properties().find(|property| property.0 == *name));
            value.map(|(_, value)| value.clone())
        };
        ProcessDescription {
            host: find(&HOST).map(host_name),
            process_id: find(&PROCESS_ID),
            program: find(&PROGRAM).map(|path| file_name(&path)),
        }
    }

    pub(super) fn of_this_process() -> ProcessDescription {
        let program = std::env::current_exe().ok().map(|path| file_name(&path.to_string_lossy()));
        ProcessDescription { host: host::name(), process_id: Some(std::process::id().to_string()), program }
    }

    /// Announces the description, except for properties that the application has set itself.
    pub(super) fn add_to(self, properties: &mut Vec<(String, String)>) {
        let told = [(HOST[0], self.host), (PROCESS_ID[0], self.process_id), (PROGRAM[0], self.program)];
        for (name, value) in told {
            if let Some(value) = value.filter(|_| properties.iter().all(|property| property.0 != name)) {
                properties.push((name.to_owned(), value));
            }
        }
    }
}

/// The name without the number that Fast DDS 2 puts behind it.
fn host_name(host: String) -> String {
    match host.rsplit_once(':') {
        Some((name, number)) if !name.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()) => name.to_owned(),
        _ => host,
    }
}

/// The last part of a path of either kind of system.
fn file_name(path: &str) -> String {
    let windows = path.rsplit('\\').next().unwrap_or(path);
    let name = Path::new(windows).file_name().map(|name| name.to_string_lossy().into_owned());
    name.unwrap_or_else(|| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use thalweg_rtps::types::GuidPrefix;

    #[track_caller]
    fn check(properties: &[(&str, &str)], host: Option<&str>, process_id: Option<&str>, program: Option<&str>) {
        let mut data = ParticipantData::new(GuidPrefix([1; 12]));
        data.properties = properties.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        let told = ProcessDescription::of(&data);
        assert_eq!(
            (told.host.as_deref(), told.process_id.as_deref(), told.program.as_deref()),
            (host, process_id, program)
        );
    }

    #[test]
    fn each_vendor_has_its_own_names_for_host_process_and_program() {
        check(&[("a", "b"), ("__Hostname", "")], None, None, None);
        let cyclone = [("__ProcessName", "talker"), ("__Pid", "42"), ("__Hostname", "robot")];
        check(&cyclone, Some("robot"), Some("42"), Some("talker"));
        let fast =
            [("fastdds.physical_data.host", "golden-host:1078065610777559"), ("fastdds.physical_data.process", "42")];
        check(&fast, Some("golden-host"), Some("42"), None);
        check(&[("fastdds.physical_data.host", "01:0f")], Some("01:0f"), None, None);
        let connext = [
            ("dds.sys_info.hostname", "robot"),
            ("dds.sys_info.process_id", "42"),
            ("dds.sys_info.executable_filepath", "/opt/bin/talker"),
        ];
        check(&connext, Some("robot"), Some("42"), Some("talker"));
        check(&[("dds.sys_info.executable_filepath", "C:\\x\\talker.exe")], None, None, Some("talker.exe"));
    }

    #[test]
    fn what_the_application_says_itself_is_left_alone() {
        let mut properties = vec![("__Hostname".to_owned(), "somewhere".to_owned())];
        ProcessDescription::of_this_process().add_to(&mut properties);
        let hosts: Vec<&str> = properties.iter().filter(|one| one.0 == "__Hostname").map(|one| &*one.1).collect();
        assert_eq!(hosts, ["somewhere"]);
        assert!(properties.contains(&("__Pid".to_owned(), std::process::id().to_string())), "{properties:?}");
    }
}
