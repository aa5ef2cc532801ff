//! Checkpoints: emitted, looked into, run, and caught when a weight is wrong.
