//! What is on the target that no landing brought there.
