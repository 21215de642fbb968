//! Which topics are meant.

use crate::schema::shown_topic;

/// Names of topics with wildcards `*` and `?`; without any, all are meant.
#[derive(Clone, Debug, Default)]
pub struct TopicSelection {
    chosen: Vec<String>,
    excluded: Vec<String>,
}

impl TopicSelection {
    /// Topics whose name fits one of `chosen`, if there are any, and none of `excluded`.
    pub fn new(chosen: Vec<String>, excluded: Vec<String>) -> TopicSelection {
        TopicSelection { chosen, excluded }
    }

    /// Whether a topic is meant, by its name on the wire or as ROS 2 shows it.
    pub fn has(&self, name: &str) -> bool {
        let fits = |pattern: &String| {
            thalweg::qos::name_matches(pattern, name) || thalweg::qos::name_matches(pattern, &shown_topic(name))
        };
        (self.chosen.is_empty() || self.chosen.iter().any(fits)) && !self.excluded.iter().any(fits)
    }
}
