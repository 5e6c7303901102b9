// What the loops of package annealing share: constants, random numbers, powers of 2.

#include "textflag.h"

// EACH is a constant in all lanes.
#define EACH(name, x) \
DATA name<>+0(SB)/4, $x  \
DATA name<>+4(SB)/4, $x  \
DATA name<>+8(SB)/4, $x  \
DATA name<>+12(SB)/4, $x \
DATA name<>+16(SB)/4, $x \
DATA name<>+20(SB)/4, $x \
DATA name<>+24(SB)/4, $x \
DATA name<>+28(SB)/4, $x \
GLOBL name<>(SB), RODATA|NOPTR, $32

EACH(absent, 0x7fffffff)   // all but the sign
EACH(one, 0x3f800000)      // 1
EACH(deepest, 0x42fc0000)  // 126
EACH(smallest, 0x30000000) // 2^-31
EACH(c1, 0x3f317215)
EACH(c2, 0x3e75fcde)
EACH(c3, 0x3d635baa)
EACH(c4, 0x3c1e754a)
EACH(c5, 0x3aaddcc6)

// RANDOM makes numbers u from 0 to 1, by xoshiro128+ with its words in Y11 to Y14, and t.
#define RANDOM(u, t) \
	VPADDD Y11, Y14, u          \
	VPSLLD $9, Y12, t           \
	VPXOR  Y11, Y13, Y13        \
	VPXOR  Y12, Y14, Y14        \
	VPXOR  Y13, Y12, Y12        \
	VPXOR  Y14, Y11, Y11        \
	VPXOR  t, Y13, Y13          \
	VPSLLD $11, Y14, t          \
	VPSRLD $21, Y14, Y14        \
	VPOR   t, Y14, Y14          \
	VPSRLD $1, u, u             \
	VCVTDQ2PS u, u              \
	VMULPS smallest<>(SB), u, u

// POWER makes e = 2^-x of x from -126 to 126, by t.
#define POWER(x, t, e) \
	VROUNDPS $0, x, t       \
	VSUBPS   x, t, x        \
	VMULPS   c5<>(SB), x, e \
	VADDPS   c4<>(SB), e, e \
	VMULPS   x, e, e        \
	VADDPS   c3<>(SB), e, e \
	VMULPS   x, e, e        \
	VADDPS   c2<>(SB), e, e \
	VMULPS   x, e, e        \
	VADDPS   c1<>(SB), e, e \
	VMULPS   x, e, e        \
	VADDPS   one<>(SB), e, e \
	VCVTPS2DQ t, t          \
	VPSLLD   $23, t, t      \
	VPSUBD   t, e, e

// LOADSTATES and STORESTATES move the words of random numbers.
#define LOADSTATES(at) \
	VMOVDQU 0(at), Y11  \
	VMOVDQU 32(at), Y12 \
	VMOVDQU 64(at), Y13 \
	VMOVDQU 96(at), Y14

#define STORESTATES(at) \
	VMOVDQU Y11, 0(at)  \
	VMOVDQU Y12, 32(at) \
	VMOVDQU Y13, 64(at) \
	VMOVDQU Y14, 96(at)

// GAIN adds numbers to sums in float64, Y7 and Y8; x is the lower half of y. It overwrites both and t.
#define GAIN(x, y, t) \
	VCVTPS2PD x, t         \
	VADDPD t, Y7, Y7       \
	VEXTRACTF128 $1, y, x  \
	VCVTPS2PD x, t         \
	VADDPD t, Y8, Y8

// LOADGAINS and STOREGAINS move the sums that GAIN adds to; LOADSUMS and STORESUMS beside them the products of weights, at the new rung Y9
// and at the old Y10.
#define LOADGAINS(at) \
	VMOVUPD 0(at), Y7 \
	VMOVUPD 32(at), Y8

#define STOREGAINS(at) \
	VMOVUPD Y7, 0(at) \
	VMOVUPD Y8, 32(at)

#define LOADSUMS(at) \
	LOADGAINS(at)      \
	VMOVUPS 64(at), Y9 \
	VMOVUPS 96(at), Y10

#define STORESUMS(at) \
	STOREGAINS(at)     \
	VMOVUPS Y9, 64(at) \
	VMOVUPS Y10, 96(at)

// ADDCHANGE adds the change of a spin, Y3, times couplings to the fields of its neighbours, in BX: those from R12 on to before the end in (R8),
// of which R9 has where they are and R10 the couplings. It overwrites DX, R14 and Y4, and is for one place in a function.
#define ADDCHANGE \
	MOVL (R8), DX               \
neighbour:                      \
	CMPQ R12, DX                \
	JGE  added                  \
	MOVL (R9)(R12*4), R14       \
	VBROADCASTSS (R10)(R12*4), Y4 \
	VMULPS Y3, Y4, Y4           \
	VADDPS (BX)(R14*1), Y4, Y4  \
	VMOVUPS Y4, (BX)(R14*1)     \
	INCQ R12                    \
	JMP  neighbour              \
added:
