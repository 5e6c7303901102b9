//go:build !amd64 && !arm64

package kernel

// Processors without loops in assembly.

import "runtime"

// candidates is the loops in Go: fused where the compiler has an instruction for math.FMA.
func candidates() []loopSet {
	switch runtime.GOARCH {
	case "ppc64", "ppc64le", "s390x", "riscv64", "loong64":
		return []loopSet{fused}
	}
	return []loopSet{rounded}
}

func (x loopSet) panelVector(*panelArgs)         { panic("kernel: no loops in assembly") }
func (x loopSet) blendVector(*blendArgs)         { panic("kernel: no loops in assembly") }
func (x loopSet) weightedVector(*blendArgs)      { panic("kernel: no loops in assembly") }
func (x loopSet) dotVector(*dotArgs)             { panic("kernel: no loops in assembly") }
func (x loopSet) batchVector(*batchArgs)         { panic("kernel: no loops in assembly") }
func (x loopSet) transposeVector(*transposeArgs) { panic("kernel: no loops in assembly") }
func (x loopSet) scatterVector(*scatterArgs)     { panic("kernel: no loops in assembly") }
