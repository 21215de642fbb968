//! Frames as a subscriber hands them out.

use std::time::Duration;

use crate::receiver::ReceivedPicture;

/// A frame of a topic.
#[derive(Clone, Debug)]
pub struct TopicPicture {
    /// The frame, as an RTP receiver gives it. One that came whole has its octets where its sample lies, and came
    /// first and last at once.
    pub picture: ReceivedPicture,
    /// When it was taken, since 1970 by the sender's clock; `None` where that is not known any more.
    pub captured: Option<Duration>,
}
