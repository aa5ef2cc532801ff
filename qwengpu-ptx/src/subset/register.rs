//! Special registers.

use super::feature::Feature;
use super::{Refusal, Support};

const CLOCK: &str = "the PTX instructions that the thread has executed";
const CLOCK_HIGH: &str = "0: no launch counts that far";
const CLUSTER: Refusal =
    Refusal { is: "about clusters of CTAs, and this machine has none", instead: "compile for sm_75 without clusters" };
const COUNTER: Refusal = Refusal { is: "a performance counter, and this machine has none", instead: "leave it out" };
const DRIVER: Refusal =
    Refusal { is: "set by a driver, and this machine has none", instead: "pass the value as a parameter" };
const SIZE: Refusal = Refusal { is: "a size of shared memory", instead: "pass the size as a parameter" };

const fn yes(name: &'static str, section: &'static str, what: &'static str, example: &'static str) -> Feature {
    Feature { name, section, support: Support::Translated(what), example }
}

const fn no(name: &'static str, section: &'static str, refusal: Refusal, example: &'static str) -> Feature {
    Feature { name, section, support: Support::Refused(refusal), example }
}

/// The special registers; `#` stands for a number.
pub const SPECIAL_REGISTERS: &[Feature] = &[
    yes("%tid", "10.1", "`.x .y .z`", "mov.u32 %r0, %tid.x;"),
    yes("%ntid", "10.2", "`.x .y .z`", "mov.u32 %r0, %ntid.y;"),
    yes("%laneid", "10.3", "0 to 3", "mov.u32 %r0, %laneid;"),
    yes("%warpid", "10.4", "0 to 7", "mov.u32 %r0, %warpid;"),
    yes("%nwarpid", "10.5", "the warps of the CTA", "mov.u32 %r0, %nwarpid;"),
    yes("%ctaid", "10.6", "`.x .y .z`", "mov.u32 %r0, %ctaid.z;"),
    yes("%nctaid", "10.7", "`.x .y .z`", "mov.u32 %r0, %nctaid.x;"),
    yes("%smid", "10.8", "0", "mov.u32 %r0, %smid;"),
    yes("%nsmid", "10.9", "1", "mov.u32 %r0, %nsmid;"),
    yes("%gridid", "10.10", "0", "mov.u64 %d0, %gridid;"),
    no("%is_explicit_cluster", "10.11", CLUSTER, "mov.pred %p0, %is_explicit_cluster;"),
    no("%clusterid", "10.12", CLUSTER, "mov.u32 %r0, %clusterid.x;"),
    no("%nclusterid", "10.13", CLUSTER, "mov.u32 %r0, %nclusterid.x;"),
    no("%cluster_ctaid", "10.14", CLUSTER, "mov.u32 %r0, %cluster_ctaid.x;"),
    no("%cluster_nctaid", "10.15", CLUSTER, "mov.u32 %r0, %cluster_nctaid.x;"),
    no("%cluster_ctarank", "10.16", CLUSTER, "mov.u32 %r0, %cluster_ctarank;"),
    no("%cluster_nctarank", "10.17", CLUSTER, "mov.u32 %r0, %cluster_nctarank;"),
    yes("%lanemask_eq", "10.18", "of 4 lanes", "mov.u32 %r0, %lanemask_eq;"),
    yes("%lanemask_le", "10.19", "of 4 lanes", "mov.u32 %r0, %lanemask_le;"),
    yes("%lanemask_lt", "10.20", "of 4 lanes", "mov.u32 %r0, %lanemask_lt;"),
    yes("%lanemask_ge", "10.21", "of 32 lanes, of which 4 exist", "mov.u32 %r0, %lanemask_ge;"),
    yes("%lanemask_gt", "10.22", "of 32 lanes, of which 4 exist", "mov.u32 %r0, %lanemask_gt;"),
    yes("%clock", "10.23", CLOCK, "mov.u32 %r0, %clock;"),
    yes("%clock_hi", "10.23", CLOCK_HIGH, "mov.u32 %r0, %clock_hi;"),
    yes("%clock64", "10.24", CLOCK, "mov.u64 %d0, %clock64;"),
    no("%pm#", "10.25", COUNTER, "mov.u32 %r0, %pm0;"),
    no("%pm#_64", "10.26", COUNTER, "mov.u64 %d0, %pm7_64;"),
    no("%envreg#", "10.27", DRIVER, "mov.b32 %r0, %envreg31;"),
    yes("%globaltimer", "10.28", CLOCK, "mov.u64 %d0, %globaltimer;"),
    yes("%globaltimer_lo", "10.28", CLOCK, "mov.u32 %r0, %globaltimer_lo;"),
    yes("%globaltimer_hi", "10.28", CLOCK_HIGH, "mov.u32 %r0, %globaltimer_hi;"),
    no("%reserved_smem_offset_begin", "10.29", SIZE, "mov.b32 %r0, %reserved_smem_offset_begin;"),
    no("%reserved_smem_offset_end", "10.29", SIZE, "mov.b32 %r0, %reserved_smem_offset_end;"),
    no("%reserved_smem_offset_cap", "10.29", SIZE, "mov.b32 %r0, %reserved_smem_offset_cap;"),
    no("%reserved_smem_offset_#", "10.29", SIZE, "mov.b32 %r0, %reserved_smem_offset_1;"),
    no("%total_smem_size", "10.30", SIZE, "mov.u32 %r0, %total_smem_size;"),
    no("%aggr_smem_size", "10.31", SIZE, "mov.u32 %r0, %aggr_smem_size;"),
    no("%dynamic_smem_size", "10.32", SIZE, "mov.u32 %r0, %dynamic_smem_size;"),
    no("%current_graph_exec", "10.33", DRIVER, "mov.u64 %d0, %current_graph_exec;"),
    no("%perctamemoryoffset", "10.34", DRIVER, "mov.u64 %d0, %perctamemoryoffset;"),
    no("%perctamemorysize", "10.35", DRIVER, "mov.u64 %d0, %perctamemorysize;"),
];

/// The row of a special register.
pub(crate) fn special_register(name: &str) -> Option<&'static Feature> {
    SPECIAL_REGISTERS.iter().find(|row| match row.name.split_once('#') {
        None => row.name == name,
        Some((start, end)) => {
            let number = name.strip_prefix(start).and_then(|rest| rest.strip_suffix(end));
            number.is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()))
        }
    })
}
