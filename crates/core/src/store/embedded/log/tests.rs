//! Frames and files of the log.
