// The loops over forests with AVX2: eight chains side by side, as the portable loops of forests.go go through them, operation by operation.

#include "vectors_amd64.h"

EACH(minus, 0x80000000)
EACH(mantissa, 0x007fffff)

// func powersVector(a *powerArgs)
TEXT ·powersVector(SB), NOSPLIT, $0-8
	MOVQ a+0(FP), DI
	MOVQ 0(DI), CX
	MOVQ 8(DI), SI
	MOVQ 16(DI), BX
	VBROADCASTSS 24(DI), Y15

power:
	VMULPS (SI), Y15, Y0
	POWER(Y0, Y1, Y2)
	VMOVUPS Y2, (BX)
	ADDQ $32, SI
	ADDQ $32, BX
	SUBQ $8, CX
	JG   power
	VZEROUPPER
	RET

// func sumOutVector(a *upArgs)
TEXT ·sumOutVector(SB), NOSPLIT, $0-8
	MOVQ a+0(FP), DI
	MOVQ 80(DI), DX
	LOADSUMS(DX)
	MOVQ 0(DI), CX   // spins left
	MOVQ 8(DI), SI   // field
	MOVQ 16(DI), R8  // h
	MOVQ 24(DI), R9  // base
	MOVQ 32(DI), R10 // couplings at the old rung
	MOVQ 40(DI), R11 // at the new
	MOVQ 48(DI), R15 // parents
	MOVQ 56(DI), R12 // odds at the old rung
	MOVQ 64(DI), R13 // at the new
	MOVQ 72(DI), AX  // this row
	VMOVUPS one<>(SB), Y14

spin:
	// x and y at the old rung and at the new
	VMOVUPS (SI), Y3
	VBROADCASTSS (R8), Y1
	VBROADCASTSS (R9), Y2
	VBROADCASTSS 88(DI), Y4
	VMULPS Y1, Y4, Y4
	VADDPS Y2, Y4, Y4
	VBROADCASTSS 92(DI), Y5
	VMULPS Y3, Y5, Y5
	VADDPS Y4, Y5, Y4
	VBROADCASTSS 96(DI), Y6
	VMULPS Y1, Y6, Y6
	VADDPS Y2, Y6, Y6
	VBROADCASTSS 100(DI), Y5
	VMULPS Y3, Y5, Y5
	VADDPS Y6, Y5, Y5
	VSUBPS Y5, Y4, Y6        // x - y

	// the odds, with those of the children
	VXORPS minus<>(SB), Y4, Y4
	VXORPS minus<>(SB), Y5, Y5
	POWER(Y4, Y0, Y1)
	POWER(Y5, Y3, Y2)
	VMULPS (R12)(AX*1), Y1, Y1
	VMULPS (R13)(AX*1), Y2, Y2
	VMOVUPS Y14, (R12)(AX*1)
	VMOVUPS Y2, (R13)(AX*1)

	// to the parent, by sums o + t
	MOVL (R15), R14
	VBROADCASTSS (R10), Y3
	VBROADCASTSS (R11), Y4
	VADDPS Y3, Y1, Y5
	VADDPS Y4, Y2, Y0
	VMULPS Y3, Y1, Y1
	VADDPS Y14, Y1, Y1
	VDIVPS Y5, Y1, Y1
	VMULPS (R12)(R14*1), Y1, Y1
	VMOVUPS Y1, (R12)(R14*1)
	VMULPS Y4, Y2, Y2
	VADDPS Y14, Y2, Y2
	VDIVPS Y0, Y2, Y2
	VMULPS (R13)(R14*1), Y2, Y2
	VMOVUPS Y2, (R13)(R14*1)

	// the weight: exponents of the sums into the gain, the rest into products
	VPSRLD $23, Y5, Y1
	VPSRLD $23, Y0, Y2
	VPSUBD Y1, Y2, Y1
	VPADDD Y1, Y1, Y1
	VCVTDQ2PS Y1, Y1
	VADDPS Y1, Y6, Y6
	GAIN(X6, Y6, Y3)
	VANDPS mantissa<>(SB), Y5, Y5
	VORPS  Y14, Y5, Y5
	VMULPS Y5, Y10, Y10
	VANDPS mantissa<>(SB), Y0, Y0
	VORPS  Y14, Y0, Y0
	VMULPS Y0, Y9, Y9

	SUBQ $32, SI
	SUBQ $32, AX
	SUBQ $4, R8
	SUBQ $4, R9
	SUBQ $4, R10
	SUBQ $4, R11
	SUBQ $4, R15
	DECQ CX
	JNZ  spin

	MOVQ 80(DI), DX
	STORESUMS(DX)
	VZEROUPPER
	RET

// func drawVector(a *downArgs)
TEXT ·drawVector(SB), NOSPLIT, $0-8
	MOVQ a+0(FP), DI
	MOVQ 80(DI), R11 // states
	LOADSTATES(R11)
	MOVQ 0(DI), CX   // spins left
	MOVQ 8(DI), SI   // spins
	MOVQ 16(DI), AX  // this row
	MOVQ 24(DI), R13 // odds
	MOVQ 32(DI), R15 // parents
	MOVQ 40(DI), R11 // couplings to them
	MOVQ 48(DI), R8  // ends
	MOVQ 56(DI), R9  // to
	MOVQ 64(DI), R10 // couplings between forests
	MOVQ 72(DI), BX  // fields
	MOVQ 88(DI), R12 // neighbour
	VBROADCASTSS 96(DI), Y10
	VBROADCASTSS 100(DI), Y15
	VMOVUPS one<>(SB), Y9

spin:
	RANDOM(Y0, Y1)
	MOVL (R15), R14
	VMOVUPS (SI)(R14*1), Y4  // the parent
	VMOVUPS (R13)(AX*1), Y2
	VMOVUPS Y9, (R13)(AX*1)
	VBROADCASTSS (R11), Y3
	VMULPS Y2, Y3, Y5
	VBLENDVPS Y4, Y2, Y5, Y6 // up
	VBLENDVPS Y4, Y3, Y9, Y7 // down
	VADDPS Y7, Y6, Y7
	VMULPS Y7, Y0, Y0
	VCMPPS $1, Y6, Y0, Y3
	VMOVUPS (SI)(AX*1), Y2   // old
	VMOVUPS minus<>(SB), Y5
	VANDNPS Y5, Y3, Y5
	VORPS   Y9, Y5, Y5       // new
	VMOVUPS Y5, (SI)(AX*1)
	VMULPS  Y15, Y5, Y5
	VMULPS  Y10, Y2, Y2
	VSUBPS  Y2, Y5, Y3       // change
	ADDCHANGE

	ADDQ $4, R8
	ADDQ $4, R11
	ADDQ $4, R15
	ADDQ $32, AX
	DECQ CX
	JNZ  spin

	MOVQ 80(DI), R11
	STORESTATES(R11)
	VZEROUPPER
	RET
