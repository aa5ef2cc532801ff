// Every line that is not empty has exactly one error.
nop
iadd r1, r2
iadd r16, r2, 3
iadd r01, r2, 3
iadd r1, r2, p3
iadd r1, r2, 3, r4, r5
iadd.s r1, r2, 3
iscadd r1, r2, 3
iscadd.5 r1, r2, 3
iadd r1, r2, 4294967296
iadd r1, r2, -2147483649
iadd r1, r2, 12ab
iadd r1, r2, c[128]
iadd r1, r2, c[tid.x]
iadd r1, r2, c 3
lop.16 r1, r2, r3
lop.nor.u r1, r2, r3
setp.eq.s p0, r1, r2
setp.lt p0, r1, r2
setp.lt.u p7, r1, r2
@p1 @p2 exit
@r1 exit
sel r1, r2, r3, r4
ld.u32 r1, [r2]
st.s8 [r2], r1
ld.b32 r1, r2
ld.b32 r1, [r2 + r3]
ld.b32 r1, [r2*4 + r3*4]
ld.b32 r1, [r2*8]
ld.b32 r1, [c[1] + c[2]]
ld.b32 r1, [8 + 8]
ld.b32 r1, [8 - r2]
ld.b32 r1, [r2 + 0x1000000]
ld.b32 r1, [r2
s2r r1, clock
bra 70000
bra missing
brc.lt r1, r2, 0
brc.eq r1, 65536, 0
brc.eq r1, -1, 0
brc.eq r1, r2, p1
brc.eq r1, r2, missing
.entry k
.kernel 7
.param float offset 0 size 4 align 4
.param unsigned size 4
iadd r1, r2, # 3
	exit é
lop3.256 r1, r2, r3, r4
exit exit
same: same: exit
