package kernel

// The loops of amd64.

import "golang.org/x/sys/cpu"

// candidates are the sets that the processor and the operating system say they have, the best first.
func candidates() []loopSet {
	var list []loopSet
	if cpu.X86.HasAVX512F && cpu.X86.HasAVX2 && cpu.X86.HasFMA {
		list = append(list, avx512)
	}
	if cpu.X86.HasAVX2 && cpu.X86.HasFMA {
		list = append(list, avx2)
	}
	if cpu.X86.HasFMA {
		list = append(list, fused)
	}
	return append(list, rounded)
}

//go:noescape
func panelAVX2(a *panelArgs)

//go:noescape
func blendAVX2(a *blendArgs)

//go:noescape
func weightedAVX2(a *blendArgs)

//go:noescape
func dotAVX2(a *dotArgs)

//go:noescape
func batchAVX2(a *batchArgs)

//go:noescape
func transposeAVX2(a *transposeArgs)

//go:noescape
func scatterAVX2(a *scatterArgs)

//go:noescape
func panelAVX512(a *panelArgs)

//go:noescape
func blendAVX512(a *blendArgs)

//go:noescape
func weightedAVX512(a *blendArgs)

//go:noescape
func dotAVX512(a *dotArgs)

//go:noescape
func batchAVX512(a *batchArgs)

// panelVector calls the assembly for tiles.
func (x loopSet) panelVector(a *panelArgs) {
	if x == avx512 {
		panelAVX512(a)
	} else {
		panelAVX2(a)
	}
}

// blendVector calls the assembly for sums of products of runs.
func (x loopSet) blendVector(a *blendArgs) {
	if x == avx512 {
		blendAVX512(a)
	} else {
		blendAVX2(a)
	}
}

// weightedVector calls the assembly for weighted sums of products of runs.
func (x loopSet) weightedVector(a *blendArgs) {
	if x == avx512 {
		weightedAVX512(a)
	} else {
		weightedAVX2(a)
	}
}

// dotVector calls the assembly for scalar products.
func (x loopSet) dotVector(a *dotArgs) {
	if x == avx512 {
		dotAVX512(a)
	} else {
		dotAVX2(a)
	}
}

// batchVector calls the assembly for products of matrices side by side.
func (x loopSet) batchVector(a *batchArgs) {
	if x == avx512 {
		batchAVX512(a)
	} else {
		batchAVX2(a)
	}
}

// transposeVector is the same for both: AVX-512 has no shuffle that does it in less.
func (x loopSet) transposeVector(a *transposeArgs) { transposeAVX2(a) }

// scatterVector is the same for both, too: places are stored one by one.
func (x loopSet) scatterVector(a *scatterArgs) { scatterAVX2(a) }
