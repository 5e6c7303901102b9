package main

// Loops for arm64: two float64 a register, 32 registers. Instructions that the assembler has
// no name for are written as words.

import "fmt"

const neonRows = 6 // rows of a tile at most: 24 registers of sums

// neon writes the loops.
type neon struct{ assembly }

// neonLoops is the file.
func neonLoops() []byte {
	a := &neon{}
	a.header("The loops of package kernel with NEON: two float64 a register, 32 registers.")
	a.panel()
	a.blend()
	a.dot()
	a.batch()
	a.transpose()
	a.scatter()
	return a.Bytes()
}

// list names n registers from the first on.
func list(first, n int) string {
	s := ""
	for i := range n {
		s += fmt.Sprintf(", V%d.D2", first+i)
	}
	return "[" + s[2:] + "]"
}

// d2 is a register of two float64.
func d2(n int) string { return fmt.Sprintf("V%d.D2", n) }

// clear sets registers to zero.
func (a *neon) clear(n int) {
	for i := range n {
		r := fmt.Sprintf("V%d.B16", i)
		a.do("VEOR", r, r, r)
	}
}

// panel chooses the tile by the number of rows.
func (a *neon) panel() {
	a.function("panelNEON", "func panelNEON(a *panelArgs)")
	a.do("MOVD", "a+0(FP)", "R0")
	a.do("MOVD", "0(R0)", "R1")   // out
	a.do("MOVD", "8(R0)", "R2")   // v
	a.do("MOVD", "32(R0)", "R3")  // panels
	a.do("MOVD", "48(R0)", "R4")  // bytes between rows of out
	a.do("MOVD", "56(R0)", "R5")  // bytes between panels of v
	a.do("MOVD", "64(R0)", "R6")  // begin with out
	a.do("MOVD", "72(R0)", "R7")  // rows
	a.do("MOVD", "80(R0)", "R13") // bytes of s that are not read after each value of the sum
	for rows := 1; rows < neonRows; rows++ {
		a.do("CMP", fmt.Sprintf("$%d", rows), "R7")
		a.do("BEQ", fmt.Sprintf("rows%d", rows))
	}
	a.do("B", fmt.Sprintf("rows%d", neonRows))
	for rows := 1; rows <= neonRows; rows++ {
		a.tile(rows)
	}
}

// tile goes over the panels of v.
func (a *neon) tile(rows int) {
	name := fmt.Sprintf("rows%d", rows)
	a.label(name)
	a.do("CBZ", "R6", name+"zero")
	a.do("MOVD", "R1", "R12")
	for r := range rows {
		a.do("VLD1", "(R12)", list(4*r, 4))
		a.do("ADD", "R4", "R12")
	}
	a.do("B", name+"begin")
	a.label(name + "zero")
	a.clear(4 * rows)
	a.label(name + "begin")
	a.do("MOVD", "16(R0)", "R8")  // s
	a.do("MOVD", "24(R0)", "R9")  // at
	a.do("MOVD", "40(R0)", "R10") // depth
	a.label(name + "k")
	a.do("MOVD.P", "8(R9)", "R7")
	a.do("ADD", "R7<<3", "R2", "R11")
	a.do("VLD1", "(R11)", list(24, 4))
	for r := range rows {
		factor := 28 + r%4
		a.do("VLD1R.P", "8(R8)", list(factor, 1))
		for i := range 4 {
			a.do("VFMLA", d2(24+i), d2(factor), d2(4*r+i))
		}
	}
	a.do("ADD", "R13", "R8")
	a.do("SUBS", "$1", "R10", "R10")
	a.do("BNE", name+"k")
	a.do("MOVD", "R1", "R12")
	for r := range rows {
		a.do("VST1", list(4*r, 4), "(R12)")
		a.do("ADD", "R4", "R12")
	}
	a.do("ADD", "$64", "R1")
	a.do("ADD", "R5", "R2")
	a.do("SUBS", "$1", "R3", "R3")
	a.do("BNE", name)
	a.do("RET")
}

// blend adds products of runs: eight entries at a time, then single ones.
func (a *neon) blend() {
	for _, weighted := range []bool{false, true} {
		name := "blendNEON"
		if weighted {
			name = "weightedNEON"
		}
		a.function(name, "func "+name+"(a *blendArgs)")
		a.do("MOVD", "a+0(FP)", "R0")
		a.do("MOVD", "0(R0)", "R1")  // out
		a.do("MOVD", "8(R0)", "R2")  // a
		a.do("MOVD", "16(R0)", "R3") // b
		a.do("MOVD", "40(R0)", "R4") // n
		a.do("MOVD", "64(R0)", "R6") // begin with out
		a.run(weighted, 8)
		a.run(weighted, 1)
		a.do("RET")
	}
}

// run goes over the run, eight entries or one at a time.
func (a *neon) run(weighted bool, entries int) {
	name := fmt.Sprintf("by%d", entries)
	a.label(name)
	a.do("CMP", fmt.Sprintf("$%d", entries), "R4")
	a.do("BLT", name+"end")
	a.do("CBZ", "R6", name+"zero")
	if entries == 1 {
		a.do("FMOVD", "(R1)", "F0")
	} else {
		a.do("VLD1", "(R1)", list(0, 4))
	}
	a.do("B", name+"begin")
	a.label(name + "zero")
	a.clear((entries + 1) / 2)
	a.label(name + "begin")
	a.do("MOVD", "24(R0)", "R7")  // places in a
	a.do("MOVD", "32(R0)", "R8")  // places in b
	a.do("MOVD", "48(R0)", "R10") // terms
	a.do("MOVD", "56(R0)", "R9")  // weights
	a.label(name + "k")
	a.do("MOVD.P", "8(R7)", "R11")
	a.do("MOVD.P", "8(R8)", "R12")
	a.do("ADD", "R11<<3", "R2", "R11")
	a.do("ADD", "R12<<3", "R3", "R12")
	if entries == 1 {
		a.entry(weighted)
	} else {
		a.entries(weighted)
	}
	a.do("SUBS", "$1", "R10", "R10")
	a.do("BNE", name+"k")
	if entries == 1 {
		a.do("FMOVD", "F0", "(R1)")
	} else {
		a.do("VST1", list(0, 4), "(R1)")
	}
	for _, r := range []string{"R1", "R2", "R3"} {
		a.do("ADD", fmt.Sprintf("$%d", 8*entries), r)
	}
	a.do("SUB", fmt.Sprintf("$%d", entries), "R4")
	a.do("B", name)
	a.label(name + "end")
}

// entry adds one product.
func (a *neon) entry(weighted bool) {
	a.do("FMOVD", "(R11)", "F4")
	a.do("FMOVD", "(R12)", "F8")
	if weighted {
		a.do("FMOVD.P", "8(R9)", "F12")
		a.do("FMULD", "F12", "F4", "F4")
	}
	a.do("FMADDD", "F8", "F0", "F4", "F0")
}

// entries adds eight.
func (a *neon) entries(weighted bool) {
	a.do("VLD1", "(R11)", list(4, 4))
	a.do("VLD1", "(R12)", list(8, 4))
	if weighted {
		a.do("VLD1R.P", "8(R9)", list(12, 1))
		for i := range 4 {
			a.multiply(4+i, 12)
		}
	}
	for i := range 4 {
		a.do("VFMLA", d2(8+i), d2(4+i), d2(i))
	}
}

// multiply is FMUL of vectors, to = to · by, which the assembler does not know.
func (a *neon) multiply(to, by int) {
	a.do("WORD", fmt.Sprintf("$0x%08x // FMUL V%d.2D, V%d.2D, V%d.2D", 0x6e60dc00|by<<16|to<<5|to, to, to, by))
}

// dot adds up 32 sums of products, each over every 32nd entry.
func (a *neon) dot() {
	a.function("dotNEON", "func dotNEON(a *dotArgs)")
	a.do("MOVD", "a+0(FP)", "R0")
	a.do("MOVD", "0(R0)", "R1")
	a.do("MOVD", "8(R0)", "R2")
	a.do("MOVD", "16(R0)", "R3")
	a.do("MOVD", "24(R0)", "R4")
	a.clear(16)
	a.label("next")
	for i := range 4 {
		a.do("VLD1.P", "64(R1)", list(16, 4))
		a.do("VLD1.P", "64(R2)", list(20, 4))
		for j := range 4 {
			a.do("VFMLA", d2(20+j), d2(16+j), d2(4*i+j))
		}
	}
	a.do("SUBS", "$1", "R3", "R3")
	a.do("BNE", "next")
	for i := range 4 {
		a.do("VST1.P", list(4*i, 4), "64(R4)")
	}
	a.do("RET")
}

// batch adds up products of two rows and two columns, eight matrices at a time.
func (a *neon) batch() {
	a.function("batchNEON", "func batchNEON(a *batchArgs)")
	a.do("MOVD", "a+0(FP)", "R0")
	for i := range 4 {
		a.do("MOVD", at(8*i, "R0"), fmt.Sprintf("R%d", 1+i))    // two rows and two columns of out
		a.do("MOVD", at(32+8*i, "R0"), fmt.Sprintf("R%d", 5+i)) // two rows of a, two columns of b
	}
	a.do("MOVD", "88(R0)", "R9") // blocks
	a.label("next")
	a.clear(16)
	a.do("MOVD", "64(R0)", "R10") // places in a
	a.do("MOVD", "72(R0)", "R11") // places in b
	a.do("MOVD", "80(R0)", "R12") // terms
	a.label("k")
	a.do("MOVD.P", "8(R10)", "R13")
	a.do("MOVD.P", "8(R11)", "R14")
	for side := range 4 {
		a.do("ADD", fmt.Sprintf("R%d<<3", 13+side/2), fmt.Sprintf("R%d", 5+side), "R15")
		a.do("VLD1", "(R15)", list(16+4*side, 4))
	}
	for tile := range 4 {
		for i := range 4 {
			a.do("VFMLA", d2(24+4*(tile%2)+i), d2(16+4*(tile/2)+i), d2(4*tile+i))
		}
	}
	a.do("SUBS", "$1", "R12", "R12")
	a.do("BNE", "k")
	for tile := range 4 {
		a.do("VST1.P", list(4*tile, 4), fmt.Sprintf("64(R%d)", 1+tile))
		a.do("ADD", "$64", fmt.Sprintf("R%d", 5+tile))
	}
	a.do("SUBS", "$1", "R9", "R9")
	a.do("BNE", "next")
	a.do("RET")
}

// transpose copies tiles of four rows and columns.
func (a *neon) transpose() {
	a.function("transposeNEON", "func transposeNEON(a *transposeArgs)")
	a.do("MOVD", "a+0(FP)", "R0")
	a.do("MOVD", "0(R0)", "R1")  // to
	a.do("MOVD", "8(R0)", "R2")  // from
	a.do("MOVD", "16(R0)", "R3") // where
	a.do("MOVD", "24(R0)", "R4") // at
	a.do("MOVD", "32(R0)", "R5") // tiles
	for i := range 4 {
		row, column := fmt.Sprintf("R%d", 6+i), fmt.Sprintf("R%d", 10+i)
		a.do("MOVD", at(40+8*i, "R0"), row)
		a.do("ADD", "R1", row)
		a.do("MOVD", at(72+8*i, "R0"), column)
		a.do("ADD", "R2", column)
	}
	a.label("next")
	a.do("MOVD.P", "8(R4)", "R14")
	a.do("MOVD.P", "8(R3)", "R15")
	for i := range 4 { // column i: entries 0 and 1, 2 and 3
		a.do("ADD", fmt.Sprintf("R14<<3, R%d", 10+i), "R16")
		a.do("VLD1", "(R16)", list(2*i, 2))
	}
	for i := range 4 {
		row := 8 + 2*i
		for half := range 2 { // of columns 0 and 1, 2 and 3
			zip := []string{"VZIP1", "VZIP2"}[i%2]
			a.do(zip, d2(4*half+2+i/2), d2(4*half+i/2), d2(row+half))
		}
		a.do("ADD", fmt.Sprintf("R15<<3, R%d", 6+i), "R16")
		a.do("VST1", list(row, 2), "(R16)")
	}
	a.do("SUBS", "$1", "R5", "R5")
	a.do("BNE", "next")
	a.do("RET")
}

// scatter copies lines of eight entries to eight places each.
func (a *neon) scatter() {
	a.function("scatterNEON", "func scatterNEON(a *scatterArgs)")
	a.do("MOVD", "a+0(FP)", "R0")
	a.do("MOVD", "0(R0)", "R1")  // to
	a.do("MOVD", "8(R0)", "R2")  // from
	a.do("MOVD", "16(R0)", "R3") // where
	a.do("MOVD", "24(R0)", "R4") // at
	a.do("MOVD", "32(R0)", "R5") // lines
	for i := range 8 {
		place := fmt.Sprintf("R%d", 6+i)
		a.do("MOVD", at(40+8*i, "R0"), place)
		a.do("ADD", "R1", place)
	}
	a.label("next")
	a.do("MOVD.P", "8(R4)", "R14")
	a.do("MOVD.P", "8(R3)", "R15")
	a.do("ADD", "R14<<3", "R2", "R14")
	for i := range 8 {
		a.do("FMOVD", at(8*i, "R14"), fmt.Sprintf("F%d", i))
	}
	for i := range 8 {
		a.do("ADD", fmt.Sprintf("R15<<3, R%d", 6+i), "R16")
		a.do("FMOVD", fmt.Sprintf("F%d", i), "(R16)")
	}
	a.do("SUBS", "$1", "R5", "R5")
	a.do("BNE", "next")
	a.do("RET")
}
