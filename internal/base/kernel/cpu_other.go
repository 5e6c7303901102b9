//go:build !amd64 && !arm64

package kernel

// Processors without loops in assembly.

import "runtime"

// candidates is the loops in Go: fused where the compiler has an instruction for math.FMA.
func candidates() []set {
	switch runtime.GOARCH {
	case "ppc64", "ppc64le", "s390x", "riscv64", "loong64":
		return []set{fused}
	}
	return []set{rounded}
}

func (x set) panelVector(*panelArgs)         { panic("kernel: no loops in assembly") }
func (x set) blendVector(*blendArgs)         { panic("kernel: no loops in assembly") }
func (x set) weightedVector(*blendArgs)      { panic("kernel: no loops in assembly") }
func (x set) dotVector(*dotArgs)             { panic("kernel: no loops in assembly") }
func (x set) batchVector(*batchArgs)         { panic("kernel: no loops in assembly") }
func (x set) transposeVector(*transposeArgs) { panic("kernel: no loops in assembly") }
func (x set) scatterVector(*scatterArgs)     { panic("kernel: no loops in assembly") }
