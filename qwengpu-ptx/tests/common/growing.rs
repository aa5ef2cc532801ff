//! Kernels of any length, to see how the time of lowering grows.

use std::fmt::Write;

/// Words at the start of the buffer that the kernels load and store.
const WORDS: usize = 32;
/// Values that are read later, at any place.
const LIVE: usize = 6;

/// What a kernel looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// One basic block: arithmetic, comparisons, guarded instructions, loads and stores.
    Straight,
    /// Conditions with one and two sides and loops, nested twice; what they change lives throughout.
    Branchy,
    /// As branchy, with values that differ between threads, barriers, and threads that end early.
    Barriers,
}

/// A kernel of one buffer with about `length` PTX instructions; the same text whenever it is asked for.
pub fn kernel(shape: Shape, length: usize) -> String {
    let mut writer =
        Writer { body: String::new(), written: 0, regs: 0, preds: 0, labels: 0, state: 1, live: Vec::new() };
    writer.begin();
    if shape == Shape::Barriers {
        writer.differ();
    }
    while writer.written < length {
        match shape {
            Shape::Straight => writer.operation(),
            Shape::Branchy => writer.construct(0),
            Shape::Barriers => match writer.pick(4) {
                0 => writer.line("bar.sync 0"),
                1 => writer.end_early(),
                _ => writer.construct(0),
            },
        }
    }
    writer.finish()
}

struct Writer {
    body: String,
    written: usize,
    regs: usize,
    preds: usize,
    labels: usize,
    state: u64,
    /// Registers that operations read and loops change.
    live: Vec<String>,
}

impl Writer {
    /// The next number below `count` of a linear congruential generator (Knuth's MMIX).
    fn pick(&mut self, count: usize) -> usize {
        self.state = self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.state >> 33).expect("31 bits fit") % count
    }

    fn line(&mut self, text: &str) {
        writeln!(self.body, "\t{text};").expect("a string takes any text");
        self.written += 1;
    }

    fn label(&mut self, name: &str) {
        writeln!(self.body, "{name}:").expect("a string takes any text");
    }

    fn reg(&mut self) -> String {
        self.regs += 1;
        format!("%r{}", self.regs)
    }

    fn pred(&mut self) -> String {
        self.preds += 1;
        format!("%p{}", self.preds)
    }

    fn fresh_label(&mut self) -> String {
        self.labels += 1;
        format!("$L{}", self.labels)
    }

    fn value(&mut self) -> String {
        let at = self.pick(self.live.len());
        self.live[at].clone()
    }

    fn begin(&mut self) {
        self.line("ld.param.u64 %rd1, [k_param_0]");
        self.line("cvta.to.global.u64 %rd2, %rd1");
        for word in 0..LIVE {
            let reg = self.reg();
            self.line(&format!("ld.global.u32 {reg}, [%rd2+{}]", 4 * word));
            self.live.push(reg);
        }
    }

    /// Makes the values those of a thread.
    fn differ(&mut self) {
        let thread = self.reg();
        self.line(&format!("mov.u32 {thread}, %tid.x"));
        for word in 0..LIVE {
            let value = self.live[word].clone();
            self.line(&format!("add.s32 {value}, {value}, {thread}"));
        }
    }

    /// Some threads compute something, store it and end; too much for a few guarded instructions.
    fn end_early(&mut self) {
        let (value, pred, on) = (self.value(), self.pred(), self.fresh_label());
        let number = self.pick(1000);
        self.line(&format!("setp.ne.u32 {pred}, {value}, {number}"));
        self.line(&format!("@{pred} bra {on}"));
        for word in 0..8 {
            self.line(&format!("mad.lo.s32 {value}, {value}, {value}, {number}"));
            self.line(&format!("st.global.u32 [%rd2+{}], {value}", 4 * word));
        }
        self.line("ret");
        self.label(&on);
    }

    /// An instruction or two of a straight line, whose result replaces a value.
    fn operation(&mut self) {
        let (a, b, dst) = (self.value(), self.value(), self.reg());
        let (number, word) = (self.pick(1000) + 2, 4 * self.pick(WORDS));
        match self.pick(11) {
            0 => self.line(&format!("add.s32 {dst}, {a}, {b}")),
            1 => self.line(&format!("mad.lo.s32 {dst}, {a}, {b}, {number}")),
            2 => self.line(&format!("xor.b32 {dst}, {a}, {b}")),
            3 => self.line(&format!("shl.b32 {dst}, {a}, {}", number % 31 + 1)),
            4 => self.line(&format!("sub.s32 {dst}, {a}, {b}")),
            5 => self.line(&format!("and.b32 {dst}, {a}, {}", number | 0x5550)),
            6 => self.line(&format!("max.s32 {dst}, {a}, {b}")),
            7 => self.line(&format!("ld.global.u32 {dst}, [%rd2+{word}]")),
            8 => {
                self.line(&format!("st.global.u32 [%rd2+{word}], {a}"));
                return;
            }
            9 => {
                let pred = self.pred();
                self.line(&format!("setp.lt.s32 {pred}, {a}, {b}"));
                self.line(&format!("selp.b32 {dst}, {a}, {number}, {pred}"));
            }
            _ => {
                let pred = self.pred();
                self.line(&format!("setp.ne.u32 {pred}, {a}, {number}"));
                self.line(&format!("@{pred} add.s32 {b}, {b}, {number}"));
                return;
            }
        }
        let at = self.pick(self.live.len());
        self.live[at] = dst;
    }

    /// Operations on values of their own, then one that goes on living.
    fn block(&mut self) {
        let outer = self.live.clone();
        for _ in 0..3 + self.pick(8) {
            self.operation();
        }
        let result = self.value();
        self.live = outer;
        let kept = self.value();
        let number = self.pick(1000);
        self.line(&format!("mad.lo.s32 {kept}, {result}, {number}, {kept}"));
    }

    fn construct(&mut self, depth: usize) {
        let inside = |writer: &mut Self| {
            if depth < 2 && writer.pick(3) == 0 { writer.construct(depth + 1) } else { writer.block() }
        };
        let (a, b, pred) = (self.value(), self.value(), self.pred());
        match self.pick(4) {
            0 => {
                let join = self.fresh_label();
                self.line(&format!("setp.lt.s32 {pred}, {a}, {b}"));
                self.line(&format!("@{pred} bra {join}"));
                inside(self);
                self.label(&join);
            }
            1 => {
                let (other, join) = (self.fresh_label(), self.fresh_label());
                self.line(&format!("setp.gt.u32 {pred}, {a}, {b}"));
                self.line(&format!("@{pred} bra {other}"));
                inside(self);
                self.line(&format!("bra.uni {join}"));
                self.label(&other);
                inside(self);
                self.label(&join);
            }
            2 => {
                let (head, counter) = (self.fresh_label(), self.reg());
                let rounds = self.pick(7) + 2;
                self.line(&format!("mov.u32 {counter}, 0"));
                self.label(&head);
                inside(self);
                self.line(&format!("add.s32 {counter}, {counter}, 1"));
                self.line(&format!("setp.lt.u32 {pred}, {counter}, {rounds}"));
                self.line(&format!("@{pred} bra {head}"));
            }
            _ => self.block(),
        }
    }

    fn finish(mut self) -> String {
        for word in 0..LIVE {
            let value = self.live[word].clone();
            self.line(&format!("st.global.u32 [%rd2+{}], {value}", 4 * word));
        }
        self.line("ret");
        let Writer { body, regs, preds, .. } = self;
        format!(
            ".version 7.0\n.target sm_75\n.address_size 64\n\n.visible .entry k(\n\t.param .u64 k_param_0\n)\n{{\n\t\
             .reg .pred %p<{}>;\n\t.reg .b32 %r<{}>;\n\t.reg .b64 %rd<3>;\n\n{body}}}\n",
            preds + 1,
            regs + 1
        )
    }
}
