//! `thalweg doctor`: what this host's network lets a participant do, and who is around.

use std::time::Duration;

use clap::Args;

use crate::interrupt::Interrupt;
use crate::outcome::{Failure, print_line};
use crate::surroundings::{Lookaround, SurveyOptions};

/// Looks around: interfaces and whether multicast works on them, who is heard in this and all other domains, with other tags and in
/// other groups, which topics are nearly the one that is looked for, and what to do about it.
#[derive(Args, Debug)]
#[command(after_help = crate::after_help!("thalweg doctor", "thalweg doctor chatter --domain 7 --json"))]
pub struct DoctorOptions {
    /// Name of a topic that is looked for (default: none).
    pub topic: Option<String>,

    /// Print one JSON object instead of text (default: text).
    #[arg(long)]
    pub json: bool,

    #[command(flatten)]
    /// Membership in the domain, and a survey where nobody is found.
    pub survey: SurveyOptions,
}

/// Listens and tells.
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
    let Some(found) = lookaround.take(options.topic.as_deref()) else {
        return Err(Failure::Usage("--survey 0 leaves everything out; give it some seconds".to_owned()));
    };
    print_line(if options.json {
        serde_json::to_string_pretty(&found).map_err(Failure::from_cause)?
    } else {
        found.to_whole_text()
    })
}
