//! What is said beside the bytes of a sample, in its inline QoS.

use std::sync::Arc;

use crate::history::{ChangeKind, PayloadKind};
use crate::types::{Guid, KeyHash, SampleIdentity};
use crate::wire::parameters::ParameterList;

/// The kind of a change by its inline QoS, and the instance that this names. A key without status can only end its instance.
#[inline]
pub(super) fn change_of(inline_qos: Option<&ParameterList<'_>>, content: PayloadKind) -> (ChangeKind, Option<KeyHash>) {
    let kind = ChangeKind::from_status_info(inline_qos.map_or(0, ParameterList::status_info));
    (kind_of(kind, content), inline_qos.and_then(ParameterList::key_hash))
}

/// The kind of a change whose inline QoS says `said`.
#[inline]
pub(super) fn kind_of(said: ChangeKind, content: PayloadKind) -> ChangeKind {
    let is_key = said == ChangeKind::Write && content == PayloadKind::Key;
    if is_key { ChangeKind::Dispose } else { said }
}

/// What an inline QoS says of samples, whatever their content is.
#[derive(Clone)]
pub(super) struct Said {
    pub change: ChangeKind,
    pub hint: Option<KeyHash>,
    pub related: Option<Arc<SampleIdentity>>,
}

impl Said {
    /// Of samples of `writer`.
    pub(super) fn of(inline_qos: Option<&ParameterList<'_>>, writer: Guid) -> Said {
        let (change, hint) = change_of(inline_qos, PayloadKind::Data);
        Said { change, hint, related: related_of(inline_qos, writer).map(Arc::new) }
    }
}

/// The sample that a sample of `writer` is related to.
pub(super) fn related_of(inline_qos: Option<&ParameterList<'_>>, writer: Guid) -> Option<SampleIdentity> {
    inline_qos?.related_sample(writer.prefix.vendor())
}
