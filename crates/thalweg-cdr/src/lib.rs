//! CDR encodings of DDS-XTypes: XCDR1 and XCDR2, checked decode, key hash.
