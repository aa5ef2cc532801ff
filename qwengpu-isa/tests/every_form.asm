// Every opcode in every form its text can have.
.kernel every_form
.param pointer offset 0 size 8 align 8 data
.param unsigned offset 8 size 4 align 4
.shared 512
.local 64

start:
    trap.illegal
    trap.program
    trap.assertion
    trap.stack
    @!pt bra start
    @p0 exit
    @!p6 bra done
    bra 4
    @p1 brx r7
    brc.eq r1, r2, done
    @p2 brc.lt.s r1, c[3], !p3, start
    brc.ge.u r15, 0xffff, 4
again: loop:
    bar
    iadd r1, r2, 5, r3
    iadd r1, r2, -5
    isub r0, r15, c[127], r1
    imad r4, r4, 0xdead_beef, r5
    iscadd.1 r1, r2, r3, r4
    iscadd.4 r1, r2, c[ntid.x]
    lop.and r1, r2, 0b1010
    lop.not r1, r0, r3
    lop.12 r1, r2, r3
    shl r1, r2, 31
    shr.u r1, r2, r3
    shr.s r1, r2, c[0]
    imnmx.min.u r1, r2, 0xffff
    imnmx.max.s r1, r2, 0x10000
    sel r1, r2, r3, !p2
    setp.eq p0, r1, 0
    setp.lt.s p1, r1, c[3]
    setp.ge.u pt, r1, r2, !p3
    plop.andn p4, p5, !p6
    plop.3 p4, pt, !pt
    shfl.idx r1, r2, 0
    shfl.up r1, r2, 1
    shfl.down r1, r2, r3
    shfl.bfly r1, r2, c[ctaid.z]
    vote r1, pt
    @p3 vote r1, !p2
    s2r r1, laneid
    s2r r2, warpid
    s2r r3, tid
    sdiv.div r1, r2, 3
    sdiv.mod r1, r2, c[nctaid.y]
    sdiv.div.lin r1, c[ntid.x]
    sdiv.mod.lin r1, 7
    clz r1, r2
    popc r1, 0x80000000
    lead p0, r1
    ld.u8 r1, [r2 + r3*4 + c[4] - 8]
    ld.s8 r1, [c[4] + r3*4]
    ld.u16 r1, [0x100000]
    ld.s16 r1, [-4]
    ld.b32 r1, [r2]
    st.u8 [r2 + 0x7fffff], r1
    st.u16 [r2 - 0x800000], r1
    st.b32 [r2*4], r0
    brev r1, -1
    lop3.0xe8 r1, r2, r3, r4
    @p6 bra loop
done:
    exit
