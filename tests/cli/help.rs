//! Help and usage.

use crate::tool::qwengpu;

const COMMANDS: [&str; 17] = [
    "demo", "run", "compute", "suite", "tokens", "emit", "merge", "generate", "replay", "evaluate", "ptx", "asm",
    "disasm", "info", "prove", "report", "bench",
];

#[test]
fn every_command_has_help_with_examples() {
    let general = qwengpu(["--help"]).success();
    for command in COMMANDS {
        assert!(general.contains(&format!("  {command} ")), "{command} is missing in: {general}");
        let help = qwengpu([command, "--help"]).success();
        assert!(help.contains("Example") && help.contains(&format!("qwengpu {command}")), "{help}");
    }
}

#[test]
fn usage_errors_are_bad_input() {
    qwengpu::<&str>([]).failure(2, &["Usage"]);
    qwengpu(["fly"]).failure(2, &["fly"]);
    qwengpu(["run"]).failure(2, &["FILE"]);
}
