// Made by `thalweg idl`; change the source and make it again.

/// `demo`
pub mod demo {

    /// `msg`
    pub mod msg {

        /// `dds_`
        pub mod dds_ {
            use thalweg::Topic;

            /// `demo::msg::dds_::Other_`
            #[derive(Clone, Debug, PartialEq, Topic)]
            #[topic(name = "demo::msg::dds_::Other_", extensibility = "final")]
            pub struct Other {
                /// `n`
                pub n: i64,
            }

            /// `demo::msg::dds_::Pose_`
            #[derive(Clone, Debug, PartialEq, Topic)]
            #[topic(name = "demo::msg::dds_::Pose_", extensibility = "final")]
            pub struct Pose {
                /// `x`
                pub x: f64,
                /// `name`
                #[topic(max_len = 5)]
                pub name: String,
                /// `others`
                pub others: Vec<Other>,
                /// `thing`
                pub thing: super::super::super::far::msg::dds_::Thing,
                /// `at`
                pub at: [f64; 3],
            }
        }
    }
}

/// `far`
pub mod far {

    /// `msg`
    pub mod msg {

        /// `dds_`
        pub mod dds_ {
            use thalweg::Topic;

            /// `far::msg::dds_::Thing_`
            #[derive(Clone, Debug, PartialEq, Topic)]
            #[topic(name = "far::msg::dds_::Thing_", extensibility = "final")]
            pub struct Thing {
                /// `on`
                pub on: bool,
            }
        }
    }
}
