//! The machine of a result and its other load, in the words of a page.

use thalweg_host::{Conditions, Environment};

use crate::figures::{grouped, percent, size};

/// Other load on the machine during all of these runs: the means over their time.
pub fn of_all<'a>(runs: impl Iterator<Item = &'a Conditions> + Clone) -> Conditions {
    let mean = |of: fn(&Conditions) -> Option<f64>| {
        let known = runs.clone().filter_map(|run| Some((run.seconds, of(run)?)));
        let (seconds, sum) =
            known.fold((0.0, 0.0), |(all, sum), (seconds, share)| (all + seconds, sum + seconds * share));
        (seconds > 0.0).then(|| sum / seconds)
    };
    Conditions {
        seconds: runs.clone().map(|run| run.seconds).sum(),
        foreign_cpu: mean(|one| one.foreign_cpu),
        stolen_cpu: mean(|one| one.stolen_cpu),
        waiting_for_cpu: mean(|one| one.waiting_for_cpu),
        dropped_datagrams: runs.map(|run| run.dropped_datagrams).sum(),
    }
}

/// A sentence for each disturbance worth knowing, worst first.
pub fn sentences(conditions: &Conditions) -> Vec<String> {
    let mut out = Vec::new();
    if let Some(share) = conditions.foreign_cpu {
        let is_much = conditions.is_disturbed();
        let judgement = if is_much { ": figures are worse and vary more than on an idle machine" } else { "" };
        out.push(format!("Other programs used {} of the CPU time{judgement}.", percent(share)));
    }
    if let Some(share) = conditions.stolen_cpu.filter(|share| *share > Conditions::OTHERS_MAX / 2.0) {
        out.push(format!("The hypervisor gave {} of the CPU time to other guests: expect outliers.", percent(share)));
    }
    if let Some(share) = conditions.waiting_for_cpu {
        out.push(format!(
            "During {} of the time some task was ready to run and waited for a CPU, the experiment's own included.",
            percent(share)
        ));
    }
    if let Some(count) = conditions.dropped_datagrams.filter(|count| *count > 0) {
        out.push(format!("The kernel dropped {} datagrams at full receive buffers.", grouped(count)));
    }
    out
}

/// What a reader has to know before the figures: a debug build, and a machine that was not quiet.
pub fn warnings(environment: &Environment, conditions: &Conditions) -> Vec<String> {
    let debug = "This is a debug build, several times slower than a release build.";
    let load = "The machine was not quiet: other work took CPU time. Ratios suffer less than figures, because contenders took turns; repeat it \
                on an idle machine.";
    let is_debug = environment.build == "debug";
    [(is_debug, debug), (conditions.is_disturbed(), load)]
        .into_iter()
        .filter(|(is, _)| *is)
        .map(|(_, text)| text.to_owned())
        .collect()
}

/// Name and value of each fact about a machine, in the order a reader wants them.
pub fn facts(environment: &Environment) -> Vec<(&'static str, String)> {
    let unknown = || "unknown".to_owned();
    let cpu = environment.cpu.clone().unwrap_or_else(unknown);
    vec![
        ("CPU", if environment.is_virtual { format!("{cpu} (virtual)") } else { cpu }),
        ("cores", environment.cores.to_string()),
        ("memory", environment.memory_mib.map_or_else(unknown, |mib| format!("{:.1} GiB", mib as f64 / 1024.0))),
        ("kernel", environment.kernel.clone().unwrap_or_else(unknown)),
        ("load before", environment.load.map_or_else(unknown, |load| format!("{load:.2}"))),
        ("governor", environment.governor.clone().unwrap_or_else(|| "not told".to_owned())),
        ("rmem_max", environment.receive_buffer_max_bytes.map_or_else(unknown, size)),
        ("Thalweg", format!("{} ({} build)", environment.version, environment.build)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_disturbances_worth_knowing_have_a_sentence() {
        let conditions = Conditions {
            foreign_cpu: Some(0.1),
            stolen_cpu: Some(0.004),
            waiting_for_cpu: Some(0.5),
            dropped_datagrams: Some(0),
            ..Conditions::default()
        };
        let told = sentences(&conditions);
        assert_eq!(told.len(), 2, "little theft, no drop, no sentence: {told:?}");
        assert!(told[0].contains("10.0 % of the CPU time: figures are worse"), "{told:?}");
        let stolen = Conditions { stolen_cpu: Some(0.02), dropped_datagrams: Some(1_234), ..conditions };
        let told = sentences(&stolen).join(" ");
        assert!(told.contains("gave 2.00 % of") && told.contains("dropped 1,234 datagrams"), "{told}");
    }

    #[test]
    fn facts_that_a_machine_does_not_tell_are_unknown() {
        let environment = Environment { cpu: None, memory_mib: Some(3 << 10), ..Environment::read() };
        let facts = facts(&environment);
        assert_eq!(facts.len(), 8);
        assert!(facts[0].1.starts_with("unknown") && facts[2].1 == "3.0 GiB", "{facts:?}");
    }
}
