//! Folders of ROS 2's rosbag2: `metadata.yaml` and the files that it names.

use std::path::{Path, PathBuf};

use crate::error::RecordingError;

/// The files of recordings: a folder of rosbag2 stands for those that its `metadata.yaml` names, in that order.
///
/// # Errors
/// A folder has no such file, or its files are no MCAP files, or rosbag2 compressed them or the messages in them.
pub fn recording_files(paths: &[PathBuf]) -> Result<Vec<PathBuf>, RecordingError> {
    let mut out = Vec::new();
    for path in paths {
        if path.is_dir() { out.extend(files_of_bag(path)?) } else { out.push(path.clone()) }
    }
    Ok(out)
}

fn files_of_bag(folder: &Path) -> Result<Vec<PathBuf>, RecordingError> {
    let path = folder.join(METADATA);
    let failed = |error: &dyn std::fmt::Display| RecordingError::of_file(&path, error);
    let text = std::fs::read_to_string(&path).map_err(|error| failed(&error))?;
    let found = BagMetadata::read(&text);
    match (found.storage.as_deref(), found.compression.as_deref()) {
        (Some("mcap"), None | Some("" | "none" | "NONE")) => {}
        (Some("mcap"), Some("message" | "MESSAGE")) => {
            return Err(failed(
                &"each of its messages is compressed by itself (compression_mode MESSAGE), which nobody unpacks here; \
                  `ros2 bag convert` makes one of it whose messages are not",
            ));
        }
        (Some("mcap"), Some(mode)) => {
            return Err(failed(&format!(
                "its files are compressed as wholes (compression_mode {mode}); unpack them, and name them one by one"
            )));
        }
        (Some(other), _) => {
            return Err(failed(&format!(
                "its storage is {other}, not mcap; `ros2 bag convert` makes one of the other"
            )));
        }
        (None, _) => return Err(failed(&"it has no storage_identifier: it is no metadata of rosbag2")),
    }
    if found.files.is_empty() {
        return Err(failed(&"it names no files (relative_file_paths)"));
    }
    // Only files of the folder, whatever the text says.
    let names = found.files.iter().filter_map(|name| Path::new(name).file_name());
    Ok(names.map(|name| folder.join(name)).collect())
}

/// What is wanted of the metadata, which programs write as blocks of `key: value`, a line each.
#[derive(Debug, Default, PartialEq, Eq)]
struct BagMetadata {
    storage: Option<String>,
    compression: Option<String>,
    files: Vec<String>,
}

impl BagMetadata {
    fn read(text: &str) -> BagMetadata {
        let mut found = BagMetadata::default();
        let mut is_list = false;
        for line in text.lines().map(str::trim) {
            if let Some(item) = line.strip_prefix("- ").filter(|_| is_list) {
                found.files.push(bare(item));
                continue;
            }
            let (key, value) = line.split_once(':').unwrap_or((line, ""));
            is_list = key == "relative_file_paths";
            match key {
                "storage_identifier" => found.storage = Some(bare(value)),
                "compression_mode" => found.compression = Some(bare(value)),
                _ => {}
            }
        }
        found
    }
}

/// A scalar without its quotes.
fn bare(value: &str) -> String {
    value.trim().trim_matches(['"', '\'']).to_owned()
}

/// Name of the file.
const METADATA: &str = "metadata.yaml";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::files::Folder;

    const HEAD: &str = "rosbag2_bagfile_information:\n  version: 9\n  storage_identifier: mcap\n";

    fn files(folder: &Folder, text: &str) -> Result<Vec<String>, String> {
        std::fs::write(folder.0.join(METADATA), text).expect("written");
        let found = recording_files(&[PathBuf::from("a.mcap"), folder.0.clone()]).map_err(|error| error.to_string())?;
        Ok(found.iter().map(|path| path.strip_prefix(&folder.0).unwrap_or(path).display().to_string()).collect())
    }

    #[test]
    fn the_files_of_a_bag_are_those_that_it_names_within_its_folder() {
        let folder = Folder::new("bag-folder");
        let listed = "  relative_file_paths:\n    - run_0.mcap\n    - \"../other/run_1.mcap\"\n  duration:\n    nanoseconds: 5\n";
        let topics =
            "  topics_with_message_count:\n    - topic_metadata:\n        name: /a\n  compression_mode: \"\"\n";
        assert_eq!(
            files(&folder, &format!("{HEAD}{listed}{topics}")),
            Ok(["a.mcap", "run_0.mcap", "run_1.mcap"].map(str::to_owned).to_vec())
        );
        let check = |text: &str, wanted: &str| {
            let error = files(&folder, text).expect_err("it is refused");
            assert!(error.contains(wanted), "{error}");
        };
        check(&HEAD.replace("mcap", "sqlite3"), "its storage is sqlite3, not mcap");
        check(&format!("{HEAD}  compression_mode: FILE\n{listed}"), "compressed as wholes");
        for mode in ["MESSAGE", "message"] {
            check(&format!("{HEAD}  compression_mode: {mode}\n{listed}"), "`ros2 bag convert`");
        }
        for mode in ["NONE", "none"] {
            assert!(files(&folder, &format!("{HEAD}  compression_mode: {mode}\n{listed}")).is_ok(), "{mode}");
        }
        check(HEAD, "it names no files");
        check("some: text", "no metadata of rosbag2");
        std::fs::remove_file(folder.0.join(METADATA)).expect("removed");
        let error = recording_files(std::slice::from_ref(&folder.0)).expect_err("no metadata");
        assert!(error.to_string().contains("metadata.yaml"), "{error}");
    }
}
