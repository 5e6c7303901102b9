// The loop over factors with AVX2: eight chains side by side, as the portable loop of factors.go goes through them, operation by operation.

#include "vectors_amd64.h"

EACH(whole, 1)

// func crowdVector(a *crowdArgs)
TEXT ·crowdVector(SB), NOSPLIT, $0-8
	MOVQ a+0(FP), DI
	MOVQ 8(DI), SI   // site
	MOVQ 16(DI), BX  // rows
	MOVQ 24(DI), R12 // operations of this site
	MOVQ 32(DI), R9  // differences
	MOVQ 40(DI), R10 // differences of tables over one index
	MOVQ 48(DI), R13 // base
	MOVQ 56(DI), R11 // states
	LOADSTATES(R11)
	MOVQ 72(DI), DX
	LOADGAINS(DX)
	VBROADCASTSS 80(DI), Y15
	VMOVUPS one<>(SB), Y9

site:
	DECQ 0(DI)
	JS   done

	RANDOM(Y0, Y1)
	MOVL 12(SI), DX
	SHLQ $4, DX
	ADDQ 24(DI), DX  // end of the operations
	XORQ CX, CX      // value - 1
	MOVQ 64(DI), R8  // buffer of the value
	VXORPS Y6, Y6, Y6 // most
	VMOVUPS Y6, (R8)
	VMOVUPS Y6, 32(R8)

value:
	ADDQ $64, R8
	VBROADCASTSS (R10), Y2
	MOVQ R12, AX

op:
	CMPQ AX, DX
	JGE  added
	MOVL 4(AX), R11
	MOVL R11, R15
	IMULQ CX, R15
	MOVL 8(AX), R14
	ADDQ R9, R15
	ADDQ R14, R15    // differences of this value
	MOVL 0(AX), R14
	VMOVDQU (BX)(R14*1), Y3
	ADDQ $16, AX
	CMPQ R11, $64
	JGE  larger
	VPERMPS (R15), Y3, Y4
	VADDPS Y4, Y2, Y2
	JMP  op

larger:
	JG   largest
	VPERMPS (R15), Y3, Y4
	VPERMPS 32(R15), Y3, Y5
	VPSLLD $28, Y3, Y3
	VBLENDVPS Y3, Y5, Y4, Y4
	VADDPS Y4, Y2, Y2
	JMP  op

largest:
	VPCMPEQD Y5, Y5, Y5
	VGATHERDPS Y5, (R15)(Y3*4), Y4
	VADDPS Y4, Y2, Y2
	JMP  op

added:
	VMULPS Y15, Y2, Y3
	VBROADCASTSS (R13), Y4
	VADDPS Y4, Y3, Y3
	ADDQ $4, R10
	ADDQ $4, R13
	MOVL 4(SI), AX
	CMPL AX, $2
	JE   two
	VMOVUPS Y2, (R8)
	VMOVUPS Y3, 32(R8)
	VMAXPS Y3, Y6, Y6
	INCQ CX
	LEAQ 1(CX), R14
	CMPQ R14, AX
	JLT  value

	// sums of 2^(y - most)
	MOVQ 64(DI), R8
	MOVQ AX, CX
	VXORPS Y1, Y1, Y1

power:
	VSUBPS 32(R8), Y6, Y3
	VMINPS deepest<>(SB), Y3, Y3
	POWER(Y3, Y4, Y5)
	VADDPS Y5, Y1, Y1
	VMOVUPS Y1, 32(R8)
	ADDQ $64, R8
	DECQ CX
	JNZ  power

	// new is how many sums are at most u total; Y5 and Y6 are the energies of old and new
	VMULPS Y1, Y0, Y0
	MOVQ 64(DI), R8
	LEAQ -1(AX), CX
	VXORPS Y2, Y2, Y2

count:
	VMOVUPS 32(R8), Y3
	VCMPPS $2, Y0, Y3, Y3
	VPSUBD Y3, Y2, Y2
	ADDQ $64, R8
	DECQ CX
	JNZ  count
	MOVL 0(SI), R14
	VMOVDQU (BX)(R14*1), Y1
	VPSUBD Y1, Y2, Y0 // change
	VPTEST Y0, Y0
	JZ   next
	VMOVDQU Y2, (BX)(R14*1)
	MOVQ 64(DI), R8
	LEAQ -1(AX), CX
	VXORPS Y5, Y5, Y5
	VXORPS Y6, Y6, Y6
	VXORPS Y4, Y4, Y4

energy:
	ADDQ $64, R8
	VPADDD whole<>(SB), Y4, Y4
	VPCMPEQD Y4, Y1, Y3
	VBLENDVPS Y3, (R8), Y5, Y5
	VPCMPEQD Y4, Y2, Y3
	VBLENDVPS Y3, (R8), Y6, Y6
	DECQ CX
	JNZ  energy
	VSUBPS Y5, Y6, Y4
	JMP  moves

two:
	// e = 2^-|y|, and the value that y speaks for
	VPSRLD $31, Y3, Y6
	VANDPS absent<>(SB), Y3, Y3
	VMINPS deepest<>(SB), Y3, Y3
	POWER(Y3, Y4, Y5)
	VMOVDQU whole<>(SB), Y4
	VPXOR  Y4, Y6, Y6
	MOVL 0(SI), R14
	VMOVDQU (BX)(R14*1), Y1
	CMPB 84(DI), $0
	JNE  accept
	VADDPS Y9, Y5, Y3
	VMULPS Y0, Y3, Y3
	VCMPPS $1, Y5, Y3, Y3
	VPSRLD $31, Y3, Y3
	VPXOR  Y3, Y6, Y6
	JMP  decided

accept:
	// from where it is, if that is against y or u < e
	VCMPPS $1, Y5, Y0, Y3
	VPSRLD $31, Y3, Y3
	VPXOR  Y1, Y6, Y6
	VPOR   Y3, Y6, Y6
	VPXOR  Y1, Y6, Y6

decided:
	VPSUBD Y1, Y6, Y0
	VPTEST Y0, Y0
	JZ   next
	VMOVDQU Y6, (BX)(R14*1)
	VCVTDQ2PS Y0, Y4
	VMULPS Y2, Y4, Y4

moves:
	GAIN(X4, Y4, Y5)
	MOVL 8(SI), CX
	SHLQ $4, CX
	ADDQ 24(DI), CX

move:
	CMPQ R12, CX
	JGE  next
	VPBROADCASTD 12(R12), Y3
	VPMULLD Y0, Y3, Y3
	MOVL 0(R12), R14
	VPADDD (BX)(R14*1), Y3, Y3
	VMOVDQU Y3, (BX)(R14*1)
	ADDQ $16, R12
	JMP  move

next:
	MOVQ DX, R12
	ADDQ $16, SI
	JMP  site

done:
	MOVQ 56(DI), R11
	STORESTATES(R11)
	MOVQ 72(DI), DX
	STOREGAINS(DX)
	VZEROUPPER
	RET
