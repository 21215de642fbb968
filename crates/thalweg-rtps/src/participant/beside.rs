//! What is said beside the bytes of a sample, in its inline QoS.

use std::sync::Arc;

use crate::history::{ChangeKind, PayloadKind};
use crate::types::{Guid, KeyHash, SampleIdentity};
use crate::wire::parameters::ParameterList;

/// The kind of a change by its inline QoS, as [`kind_of`] has it, and the instance that this names.
#[inline]
pub(super) fn change_of(
    inline_qos: Option<&ParameterList<'_>>,
    content: PayloadKind,
) -> (Option<ChangeKind>, Option<KeyHash>) {
    let status = inline_qos.and_then(ParameterList::find_status_info);
    (kind_of(status, content), inline_qos.and_then(ParameterList::key_hash))
}

/// The kind of a change whose status info is `status`. A key without one can only end its instance. `None` for a key
/// whose instance lives on (RTPS 2.5 §9.6.4.9): its writer registers it, or leaves out a value that a filter refuses.
#[inline]
pub(super) fn kind_of(status: Option<u32>, content: PayloadKind) -> Option<ChangeKind> {
    match (status.map(ChangeKind::from_status_info), content) {
        (Some(ChangeKind::Write), PayloadKind::Key) => None,
        (None, PayloadKind::Key) => Some(ChangeKind::Dispose),
        (said, PayloadKind::Data) => Some(said.unwrap_or(ChangeKind::Write)),
        (said, PayloadKind::Key) => said,
    }
}

/// What an inline QoS says of samples, whatever their content is.
#[derive(Clone)]
pub(super) struct Said {
    pub status: Option<u32>,
    pub hint: Option<KeyHash>,
    pub related: Option<Arc<SampleIdentity>>,
    pub directed_to: Option<Arc<[Guid]>>,
}

impl Said {
    /// Of samples of `writer`.
    pub(super) fn of(inline_qos: Option<&ParameterList<'_>>, writer: Guid) -> Said {
        Said {
            status: inline_qos.and_then(ParameterList::find_status_info),
            hint: inline_qos.and_then(ParameterList::key_hash),
            related: related_of(inline_qos, writer).map(Arc::new),
            directed_to: directed_to(inline_qos),
        }
    }
}

/// The sample that a sample of `writer` is related to.
pub(super) fn related_of(inline_qos: Option<&ParameterList<'_>>, writer: Guid) -> Option<SampleIdentity> {
    inline_qos?.related_sample(writer.prefix.vendor())
}

/// The readers that a sample is for, in ascending order; `None` for all.
pub(super) fn directed_to(inline_qos: Option<&ParameterList<'_>>) -> Option<Arc<[Guid]>> {
    let readers = inline_qos?.directed_to();
    (!readers.is_empty()).then(|| Arc::from(readers))
}
