//! Flow controllers: how much of the network the background may use.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use thalweg::DomainParticipant;
use thalweg::flow_controller::{Amount, FlowControllerSettings};

use crate::error::LabError;

/// A token bucket that writers of a station send by, see the middleware's flow controllers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenBucket {
    /// What writers call it.
    pub name: String,
    /// Tokens that it holds at most; missing means any number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u32>,
    /// Tokens that come in each period; missing means that nothing is limited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens_added_per_period: Option<u32>,
    /// Length of a period in microseconds.
    pub period_us: u64,
    /// Bytes that a token pays for.
    pub bytes_per_token: u32,
}

impl TokenBucket {
    /// The bucket of paper 1 with so many tokens in each period; `None` for no limit.
    ///
    /// The paper names the tokens only. Its transfers of 100 MB in samples of 32 KiB took 116.8 s with one token, 23.6 s with 5 and 12.1 s
    /// with 10, as a token for one sample with its headers in each 36.5 ms gives: 34 KiB at an MTU of 1500. From 20 tokens on the paper's
    /// writer itself was the limit, at 12 % of the link, so that 30 tokens changed nothing there.
    pub fn of_paper(tokens: Option<u32>) -> TokenBucket {
        TokenBucket {
            name: tokens.map_or_else(|| "unlimited".to_owned(), |tokens| format!("tokens-{tokens}")),
            // A token that was not used is lost: saved ones would leave as a burst.
            max_tokens: tokens,
            tokens_added_per_period: tokens,
            period_us: 36_500,
            bytes_per_token: 34 << 10,
        }
    }

    /// The rate it grants in bytes a second; `None` when it limits nothing.
    pub fn bytes_per_second(&self) -> Option<f64> {
        let tokens = f64::from(self.tokens_added_per_period?);
        Some(tokens * f64::from(self.bytes_per_token) / (self.period_us as f64 / 1e6))
    }

    /// Creates it on a participant, for writers to name.
    ///
    /// # Errors
    /// The middleware refuses it.
    pub fn create_on(&self, participant: &DomainParticipant) -> Result<(), LabError> {
        let amount = |tokens: Option<u32>| tokens.map_or(Amount::Unlimited, Amount::Limited);
        let settings = FlowControllerSettings {
            max_tokens: amount(self.max_tokens),
            tokens_added_per_period: amount(self.tokens_added_per_period),
            period: Duration::from_micros(self.period_us),
            bytes_per_token: Amount::Limited(self.bytes_per_token),
            ..FlowControllerSettings::default()
        };
        participant.create_flow_controller(&self.name, settings).map(drop).map_err(LabError::here)
    }
}

#[cfg(test)]
mod tests {
    use super::TokenBucket;

    #[test]
    fn the_papers_tokens_make_the_papers_times() {
        // 3,200 samples of 32 KiB, each in 23 datagrams with 68 bytes of headers.
        let sent = 3_200.0 * (f64::from(32 << 10) + 23.0 * 68.0);
        for (tokens, paper) in [(1_u32, 116.8), (5, 23.6), (10, 12.1)] {
            let seconds = sent / TokenBucket::of_paper(Some(tokens)).bytes_per_second().expect("limited");
            assert!((seconds / paper - 1.0).abs() < 0.05, "{tokens} tokens: {seconds} s");
        }
        assert_eq!(TokenBucket::of_paper(None).bytes_per_second(), None);
    }
}
