// The loops of package annealing with AVX2: eight chains side by side, a float32 each. Multiplications and additions are rounded as
// portable code rounds them, one by one.

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

EACH(sign, 0x80000000)
EACH(one, 0x3f800000)
EACH(most, 0x42fc0000)    // 126
EACH(smallest, 0x30000000) // 2^-31
EACH(c1, 0x3f317215)
EACH(c2, 0x3e75fcde)
EACH(c3, 0x3d635baa)
EACH(c4, 0x3c1e754a)
EACH(c5, 0x3aaddcc6)

// func heatBathVector(a *sweepArgs)
TEXT ·heatBathVector(SB), NOSPLIT, $0-8
	MOVQ a+0(FP), DI
	MOVQ 0(DI), CX   // spins left
	MOVQ 8(DI), SI   // spins
	MOVQ 16(DI), BX  // fields
	MOVQ 24(DI), R8  // ends
	MOVQ 32(DI), R9  // to
	MOVQ 40(DI), R10 // couplings
	MOVQ 48(DI), R11 // states
	VBROADCASTSS 56(DI), Y15
	VMOVDQU 0(R11), Y11
	VMOVDQU 32(R11), Y12
	VMOVDQU 64(R11), Y13
	VMOVDQU 96(R11), Y14
	VMOVUPS sign<>(SB), Y10
	VMOVUPS one<>(SB), Y9
	MOVQ 72(DI), R15 // base
	MOVQ 64(DI), DX
	VMOVUPD (DX), Y7
	VMOVUPD 32(DX), Y8
	XORQ R12, R12    // neighbour
	MOVQ BX, R13     // field of this spin

loop:
	TESTQ CX, CX
	JZ    done

	// u, of xoshiro128+
	VPADDD Y11, Y14, Y0
	VPSLLD $9, Y12, Y1
	VPXOR  Y11, Y13, Y13
	VPXOR  Y12, Y14, Y14
	VPXOR  Y13, Y12, Y12
	VPXOR  Y14, Y11, Y11
	VPXOR  Y1, Y13, Y13
	VPSLLD $11, Y14, Y1
	VPSRLD $21, Y14, Y14
	VPOR   Y1, Y14, Y14
	VPSRLD $1, Y0, Y0
	VCVTDQ2PS Y0, Y0
	VMULPS smallest<>(SB), Y0, Y0

	// e = 2^-|x|
	VMOVUPS (R13), Y2
	VMULPS  Y15, Y2, Y3
	VBROADCASTSS (R15), Y4
	VADDPS  Y4, Y3, Y2       // twice the field at this rung
	VANDNPS Y2, Y10, Y3
	VMINPS  most<>(SB), Y3, Y3
	VROUNDPS $0, Y3, Y4
	VSUBPS  Y3, Y4, Y3       // round(|x|) - |x|
	VMULPS  c5<>(SB), Y3, Y5
	VADDPS  c4<>(SB), Y5, Y5
	VMULPS  Y3, Y5, Y5
	VADDPS  c3<>(SB), Y5, Y5
	VMULPS  Y3, Y5, Y5
	VADDPS  c2<>(SB), Y5, Y5
	VMULPS  Y3, Y5, Y5
	VADDPS  c1<>(SB), Y5, Y5
	VMULPS  Y3, Y5, Y5
	VADDPS  Y9, Y5, Y5
	VCVTPS2DQ Y4, Y4
	VPSLLD  $23, Y4, Y4
	VPSUBD  Y4, Y5, Y5

	// against the field where u (1 + e) < e
	VADDPS Y9, Y5, Y6
	VMULPS Y0, Y6, Y6
	VCMPPS $1, Y5, Y6, Y6
	VANDPS Y10, Y6, Y6
	VANDPS Y10, Y2, Y2
	VXORPS Y6, Y2, Y2
	VORPS  Y9, Y2, Y2        // new
	VMOVUPS (SI), Y3
	VXORPS Y2, Y3, Y4
	VMOVMSKPS Y4, AX
	MOVL   (R8), DX
	TESTL  AX, AX
	JZ     next
	VMOVUPS Y2, (SI)
	VSUBPS Y3, Y2, Y3        // change
	VMULPS (R13), Y3, Y4
	VCVTPS2PD X4, Y5
	VADDPD Y5, Y7, Y7
	VEXTRACTF128 $1, Y4, X4
	VCVTPS2PD X4, Y5
	VADDPD Y5, Y8, Y8

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
	MOVQ DX, R12
	ADDQ $4, R8
	ADDQ $4, R15
	ADDQ $32, SI
	ADDQ $32, R13
	DECQ CX
	JMP  loop

done:
	VMOVDQU Y11, 0(R11)
	VMOVDQU Y12, 32(R11)
	VMOVDQU Y13, 64(R11)
	VMOVDQU Y14, 96(R11)
	MOVQ 64(DI), DX
	VMOVUPD Y7, (DX)
	VMOVUPD Y8, 32(DX)
	VZEROUPPER
	RET

// func metropolisVector(a *sweepArgs)
TEXT ·metropolisVector(SB), NOSPLIT, $0-8
	MOVQ a+0(FP), DI
	MOVQ 0(DI), CX   // spins left
	MOVQ 8(DI), SI   // spins
	MOVQ 16(DI), BX  // fields
	MOVQ 24(DI), R8  // ends
	MOVQ 32(DI), R9  // to
	MOVQ 40(DI), R10 // couplings
	MOVQ 48(DI), R11 // states
	VBROADCASTSS 56(DI), Y15
	VMOVDQU 0(R11), Y11
	VMOVDQU 32(R11), Y12
	VMOVDQU 64(R11), Y13
	VMOVDQU 96(R11), Y14
	VMOVUPS sign<>(SB), Y10
	VMOVUPS one<>(SB), Y9
	MOVQ 72(DI), R15 // base
	MOVQ 64(DI), DX
	VMOVUPD (DX), Y7
	VMOVUPD 32(DX), Y8
	XORQ R12, R12    // neighbour
	MOVQ BX, R13     // field of this spin

loop:
	TESTQ CX, CX
	JZ    done

	// u, of xoshiro128+
	VPADDD Y11, Y14, Y0
	VPSLLD $9, Y12, Y1
	VPXOR  Y11, Y13, Y13
	VPXOR  Y12, Y14, Y14
	VPXOR  Y13, Y12, Y12
	VPXOR  Y14, Y11, Y11
	VPXOR  Y1, Y13, Y13
	VPSLLD $11, Y14, Y1
	VPSRLD $21, Y14, Y14
	VPOR   Y1, Y14, Y14
	VPSRLD $1, Y0, Y0
	VCVTDQ2PS Y0, Y0
	VMULPS smallest<>(SB), Y0, Y0

	// e = 2^-|x|
	VMOVUPS (R13), Y2
	VMULPS  Y15, Y2, Y3
	VBROADCASTSS (R15), Y4
	VADDPS  Y4, Y3, Y2       // twice the field at this rung
	VANDNPS Y2, Y10, Y3
	VMINPS  most<>(SB), Y3, Y3
	VROUNDPS $0, Y3, Y4
	VSUBPS  Y3, Y4, Y3       // round(|x|) - |x|
	VMULPS  c5<>(SB), Y3, Y5
	VADDPS  c4<>(SB), Y5, Y5
	VMULPS  Y3, Y5, Y5
	VADDPS  c3<>(SB), Y5, Y5
	VMULPS  Y3, Y5, Y5
	VADDPS  c2<>(SB), Y5, Y5
	VMULPS  Y3, Y5, Y5
	VADDPS  c1<>(SB), Y5, Y5
	VMULPS  Y3, Y5, Y5
	VADDPS  Y9, Y5, Y5
	VCVTPS2DQ Y4, Y4
	VPSLLD  $23, Y4, Y4
	VPSUBD  Y4, Y5, Y5

	// s is -s where it is against the field, or u < e
	VMOVUPS (SI), Y3
	VCMPPS $1, Y5, Y0, Y6
	VXORPS Y3, Y2, Y5        // sign: against the field
	VORPS  Y5, Y6, Y6
	VANDPS Y10, Y6, Y6
	VXORPS Y3, Y6, Y2
	VXORPS Y2, Y3, Y4
	VMOVMSKPS Y4, AX
	MOVL   (R8), DX
	TESTL  AX, AX
	JZ     next
	VMOVUPS Y2, (SI)
	VSUBPS Y3, Y2, Y3        // change
	VMULPS (R13), Y3, Y4
	VCVTPS2PD X4, Y5
	VADDPD Y5, Y7, Y7
	VEXTRACTF128 $1, Y4, X4
	VCVTPS2PD X4, Y5
	VADDPD Y5, Y8, Y8

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
	MOVQ DX, R12
	ADDQ $4, R8
	ADDQ $4, R15
	ADDQ $32, SI
	ADDQ $32, R13
	DECQ CX
	JMP  loop

done:
	VMOVDQU Y11, 0(R11)
	VMOVDQU Y12, 32(R11)
	VMOVDQU Y13, 64(R11)
	VMOVDQU Y14, 96(R11)
	MOVQ 64(DI), DX
	VMOVUPD Y7, (DX)
	VMOVUPD Y8, 32(DX)
	VZEROUPPER
	RET

// A product with ±1 is exact, so that additions are fused with it and have the bits of portable code.
// func fieldsVector(a *fieldArgs)
TEXT ·fieldsVector(SB), NOSPLIT, $0-8
	MOVQ a+0(FP), DI
	MOVQ 0(DI), CX   // spins
	MOVQ 8(DI), SI   // spins
	MOVQ 16(DI), R8  // couplings, eight a spin
	MOVQ 24(DI), R9  // h
	MOVQ 32(DI), BX  // fields
	VBROADCASTSS 0(R9), Y0
	VBROADCASTSS 4(R9), Y1
	VBROADCASTSS 8(R9), Y2
	VBROADCASTSS 12(R9), Y3
	VBROADCASTSS 16(R9), Y4
	VBROADCASTSS 20(R9), Y5
	VBROADCASTSS 24(R9), Y6
	VBROADCASTSS 28(R9), Y7

spin:
	TESTQ CX, CX
	JZ    end
	VMOVUPS (SI), Y8
	VBROADCASTSS 0(R8), Y9
	VFMADD231PS Y8, Y9, Y0
	VBROADCASTSS 4(R8), Y10
	VFMADD231PS Y8, Y10, Y1
	VBROADCASTSS 8(R8), Y11
	VFMADD231PS Y8, Y11, Y2
	VBROADCASTSS 12(R8), Y12
	VFMADD231PS Y8, Y12, Y3
	VBROADCASTSS 16(R8), Y13
	VFMADD231PS Y8, Y13, Y4
	VBROADCASTSS 20(R8), Y14
	VFMADD231PS Y8, Y14, Y5
	VBROADCASTSS 24(R8), Y9
	VFMADD231PS Y8, Y9, Y6
	VBROADCASTSS 28(R8), Y10
	VFMADD231PS Y8, Y10, Y7
	ADDQ $32, SI
	ADDQ $32, R8
	DECQ CX
	JMP  spin

end:
	VMOVUPS Y0, 0(BX)
	VMOVUPS Y1, 32(BX)
	VMOVUPS Y2, 64(BX)
	VMOVUPS Y3, 96(BX)
	VMOVUPS Y4, 128(BX)
	VMOVUPS Y5, 160(BX)
	VMOVUPS Y6, 192(BX)
	VMOVUPS Y7, 224(BX)
	VZEROUPPER
	RET
