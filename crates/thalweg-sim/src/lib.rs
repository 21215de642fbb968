//! Deterministic simulation of Thalweg participants on a virtual network.
