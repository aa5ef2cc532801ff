//! The command line, from outside: what it prints, where, and its exit status.

mod bench;
mod check;
mod checkpoint;
mod cuda;
mod help;
mod input;
mod run;
mod tool;
