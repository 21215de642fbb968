//! What is said beside the bytes of a sample, in its inline QoS.

use crate::history::{ChangeKind, PayloadKind};
use crate::types::{Guid, KeyHash, SampleIdentity};
use crate::wire::parameters::ParameterList;

/// The kind of a change by its inline QoS, and the instance that this names. A key without status can only end its instance.
#[inline]
pub(super) fn change_of(inline_qos: Option<&ParameterList<'_>>, content: PayloadKind) -> (ChangeKind, Option<KeyHash>) {
    let kind = ChangeKind::from_status_info(inline_qos.map_or(0, ParameterList::status_info));
    let hint = inline_qos.and_then(ParameterList::key_hash);
    let is_key = kind == ChangeKind::Write && content == PayloadKind::Key;
    (if is_key { ChangeKind::Dispose } else { kind }, hint)
}

/// The sample that a sample of `writer` is related to.
pub(super) fn related_of(inline_qos: Option<&ParameterList<'_>>, writer: Guid) -> Option<SampleIdentity> {
    inline_qos?.related_sample(writer.prefix.vendor())
}
