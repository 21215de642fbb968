//! The preset `driving`: the traffic of an automated vehicle in one run, after the rig that Kouril and others describe in "Performance
//! Evaluation of a ROS2 based Automated Driving System" (VEHITS 2024).
//!
//! Three LIDARs, seven cameras and a pipeline of sensing, planning and acting, "a mixture of all three topologies": n–1 from the LIDARs to
//! the process that finds objects, n–n from each camera to its detector, 1–n from the localization to all that need it. The time from the
//! LIDARs to the command at the actuators is that of the flow `control`.

use crate::length::Length;
use crate::paper4::contenders;
use crate::peers::PeerProgram;
use crate::statistics::{RUNS_MIN, runs_needed};

/// The text of the scenario with these peers beside Thalweg. Quick is three runs of five seconds, which give no verdict.
pub fn driving(length: Length, peers: &[PeerProgram]) -> String {
    let peers: Vec<PeerProgram> = peers.iter().copied().filter(|peer| *peer != PeerProgram::Raw).collect();
    let contenders = contenders(&peers);
    let comparisons = FLOWS * (contenders.len() - 1);
    let (seconds, runs) = match length {
        Length::Quick => (5, 3),
        Length::Usual | Length::Full => (20, runs_needed(comparisons).max(RUNS_MIN)),
    };
    let names: Vec<String> = contenders.iter().map(|one| format!("{:?}", one.to_string())).collect();
    TEXT.replace("MIDDLEWARE", &names.join(", "))
        .replace("SECONDS", &seconds.to_string())
        .replace("RUNS", &runs.to_string())
}

/// Flows in the text below.
const FLOWS: usize = 6;

const TEXT: &str = r#"schema = "thalweg.scenario/1"
name = "driving"
notes = ["3 LIDARs, 7 cameras, localization, and the chain objects, trajectory, control, after Kouril and others (2024); the response latency of control counts from the LIDARs"]

[matrix]
middleware = [MIDDLEWARE]

# Three LIDARs, a topic each; one process hears all (n-1). It is the flow `objects` below, so that nobody else needs to listen here.
[[flow]]
name = "lidar"
type = "PointCloud1m"
rate_hz = 10
publishers = 3
subscribers = 0
topics = "per-publisher"
phase = "together"
reliability = "best-effort"
history = { keep_last = 10 }

# Seven cameras with compressed pictures, each with a detector of its own (n-n).
[[flow]]
name = "camera"
type = "Array64k"
rate_hz = 30
publishers = 7
subscribers = 7
topics = "per-pair"
reliability = "best-effort"
history = { keep_last = 10 }

# The position of the vehicle, for everybody (1-n).
[[flow]]
name = "pose"
type = "Struct16"
rate_hz = 100
subscribers = 7
reliability = "best-effort"
history = { keep_last = 10 }

# Sense, plan, act: each process takes what the one before publishes. A sample is due when the LIDARs' were.
[[flow]]
name = "objects"
after = "lidar"
work_ms = 2
subscribers = 0
payload_bytes = 8192

[[flow]]
name = "trajectory"
after = "objects"
work_ms = 2
subscribers = 0
payload_bytes = 4096

[[flow]]
name = "control"
after = "trajectory"
work_ms = 0.1
payload_bytes = 64
in_time_ms = 100

# A recorder beside all that, in what the flow controller leaves it; Thalweg alone has one.
# [[flow]]
# name = "recorder"
# payload_bytes = 1000000
# rate_hz = 1
# flow_controller = { bytes = 32768, period_ms = 10 }

[qos]
reliability = "reliable"
history = { keep_last = 10 }

[schedule]
seconds = SECONDS
runs = RUNS
"#;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peers::CellMiddleware;
    use crate::scenario::Scenario;

    fn scenario(length: Length, peers: &[PeerProgram]) -> Scenario {
        Scenario::parse("driving", &driving(length, peers)).unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn every_topology_and_the_whole_chain_are_in_each_run() {
        let scenario = scenario(Length::Quick, &[]);
        assert_eq!((scenario.cells.len(), scenario.run_of(3)), (FLOWS, 0..FLOWS));
        let names: Vec<String> = scenario.cells.iter().map(ToString::to_string).collect();
        let expect = [
            "lidar: 3–1 PointCloud1m 10 Hz auto per-publisher best-effort thalweg",
            "camera: 7–7 Array64k 30 Hz auto per-pair best-effort thalweg",
            "pose: 1–7 Struct16 100 Hz auto best-effort thalweg",
            "objects: 1–1 8 KiB 10 Hz auto thalweg",
            "trajectory: 1–1 4 KiB 10 Hz auto thalweg",
            "control: 1–1 64 B 10 Hz auto thalweg",
        ];
        assert_eq!(names, expect);
    }

    #[test]
    fn the_full_form_has_runs_enough_for_its_verdicts() {
        let scenario = scenario(Length::Usual, &[PeerProgram::Cyclone, PeerProgram::Raw]);
        assert!(scenario.cells.iter().all(|cell| cell.middleware.peer() != Some(PeerProgram::Raw)));
        let middleware: Vec<CellMiddleware> =
            scenario.cells.iter().step_by(FLOWS).map(|cell| cell.middleware).collect();
        assert_eq!(middleware.len() * FLOWS, scenario.cells.len());
        assert!(scenario.schedule.runs.min as usize >= runs_needed((middleware.len() - 1) * FLOWS));
    }
}
