//! Data-distribution middleware on the OMG wire: the DDS API.
