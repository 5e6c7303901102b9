package main

// Loops for arm64: two float64 a register, 32 registers. Instructions that the assembler has
// no name for are written as words.

import "fmt"

const neonRows = 6 // rows of a tile at most: 24 registers of sums

// neon writes the loops with NEON. The arguments of a function are fields of a struct, at the offsets that the comments beside MOVD name.
type neon struct{ assembly }

// neonLoops returns the assembly file for NEON.
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

// registerList returns the operand for n registers of two float64s each, from the given number on: "[V4.D2, V5.D2]" for 4 and 2.
func registerList(first, n int) string {
	s := ""
	for i := range n {
		s += ", " + register(first+i)
	}
	return "[" + s[2:] + "]"
}

// register returns the operand for register n as two float64s.
func register(n int) string { return fmt.Sprintf("V%d.D2", n) }

// clear writes instructions that set the first n vector registers to zero.
func (a *neon) clear(n int) {
	for i := range n {
		r := fmt.Sprintf("V%d.B16", i)
		a.instruct("VEOR", r, r, r)
	}
}

// panel writes the function of kernel.tiles: it jumps to the loop for the number of rows.
func (a *neon) panel() {
	a.function("panelNEON", "func panelNEON(a *panelArgs)")
	a.instruct("MOVD", "a+0(FP)", "R0")
	a.instruct("MOVD", "0(R0)", "R1")   // out
	a.instruct("MOVD", "8(R0)", "R2")   // v
	a.instruct("MOVD", "32(R0)", "R3")  // panels
	a.instruct("MOVD", "48(R0)", "R4")  // bytes between rows of out
	a.instruct("MOVD", "56(R0)", "R5")  // bytes between panels of v
	a.instruct("MOVD", "64(R0)", "R6")  // begin with out
	a.instruct("MOVD", "72(R0)", "R7")  // rows
	a.instruct("MOVD", "80(R0)", "R13") // bytes of s that are not read after each value of the sum
	for rows := 1; rows < neonRows; rows++ {
		a.instruct("CMP", fmt.Sprintf("$%d", rows), "R7")
		a.instruct("BEQ", fmt.Sprintf("rows%d", rows))
	}
	a.instruct("B", fmt.Sprintf("rows%d", neonRows))
	for rows := 1; rows <= neonRows; rows++ {
		a.tile(rows)
	}
}

// tile writes the loop over the panels of v for a number of rows: out[r, j] ← Σ_k s[r, k]·v[k, j] for the eight columns j of a panel, or
// added to out. The sums of row r are in the vector registers 4r to 4r+3, row k of v in 24 to 27, and entries of s in 28 to 31 in turn.
// R1 and R2 point to the panel in out and v, and R3 is the number of panels that are left.
func (a *neon) tile(rows int) {
	name := fmt.Sprintf("rows%d", rows)
	eachRow := func(instruction string, operands func(r int) []string) {
		a.instruct("MOVD", "R1", "R12")
		for r := range rows {
			a.instruct(instruction, operands(r)...)
			a.instruct("ADD", "R4", "R12") // bytes between rows of out
		}
	}
	a.label(name)
	a.instruct("CBZ", "R6", name+"zero") // the argument add
	eachRow("VLD1", func(r int) []string { return []string{"(R12)", registerList(4*r, 4)} })
	a.instruct("B", name+"begin")
	a.label(name + "zero")
	a.clear(4 * rows)
	a.label(name + "begin")
	a.addTileTerms(rows, name)
	eachRow("VST1", func(r int) []string { return []string{registerList(4*r, 4), "(R12)"} })
	a.instruct("ADD", "$64", "R1") // eight entries of 8 bytes
	a.instruct("ADD", "R5", "R2")  // bytes between panels of v
	a.instruct("SUBS", "$1", "R3", "R3")
	a.instruct("BNE", name)
	a.instruct("RET")
}

// addTileTerms writes the loop over k of tile, which adds the products s[r, k]·v[k, j] to the sums. Labels begin with name.
func (a *neon) addTileTerms(rows int, name string) {
	a.instruct("MOVD", "16(R0)", "R8")  // s
	a.instruct("MOVD", "24(R0)", "R9")  // places of the rows of v
	a.instruct("MOVD", "40(R0)", "R10") // depth
	a.label(name + "k")
	a.instruct("MOVD.P", "8(R9)", "R7")
	a.instruct("ADD", "R7<<3", "R2", "R11") // row k of v
	a.instruct("VLD1", "(R11)", registerList(24, 4))
	for r := range rows {
		factor := 28 + r%4
		a.instruct("VLD1R.P", "8(R8)", registerList(factor, 1))
		for i := range 4 {
			a.instruct("VFMLA", register(24+i), register(factor), register(4*r+i))
		}
	}
	a.instruct("ADD", "R13", "R8") // bytes of s that are not read
	a.instruct("SUBS", "$1", "R10", "R10")
	a.instruct("BNE", name+"k")
}

// blend writes the functions of kernel.blend, without and with weights: sums of products of runs, eight entries of the runs at a time, then
// single ones.
func (a *neon) blend() {
	for _, weighted := range []bool{false, true} {
		name := "blendNEON"
		if weighted {
			name = "weightedNEON"
		}
		a.function(name, "func "+name+"(a *blendArgs)")
		a.instruct("MOVD", "a+0(FP)", "R0")
		a.instruct("MOVD", "0(R0)", "R1")  // out
		a.instruct("MOVD", "8(R0)", "R2")  // a
		a.instruct("MOVD", "16(R0)", "R3") // b
		a.instruct("MOVD", "40(R0)", "R4") // n
		a.instruct("MOVD", "64(R0)", "R6") // begin with out
		a.run(weighted, 8)
		a.run(weighted, 1)
		a.instruct("RET")
	}
}

// run writes the loop over the entries of a run, which takes eight entries at a time, or one, and ends when fewer are left. R1, R2 and R3
// point into out, a and b; R4 is the number of entries that are left. The sums of eight entries are in the registers 0 to 3.
func (a *neon) run(weighted bool, entries int) {
	name := fmt.Sprintf("by%d", entries)
	loadSums, storeSums := []string{"VLD1", "(R1)", registerList(0, 4)}, []string{"VST1", registerList(0, 4), "(R1)"}
	addProducts := a.addEightProducts
	if entries == 1 {
		loadSums, storeSums = []string{"FMOVD", "(R1)", "F0"}, []string{"FMOVD", "F0", "(R1)"}
		addProducts = a.addOneProduct
	}
	a.label(name)
	a.instruct("CMP", fmt.Sprintf("$%d", entries), "R4")
	a.instruct("BLT", name+"end")
	a.instruct("CBZ", "R6", name+"zero") // the argument add
	a.instruct(loadSums[0], loadSums[1:]...)
	a.instruct("B", name+"begin")
	a.label(name + "zero")
	a.clear((entries + 1) / 2) // two entries a register
	a.label(name + "begin")
	a.instruct("MOVD", "24(R0)", "R7")  // places in a
	a.instruct("MOVD", "32(R0)", "R8")  // places in b
	a.instruct("MOVD", "48(R0)", "R10") // terms
	a.instruct("MOVD", "56(R0)", "R9")  // weights
	a.label(name + "k")
	a.instruct("MOVD.P", "8(R7)", "R11")
	a.instruct("MOVD.P", "8(R8)", "R12")
	a.instruct("ADD", "R11<<3", "R2", "R11") // the entries of a
	a.instruct("ADD", "R12<<3", "R3", "R12") // and of b
	addProducts(weighted)
	a.instruct("SUBS", "$1", "R10", "R10")
	a.instruct("BNE", name+"k")
	a.instruct(storeSums[0], storeSums[1:]...)
	for _, pointer := range []string{"R1", "R2", "R3"} {
		a.instruct("ADD", fmt.Sprintf("$%d", 8*entries), pointer)
	}
	a.instruct("SUB", fmt.Sprintf("$%d", entries), "R4")
	a.instruct("B", name)
	a.label(name + "end")
}

// addOneProduct writes instructions that add one product, of the entries at R11 and R12 and perhaps the weight at R9, to the sum in F0.
func (a *neon) addOneProduct(weighted bool) {
	a.instruct("FMOVD", "(R11)", "F4")
	a.instruct("FMOVD", "(R12)", "F8")
	if weighted {
		a.instruct("FMOVD.P", "8(R9)", "F12")
		a.instruct("FMULD", "F12", "F4", "F4")
	}
	a.instruct("FMADDD", "F8", "F0", "F4", "F0")
}

// addEightProducts writes instructions that add eight products, of the entries from R11 and R12 on and perhaps the weight at R9, to the
// sums in the registers 0 to 3.
func (a *neon) addEightProducts(weighted bool) {
	a.instruct("VLD1", "(R11)", registerList(4, 4))
	a.instruct("VLD1", "(R12)", registerList(8, 4))
	if weighted {
		a.instruct("VLD1R.P", "8(R9)", registerList(12, 1))
		for i := range 4 {
			a.multiply(4+i, 12)
		}
	}
	for i := range 4 {
		a.instruct("VFMLA", register(8+i), register(4+i), register(i))
	}
}

// multiply writes the instruction target ← target·factor of vector registers as a word, since the assembler does not know it.
func (a *neon) multiply(target, factor int) {
	word := 0x6e60dc00 | factor<<16 | target<<5 | target
	a.instruct("WORD", fmt.Sprintf("$0x%08x // FMUL V%d.2D, V%d.2D, V%d.2D", word, target, target, factor))
}

// dot writes the function of kernel.dot: 32 sums of products, each over every 32nd entry. The sums are in the registers 0 to 15. For
// eight entries at a time, those of a are in 16 to 19, and those of b in 20 to 23.
func (a *neon) dot() {
	a.function("dotNEON", "func dotNEON(a *dotArgs)")
	a.instruct("MOVD", "a+0(FP)", "R0")
	a.instruct("MOVD", "0(R0)", "R1")  // a
	a.instruct("MOVD", "8(R0)", "R2")  // b
	a.instruct("MOVD", "16(R0)", "R3") // blocks of 32 entries
	a.instruct("MOVD", "24(R0)", "R4") // sums
	a.clear(16)
	a.label("next")
	for i := range 4 {
		a.instruct("VLD1.P", "64(R1)", registerList(16, 4))
		a.instruct("VLD1.P", "64(R2)", registerList(20, 4))
		for j := range 4 {
			a.instruct("VFMLA", register(20+j), register(16+j), register(4*i+j))
		}
	}
	a.instruct("SUBS", "$1", "R3", "R3")
	a.instruct("BNE", "next")
	for i := range 4 {
		a.instruct("VST1.P", registerList(4*i, 4), "64(R4)")
	}
	a.instruct("RET")
}

// batch writes the function of kernel.batch: the products of two rows and two columns, for blocks of eight matrices that lie side by
// side. The sums of the four pairs of a row and a column are in the registers 0 to 15, four registers each. The entries of the two rows
// are in 16 to 23, those of the two columns in 24 to 31.
func (a *neon) batch() {
	a.function("batchNEON", "func batchNEON(a *batchArgs)")
	a.instruct("MOVD", "a+0(FP)", "R0")
	for i := range 4 {
		a.instruct("MOVD", memory(8*i, "R0"), fmt.Sprintf("R%d", 1+i))    // out, of the four pairs
		a.instruct("MOVD", memory(32+8*i, "R0"), fmt.Sprintf("R%d", 5+i)) // two rows of a, two columns of b
	}
	a.instruct("MOVD", "88(R0)", "R9") // blocks
	a.label("next")
	a.clear(16)
	a.instruct("MOVD", "64(R0)", "R10") // places in a
	a.instruct("MOVD", "72(R0)", "R11") // places in b
	a.instruct("MOVD", "80(R0)", "R12") // terms
	a.label("k")
	a.instruct("MOVD.P", "8(R10)", "R13")
	a.instruct("MOVD.P", "8(R11)", "R14")
	for operand := range 4 { // two rows at R13, two columns at R14
		a.instruct("ADD", fmt.Sprintf("R%d<<3", 13+operand/2), fmt.Sprintf("R%d", 5+operand), "R15")
		a.instruct("VLD1", "(R15)", registerList(16+4*operand, 4))
	}
	for pair := range 4 {
		row, column := 16+4*(pair/2), 24+4*(pair%2)
		for i := range 4 {
			a.instruct("VFMLA", register(column+i), register(row+i), register(4*pair+i))
		}
	}
	a.instruct("SUBS", "$1", "R12", "R12")
	a.instruct("BNE", "k")
	for i := range 4 { // the next eight matrices: 64 bytes further
		a.instruct("VST1.P", registerList(4*i, 4), fmt.Sprintf("64(R%d)", 1+i))
		a.instruct("ADD", "$64", fmt.Sprintf("R%d", 5+i))
	}
	a.instruct("SUBS", "$1", "R9", "R9")
	a.instruct("BNE", "next")
	a.instruct("RET")
}

// transpose writes the function of kernel.Tiles: it copies tiles of four rows and columns, transposed.
func (a *neon) transpose() {
	a.function("transposeNEON", "func transposeNEON(a *transposeArgs)")
	a.instruct("MOVD", "a+0(FP)", "R0")
	a.instruct("MOVD", "0(R0)", "R1")  // output
	a.instruct("MOVD", "8(R0)", "R2")  // input
	a.instruct("MOVD", "16(R0)", "R3") // targets
	a.instruct("MOVD", "24(R0)", "R4") // sources
	a.instruct("MOVD", "32(R0)", "R5") // tiles
	for i := range 4 {
		row, column := fmt.Sprintf("R%d", 6+i), fmt.Sprintf("R%d", 10+i)
		a.instruct("MOVD", memory(40+8*i, "R0"), row)
		a.instruct("ADD", "R1", row)
		a.instruct("MOVD", memory(72+8*i, "R0"), column)
		a.instruct("ADD", "R2", column)
	}
	a.label("next")
	a.instruct("MOVD.P", "8(R4)", "R14")
	a.instruct("MOVD.P", "8(R3)", "R15")
	for i := range 4 { // column i: entries 0 and 1, 2 and 3
		a.instruct("ADD", fmt.Sprintf("R14<<3, R%d", 10+i), "R16")
		a.instruct("VLD1", "(R16)", registerList(2*i, 2))
	}
	for i := range 4 { // row i has entry i of each column, which is in register i/2 of the two of that column
		row := 8 + 2*i                         // the first of its two registers
		zip := []string{"VZIP1", "VZIP2"}[i%2] // takes the first or the second entries of two registers
		for half := range 2 {                  // of columns 0 and 1, 2 and 3
			a.instruct(zip, register(4*half+2+i/2), register(4*half+i/2), register(row+half))
		}
		a.instruct("ADD", fmt.Sprintf("R15<<3, R%d", 6+i), "R16")
		a.instruct("VST1", registerList(row, 2), "(R16)")
	}
	a.instruct("SUBS", "$1", "R5", "R5")
	a.instruct("BNE", "next")
	a.instruct("RET")
}

// scatter writes the function of kernel.Lines: it copies lines of eight entries to eight places each.
func (a *neon) scatter() {
	a.function("scatterNEON", "func scatterNEON(a *scatterArgs)")
	a.instruct("MOVD", "a+0(FP)", "R0")
	a.instruct("MOVD", "0(R0)", "R1")  // output
	a.instruct("MOVD", "8(R0)", "R2")  // input
	a.instruct("MOVD", "16(R0)", "R3") // targets
	a.instruct("MOVD", "24(R0)", "R4") // sources
	a.instruct("MOVD", "32(R0)", "R5") // lines
	for i := range 8 {
		place := fmt.Sprintf("R%d", 6+i)
		a.instruct("MOVD", memory(40+8*i, "R0"), place)
		a.instruct("ADD", "R1", place)
	}
	a.label("next")
	a.instruct("MOVD.P", "8(R4)", "R14")
	a.instruct("MOVD.P", "8(R3)", "R15")
	a.instruct("ADD", "R14<<3", "R2", "R14")
	for i := range 8 {
		a.instruct("FMOVD", memory(8*i, "R14"), fmt.Sprintf("F%d", i))
	}
	for i := range 8 {
		a.instruct("ADD", fmt.Sprintf("R15<<3, R%d", 6+i), "R16")
		a.instruct("FMOVD", fmt.Sprintf("F%d", i), "(R16)")
	}
	a.instruct("SUBS", "$1", "R5", "R5")
	a.instruct("BNE", "next")
	a.instruct("RET")
}
