//! The conflict radar: which live trees would clash with the target and with each other.
