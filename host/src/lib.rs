//! The host side of fabswarm.
