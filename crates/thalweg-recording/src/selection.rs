//! Which topics are meant.

use std::fmt;

use thalweg_base::wildcards::fits_wildcards;

use crate::schema::shown_topic;

/// Names of topics with wildcards `*` and `?`; without any, all are meant.
#[derive(Clone, Debug, Default)]
pub struct TopicSelection {
    chosen: Vec<String>,
    excluded: Vec<String>,
}

/// Why a topic is replayed only where it is chosen by its name, or by a pattern that fits it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Withheld {
    /// The requests or replies of a service or action of ROS 2: servers would carry out the requests again, and clients take the replies for
    /// theirs. `ros2 bag` publishes requests where it is told to only.
    Requests,
    /// What the nodes of ROS 2 tell of themselves, by which others would believe that the recorded ones are there.
    Graph,
}

/// A clause that goes on after the topic's name.
impl fmt::Display for Withheld {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Withheld::Requests => "requests or replies of a service or action, which would be carried out again",
            Withheld::Graph => "tells of nodes that are not there",
        })
    }
}

impl TopicSelection {
    /// Topics whose name fits one of `chosen`, if there are any, and none of `excluded`.
    pub fn new(chosen: Vec<String>, excluded: Vec<String>) -> TopicSelection {
        TopicSelection { chosen, excluded }
    }

    /// Whether a topic is meant, by its name on the wire or as ROS 2 shows it.
    pub fn has(&self, name: &str) -> bool {
        (self.chosen.is_empty() || fits_any(&self.chosen, name)) && !fits_any(&self.excluded, name)
    }

    /// Why a topic, by its name on the wire, is not to be replayed though it is meant; `None` where it is, such as one that is chosen by its
    /// name.
    pub fn withheld(&self, name: &str) -> Option<Withheld> {
        let kind = match name.split_once('/') {
            Some(("rq" | "rr", _)) => Withheld::Requests,
            None if name == ROS_GRAPH => Withheld::Graph,
            _ => return None,
        };
        (self.has(name) && !fits_any(&self.chosen, name)).then_some(kind)
    }

    /// The chosen and excluded names and patterns that fit none of these names, which are those on the wire.
    pub fn idle_patterns(&self, names: &[&str]) -> Vec<String> {
        let is_idle = |pattern: &&String| !names.iter().any(|name| fits(pattern, name));
        self.chosen.iter().chain(&self.excluded).filter(is_idle).cloned().collect()
    }
}

fn fits_any(patterns: &[String], name: &str) -> bool {
    patterns.iter().any(|pattern| fits(pattern, name))
}

fn fits(pattern: &str, name: &str) -> bool {
    fits_wildcards(pattern, name) || fits_wildcards(pattern, &shown_topic(name))
}

/// The topic in which participants of ROS 2 tell their nodes with their writers and readers (`rmw_dds_common`).
const ROS_GRAPH: &str = "ros_discovery_info";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_stars_and_question_marks_of_a_choice_stand_for_others() {
        let has = |chosen: &str, name: &str| TopicSelection::new(vec![chosen.to_owned()], Vec::new()).has(name);
        assert!(has("cam*", "camera[0]") && has("camera[?]", "camera[0]") && has("/cam*", "rt/camera"));
        assert!(!has("camera[0]", "camera0") && !has("rt/a", "rt/?"));
    }
}
