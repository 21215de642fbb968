//! The token bucket, counted in integers: after hours it holds exactly what the settings say.

use std::time::Duration;

use super::{Amount, FlowControllerSettings};
use crate::time::Instant;

/// The cost of one or several datagrams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Cost {
    /// Bytes of UDP payload, once for each destination.
    pub bytes: u64,
    /// Datagrams, once for each destination.
    pub copies: u64,
}

/// What tokens are saved for: so many bytes, but no less than come in the shortest and no more than come in the longest time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Portion {
    pub bytes: u64,
    pub shortest: Duration,
    pub longest: Duration,
}

/// Whether a writer waits for tokens: tokens leak only while none does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Demand {
    Waiting,
    Idle,
}

/// Tokens at one instant.
///
/// Credit is counted in units of which a token has `period in nanoseconds × bytes per token`, so that a nanosecond brings a
/// whole number of units and a byte costs a whole number of them.
#[derive(Clone, Debug)]
pub(super) struct TokenBucket {
    measure: Option<Measure>,
    credit: i128,
    at: Instant,
}

/// Settings in units of credit. None of the values exceeds 2^110, so that sums of two fit.
#[derive(Clone, Copy, Debug)]
struct Measure {
    added_per_nano: i128,
    /// `None`: everything at once.
    leaked_per_nano: Option<i128>,
    token: i128,
    /// Zero: a token pays for a datagram.
    byte: i128,
    capacity: i128,
}

/// Credit beyond any that can be spent: more than 2^63 bytes at the longest period.
const CREDIT_MAX: i128 = 1 << 124;

impl Measure {
    /// `None` where nothing limits anything.
    fn new(settings: &FlowControllerSettings) -> Option<Measure> {
        let period = i128::from(nanos_of(settings.period));
        let (bytes, byte) = match settings.bytes_per_token {
            Amount::Limited(bytes) => (i128::from(bytes), period),
            Amount::Unlimited => (1, 0),
        };
        let added = match (settings.tokens_added_per_period, settings.max_tokens) {
            (Amount::Limited(added), _) | (Amount::Unlimited, Amount::Limited(added)) => i128::from(added),
            (Amount::Unlimited, Amount::Unlimited) => return None,
        };
        let token = period * bytes;
        Some(Measure {
            added_per_nano: added * bytes,
            leaked_per_nano: match settings.tokens_leaked_per_period {
                Amount::Limited(leaked) => Some(i128::from(leaked) * bytes),
                Amount::Unlimited => None,
            },
            token,
            byte,
            capacity: match settings.max_tokens {
                Amount::Limited(tokens) => i128::from(tokens) * token,
                Amount::Unlimited => CREDIT_MAX,
            },
        })
    }

    fn cost(&self, cost: Cost) -> i128 {
        if self.byte == 0 {
            return self.token.saturating_mul(i128::from(cost.copies)).min(CREDIT_MAX);
        }
        self.byte.saturating_mul(i128::from(cost.bytes)).min(CREDIT_MAX)
    }

    /// The units that come in `nanos` nanoseconds.
    fn added_in(&self, nanos: u64) -> i128 {
        self.added_per_nano.saturating_mul(i128::from(nanos)).min(CREDIT_MAX)
    }

    /// Nanoseconds until `amount` has come, rounded up.
    fn time_for(&self, amount: i128) -> u64 {
        let nanos = (amount + self.added_per_nano - 1) / self.added_per_nano;
        u64::try_from(nanos).unwrap_or(if nanos < 0 { 0 } else { u64::MAX })
    }
}

fn nanos_of(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

impl TokenBucket {
    /// As full as it can be, but with no more than comes in one period.
    pub(super) fn new(now: Instant, settings: &FlowControllerSettings) -> TokenBucket {
        let measure = Measure::new(settings);
        let one_period = |measure: Measure| measure.added_in(nanos_of(settings.period)).min(measure.capacity);
        TokenBucket { measure, credit: measure.map_or(0, one_period), at: now }
    }

    /// Goes on with other settings and the same tokens, as far as they fit.
    pub(super) fn set(&mut self, settings: &FlowControllerSettings) {
        let fresh = TokenBucket::new(self.at, settings);
        let (Some(old), Some(new)) = (self.measure, fresh.measure) else {
            *self = fresh;
            return;
        };
        let (tokens, part) = (self.credit.div_euclid(old.token), self.credit.rem_euclid(old.token));
        // Where the units are too fine to be converted, less than one token is lost.
        let part = part.checked_mul(new.token).map_or(0, |product| product / old.token);
        self.credit = tokens.saturating_mul(new.token).saturating_add(part).clamp(-CREDIT_MAX, new.capacity);
        self.measure = fresh.measure;
    }

    /// Lets time pass up to `now`; an earlier instant than the last one changes nothing.
    pub(super) fn advance(&mut self, now: Instant, demand: Demand) {
        let mut nanos = now.as_nanos().saturating_sub(self.at.as_nanos());
        self.at = self.at.max(now);
        let Some(measure) = &self.measure else { return };
        if demand == Demand::Idle && self.credit < 0 {
            // A debt is paid before anything leaks.
            let needed = measure.time_for(-self.credit).min(nanos);
            self.credit = (self.credit + measure.added_in(needed)).min(measure.capacity);
            nanos -= needed;
        }
        let added = self.credit + measure.added_in(nanos);
        let leaked = match measure.leaked_per_nano {
            _ if demand == Demand::Waiting || self.credit < 0 => 0,
            Some(leaked) => leaked.saturating_mul(i128::from(nanos)).min(added),
            None => added,
        };
        self.credit = (added - leaked).min(measure.capacity);
    }

    /// True when this can be paid for, or the bucket is as full as it gets.
    pub(super) fn affords(&self, cost: Cost) -> bool {
        self.measure.is_none_or(|measure| self.credit >= measure.cost(cost).min(measure.capacity))
    }

    /// When `cost` can be paid for and, if that is later, a portion is there.
    pub(super) fn affordable_at(&self, cost: Cost, portion: Portion) -> Instant {
        let Some(measure) = &self.measure else { return self.at };
        let added_in = |time: Duration| measure.added_in(nanos_of(time));
        let full = measure.cost(Cost { bytes: portion.bytes, copies: 1 });
        let portion = full.min(added_in(portion.longest)).max(added_in(portion.shortest));
        let target = measure.cost(cost).max(portion).min(measure.capacity);
        self.at + Duration::from_nanos(measure.time_for(target - self.credit))
    }

    /// Bytes that the tokens pay for; `None` where tokens pay for datagrams. Without any limit all there are.
    pub(super) fn bytes(&self) -> Option<u64> {
        let Some(measure) = &self.measure else { return Some(u64::MAX) };
        if measure.byte == 0 {
            return None;
        }
        Some(u64::try_from(self.credit.max(0) / measure.byte).unwrap_or(u64::MAX))
    }

    /// Takes tokens out, into debt where they do not suffice.
    pub(super) fn spend(&mut self, cost: Cost) {
        if let Some(measure) = &self.measure {
            self.credit = (self.credit - measure.cost(cost)).max(-CREDIT_MAX);
        }
    }

    /// Whole tokens; negative in debt, `None` where there is no limit.
    pub(super) fn tokens(&self) -> Option<i64> {
        let measure = self.measure.as_ref()?;
        let tokens = self.credit.div_euclid(measure.token);
        Some(i64::try_from(tokens).unwrap_or(if tokens < 0 { i64::MIN } else { i64::MAX }))
    }
}
