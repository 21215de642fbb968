//! Laws of participants that have not proved their address.
