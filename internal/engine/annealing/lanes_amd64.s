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
	VMOVUPD (DX), Y7
	VMOVUPD 32(DX), Y8
	VMOVUPS 64(DX), Y9  // products at the new rung
	VMOVUPS 96(DX), Y10 // at the old
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
	MOVL   (R8), DX

neighbour:
	CMPQ R12, DX
	JGE  next
	MOVL (R9)(R12*4), R14
	VBROADCASTSS (R10)(R12*4), Y4
	VMULPS Y3, Y4, Y4
	VADDPS (BX)(R14*1), Y4, Y4
	VMOVUPS Y4, (BX)(R14*1)
	INCQ R12
	JMP  neighbour

next:
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
	VMOVUPD Y7, (DX)
	VMOVUPD Y8, 32(DX)
	VMOVUPS Y9, 64(DX)
	VMOVUPS Y10, 96(DX)
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
	VXORPS Y0, Y0, Y0
	VXORPS Y1, Y1, Y1
	VXORPS Y2, Y2, Y2
	VXORPS Y3, Y3, Y3
	VXORPS Y4, Y4, Y4
	VXORPS Y5, Y5, Y5
	VXORPS Y6, Y6, Y6
	VXORPS Y7, Y7, Y7

moved:
	TESTQ CX, CX
	JZ    half
	ADDSPIN
	DECQ CX
	JMP  moved

half:
	VBROADCASTSS 44(DI), Y15
	VMULPS Y0, Y15, Y0
	VMULPS Y1, Y15, Y1
	VMULPS Y2, Y15, Y2
	VMULPS Y3, Y15, Y3
	VMULPS Y4, Y15, Y4
	VMULPS Y5, Y15, Y5
	VMULPS Y6, Y15, Y6
	VMULPS Y7, Y15, Y7
	VMOVUPS Y0, 0(BX)
	VMOVUPS Y1, 32(BX)
	VMOVUPS Y2, 64(BX)
	VMOVUPS Y3, 96(BX)
	VMOVUPS Y4, 128(BX)
	VMOVUPS Y5, 160(BX)
	VMOVUPS Y6, 192(BX)
	VMOVUPS Y7, 224(BX)
	VXORPS Y0, Y0, Y0
	VXORPS Y1, Y1, Y1
	VXORPS Y2, Y2, Y2
	VXORPS Y3, Y3, Y3
	VXORPS Y4, Y4, Y4
	VXORPS Y5, Y5, Y5
	VXORPS Y6, Y6, Y6
	VXORPS Y7, Y7, Y7

rest:
	TESTQ DX, DX
	JZ    end
	ADDSPIN
	DECQ DX
	JMP  rest

end:
	VBROADCASTSS 40(DI), Y15
	VMULPS Y0, Y15, Y0
	VADDPS 0(BX), Y0, Y0
	VMOVUPS Y0, 0(BX)
	VMULPS Y1, Y15, Y1
	VADDPS 32(BX), Y1, Y1
	VMOVUPS Y1, 32(BX)
	VMULPS Y2, Y15, Y2
	VADDPS 64(BX), Y2, Y2
	VMOVUPS Y2, 64(BX)
	VMULPS Y3, Y15, Y3
	VADDPS 96(BX), Y3, Y3
	VMOVUPS Y3, 96(BX)
	VMULPS Y4, Y15, Y4
	VADDPS 128(BX), Y4, Y4
	VMOVUPS Y4, 128(BX)
	VMULPS Y5, Y15, Y5
	VADDPS 160(BX), Y5, Y5
	VMOVUPS Y5, 160(BX)
	VMULPS Y6, Y15, Y6
	VADDPS 192(BX), Y6, Y6
	VMOVUPS Y6, 192(BX)
	VMULPS Y7, Y15, Y7
	VADDPS 224(BX), Y7, Y7
	VMOVUPS Y7, 224(BX)
	VZEROUPPER
	RET
