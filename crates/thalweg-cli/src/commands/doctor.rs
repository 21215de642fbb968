//! `thalweg doctor`: the interfaces of this host, multicast, and the participants in reach.

use std::time::Duration;

use clap::Args;

use super::topic::find::used_name;
use crate::interrupt::Interrupt;
use crate::outcome::{Failure, print_line};
use crate::surroundings::{Lookaround, SurveyOptions};

/// Explains why no participant or topic is found: lists interfaces and whether multicast works on them, participants in all domains,
/// with other tags and in other groups, similar topic names, and remedies.
#[derive(Args, Debug)]
#[command(after_help = crate::after_help!("thalweg doctor", "thalweg doctor chatter --domain 7 --json"))]
pub struct DoctorOptions {
    /// Name of the topic to look for, such as Square or /scan (default: none).
    pub topic: Option<String>,

    /// Print one JSON object instead of text (default: text).
    #[arg(long)]
    pub json: bool,

    #[command(flatten)]
    /// Membership in the domain, and a survey where nobody is found.
    pub survey: SurveyOptions,
}

/// Listens and reports.
///
/// # Errors
/// The network cannot be used, or output cannot be written.
pub fn run(options: &DoctorOptions, interrupt: &Interrupt) -> Result<(), Failure> {
    let participant = options.survey.member.participant()?;
    let mut lookaround = Lookaround::new(&participant, &options.survey);
    lookaround.begin();
    while lookaround.is_listening() {
        if interrupt.came() {
            return Err(Failure::Interrupted);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let topic = options.topic.as_ref().map(|topic| used_name(&participant, topic));
    let Some(found) = lookaround.take(topic.as_deref()) else {
        return Err(Failure::Usage("--survey 0 leaves everything out; give it some seconds".to_owned()));
    };
    print_line(if options.json {
        serde_json::to_string_pretty(&found).map_err(Failure::from_cause)?
    } else {
        found.to_whole_text()
    })
}
