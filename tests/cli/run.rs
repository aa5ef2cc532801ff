//! `run`, `tokens`, `asm`, `disasm` and `ptx` on good input.

use serde_json::{Value, json};

use crate::tool::{file, kernel, qwengpu, run_interp};

const ADD: &str = "--grid 2 --block 4 --arg buf:i32:1,-2,0x10 --arg buf:i32:10,20,30 --arg zeros:i32:3 --arg i32:3";

#[test]
fn json_is_one_object_with_the_buffers_in_order() {
    let text = run_interp(&kernel("vector_add.ptx"), &format!("{ADD} --check --json")).success();
    assert_eq!(text.lines().count(), 1);
    let object: Value = serde_json::from_str(&text).expect("standard output is JSON");
    assert_eq!(object["kernel"], "vector_add");
    assert_eq!(object["engine"], "interp");
    assert_eq!(object["check"], true);
    assert_eq!(
        object["buffers"],
        json!([
            { "type": "i32", "values": [1, -2, 16] },
            { "type": "i32", "values": [10, 20, 30] },
            { "type": "i32", "values": [11, 18, 46] },
        ])
    );
    assert!(object["tokens"].as_u64() > object["warp_instructions"].as_u64());
    assert!(object["seconds"].is_number() && object["tokens_per_second"].is_number());
    assert_eq!(object.get("fault"), None);
}

#[test]
fn json_keeps_all_64_bits() {
    let rest = "--grid 1 --block 4 --arg buf:i32:2147483647,-2147483648,3,4 --arg buf:i32:2147483647,2147483647,-5,6 \
                --arg zeros:i64:4 --arg u64:1 --arg i32:4 --json";
    let rest = rest.replace("--arg u64:1", "--arg zeros:u64:1");
    let object: Value = serde_json::from_str(&run_interp(&kernel("dot64.ptx"), &rest).success()).expect("JSON");
    assert_eq!(object["buffers"][2]["values"], json!([4611686014132420609_i64, -4611686016279904256_i64, -15, 24]));
    assert_eq!(object["buffers"][3]["values"], json!([18446744071562067978_u64]));
}

#[test]
fn text_names_the_buffers_and_has_no_colour_in_a_pipe() {
    let text = run_interp(&kernel("vector_add.ptx"), ADD).success();
    assert!(text.contains("vector_add on the interp engine"));
    assert!(text.contains("buffer 2 (i32): 11 18 46"));
    assert!(!text.contains('\x1b'));
}

#[test]
fn the_netlist_speaks_the_same_records() {
    let mut arguments = vec!["run".to_owned(), kernel("vector_add.ptx")];
    arguments.extend(format!("{ADD} --engine netlist --check").split_whitespace().map(str::to_owned));
    let text = qwengpu(arguments).success();
    assert!(text.contains("every record is the interpreter's"), "{text}");
}

#[test]
fn tokens_have_the_ids_of_a_checkpoint() {
    let mut arguments = vec!["tokens".to_owned(), kernel("vector_add.ptx")];
    arguments.extend(ADD.split_whitespace().map(str::to_owned));
    let stream: Value = serde_json::from_str(&qwengpu(arguments).success()).expect("JSON");
    let ids = |part: &str| {
        let list = stream[part].as_array().expect("a list");
        list.iter().map(|id| id.as_u64().expect("an id")).collect::<Vec<_>>()
    };
    let (prompt, records) = (ids("prompt"), ids("records"));
    assert!(!prompt.is_empty() && !records.is_empty());
    let first = u64::from(qwengpu_weights::FIRST_MACHINE_TOKEN);
    assert!(prompt.iter().chain(&records).all(|&id| id >= first));
    let table = qwengpu_isa::RecordTable::new(&qwengpu::MachineSpec::seed()).expect("the seed is valid");
    assert_eq!(records.last(), Some(&(first + u64::from(table.index(qwengpu::Record::Halt)))));
}

#[test]
fn assembly_goes_to_words_and_back_and_runs() {
    let text =
        "    s2r r1, tid\n    ld.b32 r2, [r1*4 + c[0]]\n    iadd r2, r2, 5\n    st.b32 [r1*4 + c[0]], r2\n    exit\n";
    let source = format!(".kernel add_five\n.param pointer offset 0 size 8 align 8 data\n{text}");
    let (folder, path) = file("five.asm", &source);
    let words = folder.path().join("five.hex");
    let arguments = ["asm".as_ref(), path.as_os_str(), "-o".as_ref(), words.as_os_str()];
    assert_eq!(qwengpu(arguments).success(), "");
    assert_eq!(qwengpu(["disasm".as_ref(), words.as_os_str()]).success(), text);
    let printed = run_interp(&path.to_string_lossy(), "--grid 1 --block 4 --arg buf:i32:1,2,3,4").success();
    assert!(printed.contains("buffer 0 (i32): 6 7 8 9"), "{printed}");
}

#[test]
fn ptx_shows_stages_and_statistics() {
    let all = qwengpu(["ptx", &kernel("saxpy.ptx")]).success();
    assert!(all.contains("== build, round 0") && all.contains("== program:"), "{all}");
    let one = qwengpu(["ptx", &kernel("saxpy.ptx"), "--stage", "if_convert"]).success();
    assert!(one.starts_with("== if_convert") && !one.contains("== program"), "{one}");
    let stats = qwengpu(["ptx", &kernel("saxpy.ptx"), "--stats"]).success();
    assert!(stats.contains("saved") && stats.contains("registers") && stats.contains("tokens"), "{stats}");
    let json = qwengpu(["ptx", &kernel("saxpy.ptx"), "--stats", "--json"]).success();
    let json: serde_json::Value = serde_json::from_str(&json).expect("it is JSON");
    assert!(json["passes"][0]["tokens"]["saved"].is_i64() && json["tokens"].as_u64() > Some(10), "{json}");
    qwengpu(["ptx", &kernel("saxpy.ptx"), "--stage", "nonsense"]).failure(2, &["no stage", "if_convert"]);
}

#[test]
fn dynamic_shared_memory_is_counted() {
    let rest = "--grid 1 --block 4 --arg buf:i32:1,2,3,4 --arg zeros:i32:1 --shared";
    run_interp(&kernel("reduce_shared.ptx"), &format!("{rest} 448")).success();
    run_interp(&kernel("reduce_shared.ptx"), &format!("{rest} 449")).failure(2, &["513 bytes of shared memory", "512"]);
}

#[test]
fn integers_of_64_bits_are_no_pointers() {
    let siphash = kernel("siphash.ptx");
    let launch =
        |key: &str| format!("--grid 1 --block 1 --arg buf:u64:1 {key} --arg u64:3 --arg zeros:u64:1 --arg i32:1");
    run_interp(&siphash, &launch("--arg u64:2")).success();
    // What is used as an address takes no number.
    let swapped = launch("--arg u64:2").replace("buf:u64:1", "u64:1");
    run_interp(&siphash, &swapped).failure(2, &["argument 1 (siphash_param_0)", "buf:TYPE:VALUES"]);
}
