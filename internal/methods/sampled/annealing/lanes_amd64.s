// The loops over spins with AVX2: eight chains side by side, a float32 each. Multiplications and additions are rounded as portable code
// rounds them, one by one.

#include "vectors_amd64.h"

EACH(sign, 0x80000000)

// func sweepVector(a *sweepArgs)
TEXT ·sweepVector(SB), NOSPLIT, $0-8
	MOVQ a+0(FP), DI
	MOVQ 72(DI), R11 // states
	LOADSTATES(R11)
	MOVQ 80(DI), DX
	LOADSUMS(DX)
	MOVQ 0(DI), CX   // spins left
	MOVQ 8(DI), SI   // spins
	MOVQ 16(DI), BX  // fields
	MOVQ 24(DI), R13 // field of this spin
	MOVQ 32(DI), R8  // ends
	MOVQ 40(DI), R9  // to
	MOVQ 48(DI), R10 // couplings
	MOVQ 56(DI), R11 // h
	MOVQ 64(DI), R15 // base
	MOVQ 88(DI), R12 // neighbour
	VBROADCASTSS 108(DI), Y15

loop:
	TESTQ CX, CX
	JZ    done
	RANDOM(Y0, Y1)

	// x and y at the old rung and at the new
	VMOVUPS (R13), Y3
	VBROADCASTSS (R11), Y1
	VBROADCASTSS (R15), Y2
	VBROADCASTSS 96(DI), Y4
	VMULPS Y1, Y4, Y4
	VADDPS Y2, Y4, Y4
	VBROADCASTSS 100(DI), Y5
	VMULPS Y3, Y5, Y5
	VADDPS Y4, Y5, Y4        // x
	VBROADCASTSS 104(DI), Y6
	VMULPS Y1, Y6, Y6
	VADDPS Y2, Y6, Y6
	VMULPS Y3, Y15, Y5
	VADDPS Y6, Y5, Y5        // y

	// the weight
	VANDPS absent<>(SB), Y4, Y1
	VANDPS absent<>(SB), Y5, Y2
	VSUBPS Y1, Y2, Y3
	GAIN(X3, Y3, Y6)
	VMINPS deepest<>(SB), Y1, Y1
	POWER(Y1, Y3, Y6)
	VADDPS one<>(SB), Y6, Y6 // 1 + 2^-|x|
	VMULPS Y6, Y10, Y10
	VMINPS deepest<>(SB), Y2, Y2
	POWER(Y2, Y3, Y1)        // e = 2^-|y|
	VADDPS one<>(SB), Y1, Y2
	VMULPS Y2, Y9, Y9

	// against the field where u (1 + e) < e
	VMULPS Y2, Y0, Y0
	VCMPPS $1, Y1, Y0, Y3
	VMOVUPS (SI), Y2         // old
	CMPB 112(DI), $0
	JE   decided

	// from along the field where u (1 + e) < e (1 + 2^-|x|), if x and y have the same sign
	VMULPS  Y6, Y1, Y1
	VCMPPS  $1, Y1, Y0, Y1
	VXORPS  Y2, Y5, Y6
	VANDNPS Y1, Y6, Y1
	VXORPS  Y4, Y5, Y4
	VBLENDVPS Y4, Y3, Y1, Y3

decided:
	VANDPS sign<>(SB), Y3, Y3
	VANDPS sign<>(SB), Y5, Y5
	VXORPS Y3, Y5, Y5
	VORPS  one<>(SB), Y5, Y5 // new
	VMOVUPS Y5, (SI)
	VMULPS Y15, Y5, Y5
	VBROADCASTSS 100(DI), Y4
	VMULPS Y4, Y2, Y2
	VSUBPS Y2, Y5, Y3        // change
	ADDCHANGE

	ADDQ $4, R8
	ADDQ $4, R11
	ADDQ $4, R15
	ADDQ $32, SI
	ADDQ $32, R13
	DECQ CX
	JMP  loop

done:
	MOVQ 72(DI), R11
	STORESTATES(R11)
	MOVQ 80(DI), DX
	STORESUMS(DX)
	VZEROUPPER
	RET

// ADDSPIN adds a spin's couplings to eight fields.
#define ADDSPIN \
	VMOVUPS (SI), Y8         \
	VBROADCASTSS 0(R8), Y9   \
	VFMADD231PS Y8, Y9, Y0   \
	VBROADCASTSS 4(R8), Y10  \
	VFMADD231PS Y8, Y10, Y1  \
	VBROADCASTSS 8(R8), Y11  \
	VFMADD231PS Y8, Y11, Y2  \
	VBROADCASTSS 12(R8), Y12 \
	VFMADD231PS Y8, Y12, Y3  \
	VBROADCASTSS 16(R8), Y13 \
	VFMADD231PS Y8, Y13, Y4  \
	VBROADCASTSS 20(R8), Y14 \
	VFMADD231PS Y8, Y14, Y5  \
	VBROADCASTSS 24(R8), Y9  \
	VFMADD231PS Y8, Y9, Y6   \
	VBROADCASTSS 28(R8), Y10 \
	VFMADD231PS Y8, Y10, Y7  \
	ADDQ $32, SI             \
	ADDQ $32, R8

// NOFIELDS sets eight fields to 0, STOREFIELD stores one times Y15, ADDFIELD adds it so to what is stored.
#define NOFIELDS \
	VXORPS Y0, Y0, Y0 \
	VXORPS Y1, Y1, Y1 \
	VXORPS Y2, Y2, Y2 \
	VXORPS Y3, Y3, Y3 \
	VXORPS Y4, Y4, Y4 \
	VXORPS Y5, Y5, Y5 \
	VXORPS Y6, Y6, Y6 \
	VXORPS Y7, Y7, Y7

#define STOREFIELD(y, at) \
	VMULPS y, Y15, y \
	VMOVUPS y, at(BX)

#define ADDFIELD(y, at) \
	VMULPS y, Y15, y     \
	VADDPS at(BX), y, y  \
	VMOVUPS y, at(BX)

// A product with ±1 is exact, so that additions are fused with it and have the bits of portable code.
// func fieldsVector(a *fieldArgs)
TEXT ·fieldsVector(SB), NOSPLIT, $0-8
	MOVQ a+0(FP), DI
	MOVQ 8(DI), CX   // spins at the new rung
	MOVQ 0(DI), DX
	SUBQ CX, DX      // spins at the old
	MOVQ 16(DI), SI  // spins
	MOVQ 24(DI), R8  // couplings, eight a spin
	MOVQ 32(DI), BX  // fields
	NOFIELDS

moved:
	TESTQ CX, CX
	JZ    half
	ADDSPIN
	DECQ CX
	JMP  moved

half:
	VBROADCASTSS 44(DI), Y15
	STOREFIELD(Y0, 0)
	STOREFIELD(Y1, 32)
	STOREFIELD(Y2, 64)
	STOREFIELD(Y3, 96)
	STOREFIELD(Y4, 128)
	STOREFIELD(Y5, 160)
	STOREFIELD(Y6, 192)
	STOREFIELD(Y7, 224)
	NOFIELDS

rest:
	TESTQ DX, DX
	JZ    end
	ADDSPIN
	DECQ DX
	JMP  rest

end:
	VBROADCASTSS 40(DI), Y15
	ADDFIELD(Y0, 0)
	ADDFIELD(Y1, 32)
	ADDFIELD(Y2, 64)
	ADDFIELD(Y3, 96)
	ADDFIELD(Y4, 128)
	ADDFIELD(Y5, 160)
	ADDFIELD(Y6, 192)
	ADDFIELD(Y7, 224)
	VZEROUPPER
	RET
