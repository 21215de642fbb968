//! The lines that tell of statuses.

use thalweg::status::{IncompatibleQos, ReaderStatus, WriterStatus};

use crate::outcome::print_line;

/// Prints news of a writer of `topic`.
pub fn of_writer(topic: &str, status: &WriterStatus) {
    let head = |name: &str| format!("{name}() topic: '{topic}'  type: 'ShapeType' : ");
    let line = match status {
        WriterStatus::PublicationMatched(matched) => format!(
            "{}matched readers {} (change = {})",
            head("on_publication_matched"),
            matched.current,
            matched.current_change
        ),
        WriterStatus::OfferedIncompatibleQos(status) => head("on_offered_incompatible_qos") + &policy(status),
        WriterStatus::OfferedDeadlineMissed(status) => {
            head("on_offered_deadline_missed") + &counts(status.total, status.total_change)
        }
        WriterStatus::LivelinessLost(status) => head("on_liveliness_lost") + &counts(status.total, status.total_change),
        _ => return,
    };
    tell(&line);
}

/// Prints news of a reader of `topic`.
pub fn of_reader(topic: &str, status: &ReaderStatus) {
    let head = |name: &str| format!("{name}() topic: '{topic}'  type: 'ShapeType' : ");
    let line = match status {
        ReaderStatus::SubscriptionMatched(matched) => format!(
            "{}matched writers {} (change = {})",
            head("on_subscription_matched"),
            matched.current,
            matched.current_change
        ),
        ReaderStatus::RequestedIncompatibleQos(status) => head("on_requested_incompatible_qos") + &policy(status),
        ReaderStatus::RequestedDeadlineMissed(status) => {
            head("on_requested_deadline_missed") + &counts(status.total, status.total_change)
        }
        ReaderStatus::LivelinessChanged(status) => {
            head("on_liveliness_changed") + &format!("(alive = {}, not_alive = {})", status.alive, status.not_alive)
        }
        _ => return,
    };
    tell(&line);
}

fn counts(total: u64, change: u64) -> String {
    format!("(total = {total}, change = {change})")
}

fn policy(status: &IncompatibleQos) -> String {
    status.last_policy().map(|policy| format!("{} ({policy})", policy.0)).unwrap_or_default()
}

/// Whoever closed the pipe is told nothing more.
fn tell(line: &str) {
    _ = print_line(line);
}
