//! Parts of one kind that go on while their plan stays the same.

use super::GatewayChanges;

/// Parts with their plans, and what holds each: it ends when it is dropped.
pub(super) struct Kept<P, H> {
    kind: &'static str,
    parts: Vec<(P, H)>,
}

impl<P: PartialEq + Clone, H> Kept<P, H> {
    pub(super) fn new(kind: &'static str) -> Kept<P, H> {
        Kept { kind, parts: Vec::new() }
    }

    /// Ends parts that are not wanted any more. To be called for all kinds before any [`begin`](Self::begin), so that paths
    /// may move from one kind to another.
    pub(super) fn end(&mut self, wanted: &[P], name: impl Fn(&P) -> String, changes: &mut GatewayChanges) {
        let kind = self.kind;
        self.parts.retain(|(plan, _)| {
            let stays = wanted.contains(plan);
            if !stays {
                changes.ended.push(format!("{kind} {}", name(plan)));
            }
            stays
        });
    }

    /// Holders of the parts that [`end`](Self::end) would end.
    pub(super) fn leaving(&self, wanted: &[P]) -> impl Iterator<Item = &H> {
        self.parts.iter().filter(move |(plan, _)| !wanted.contains(plan)).map(|(_, holder)| holder)
    }

    /// Begins parts that are new; those that failed before are tried again.
    pub(super) fn begin(
        &mut self,
        wanted: &[P],
        name: impl Fn(&P) -> String,
        changes: &mut GatewayChanges,
        mut start: impl FnMut(&P) -> Result<H, String>,
    ) {
        for plan in wanted {
            if self.parts.iter().any(|(known, _)| known == plan) {
                continue;
            }
            match start(plan) {
                Ok(holder) => {
                    changes.started.push(format!("{} {}", self.kind, name(plan)));
                    self.parts.push((plan.clone(), holder));
                }
                Err(reason) => changes.failed.push(format!("{} {}: {reason}", self.kind, name(plan))),
            }
        }
    }

    pub(super) fn holders(&mut self) -> impl Iterator<Item = &mut H> {
        self.parts.iter_mut().map(|(_, holder)| holder)
    }
}
