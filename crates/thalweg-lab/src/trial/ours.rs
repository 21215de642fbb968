//! Thalweg's processes of a run.

use thalweg_lab_station::{Order, ParentPipe, WorkerReport};

use crate::error::LabError;
use crate::scenario::Load;
use crate::station::{Array64k, Octets, PointCloud1m, Setup, Struct16, Thalweg};

/// The first message to a process of a run.
pub(crate) type TrialOrder = Order<Setup>;

/// Makes one run's part of this process; what it publishes for samples that it takes are octets.
pub(crate) fn work(order: &TrialOrder, link: &ParentPipe) -> Result<WorkerReport, LabError> {
    let load = order.setup.load.ok_or_else(|| LabError::Here("the order names no load".to_owned()))?;
    Ok(match load {
        Load::Octets(_) => thalweg_lab_station::work::<Thalweg<Octets>, Thalweg<Octets>>(order, link)?,
        Load::Struct16 => thalweg_lab_station::work::<Thalweg<Struct16>, Thalweg<Octets>>(order, link)?,
        Load::Array64k => thalweg_lab_station::work::<Thalweg<Array64k>, Thalweg<Octets>>(order, link)?,
        Load::PointCloud1m => thalweg_lab_station::work::<Thalweg<PointCloud1m>, Thalweg<Octets>>(order, link)?,
    })
}
