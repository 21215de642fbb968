//! UDP transport of Thalweg: vectored I/O, interfaces, clock, entropy.
