package main

// Loops for amd64.

import "fmt"

// vectors is an instruction set: registers of lanes float64.
type vectors struct {
	name   string // of its functions
	about  string
	lanes  int
	prefix string // of its registers
	rows   int    // rows of a tile at most
	wide   int    // rows up to which a tile has two panels
	zero   string // the instruction that clears a register
}

var avx2 = vectors{
	name:   "AVX2",
	about:  "The loops of package kernel with AVX2 and FMA: four float64 a register, sixteen registers.",
	lanes:  4,
	prefix: "Y",
	rows:   6,
	wide:   2,
	zero:   "VXORPD",
}

var avx512 = vectors{
	name:   "AVX512",
	about:  "The loops of package kernel with AVX-512 (F): eight float64 a register, 32 registers.",
	lanes:  8,
	prefix: "Z",
	rows:   12,
	wide:   12,
	zero:   "VPXORQ",
}

// x86 writes the loops of one instruction set.
type x86 struct {
	assembly
	vectors
}

// x86Loops is the file of an instruction set.
func x86Loops(v vectors) []byte {
	a := &x86{vectors: v}
	a.header(v.about)
	a.panel()
	a.blend()
	a.dot()
	a.batch()
	if a.lanes == 4 {
		a.transpose()
		a.scatter()
	}
	return a.Bytes()
}

// r is the name of a vector register.
func (a *x86) r(n int) string {
	if n >= a.registers() {
		panic(fmt.Sprintf("%s has no register %d", a.name, n))
	}
	return fmt.Sprintf("%s%d", a.prefix, n)
}

// clear sets a register to zero.
func (a *x86) clear(n int) { a.do(a.zero, a.r(n), a.r(n), a.r(n)) }

// panel chooses the tile by the number of rows.
func (a *x86) panel() {
	a.function("panel"+a.name, "func panel"+a.name+"(a *panelArgs)")
	a.do("MOVQ", "a+0(FP)", "DI")
	a.do("MOVQ", "0(DI)", "DX")   // out
	a.do("MOVQ", "8(DI)", "SI")   // v
	a.do("MOVQ", "32(DI)", "CX")  // panels
	a.do("MOVQ", "48(DI)", "R8")  // bytes between rows of out
	a.do("MOVQ", "56(DI)", "R9")  // bytes between panels of v
	a.do("MOVQ", "80(DI)", "R10") // bytes of s that are not read after each value of the sum
	a.do("MOVQ", "72(DI)", "AX")  // rows
	for rows := 1; rows < a.rows; rows++ {
		a.do("CMPQ", "AX", fmt.Sprintf("$%d", rows))
		a.do("JEQ", fmt.Sprintf("rows%d", rows))
	}
	a.do("JMP", fmt.Sprintf("rows%d", a.rows))
	for rows := 1; rows <= a.rows; rows++ {
		a.label(fmt.Sprintf("rows%d", rows))
		if rows <= a.wide {
			a.tiles(rows, 2)
		}
		a.tiles(rows, 1)
		a.do("VZEROUPPER")
		a.do("RET")
	}
}

// tiles goes over the panels of v, some at a time, while there are as many.
func (a *x86) tiles(rows, panels int) {
	name := fmt.Sprintf("rows%dpanels%d", rows, panels)
	a.label(name)
	a.do("CMPQ", "CX", fmt.Sprintf("$%d", panels))
	a.do("JLT", name+"end")
	a.begin(rows, panels, name)
	if panels == 2 {
		a.do("LEAQ", "(SI)(R9*1)", "R13")
	}
	a.do("MOVQ", "16(DI)", "BX")  // s
	a.do("MOVQ", "24(DI)", "R11") // at
	a.do("MOVQ", "40(DI)", "R12") // depth
	a.label(name + "k")
	a.term(rows, panels)
	a.do("ADDQ", "$8", "R11")
	a.do("LEAQ", at(8*rows, "BX")+"(R10*1)", "BX")
	a.do("DECQ", "R12")
	a.do("JNZ", name+"k")
	a.rowsOf(rows, panels, func(sum int, place string) { a.do("VMOVUPD", a.r(sum), place) })
	a.do("ADDQ", fmt.Sprintf("$%d", 64*panels), "DX")
	a.do("LEAQ", fmt.Sprintf("(SI)(R9*%d)", panels), "SI")
	a.do("SUBQ", fmt.Sprintf("$%d", panels), "CX")
	a.do("JMP", name)
	a.label(name + "end")
}

// begin sets the sums to the entries of out, or to zero.
func (a *x86) begin(rows, panels int, name string) {
	a.do("CMPQ", "64(DI)", "$0")
	a.do("JEQ", name+"zero")
	a.rowsOf(rows, panels, func(sum int, place string) { a.do("VMOVUPD", place, a.r(sum)) })
	a.do("JMP", name+"begin")
	a.label(name + "zero")
	for sum := range rows * panels * 8 / a.lanes {
		a.clear(sum)
	}
	a.label(name + "begin")
}

// rowsOf calls f for every register of sums with its place in out.
func (a *x86) rowsOf(rows, panels int, f func(sum int, place string)) {
	n := panels * 8 / a.lanes
	a.do("MOVQ", "DX", "AX")
	for r := range rows {
		for i := range n {
			f(r*n+i, at(8*a.lanes*i, "AX"))
		}
		if r < rows-1 {
			a.do("ADDQ", "R8", "AX")
		}
	}
}

// term adds one value of the sum: s[r]·v for every row.
func (a *x86) term(rows, panels int) {
	n := panels * 8 / a.lanes
	sums := rows * n
	a.do("MOVQ", "(R11)", "AX")
	for i := range n {
		base := "SI"
		if i >= n/panels {
			base = "R13"
		}
		a.do("VMOVUPD", at(8*a.lanes*(i%(n/panels)), base)+"(AX*8)", a.r(sums+i))
	}
	for r := range rows {
		// two registers take turns, where there are two
		factor := sums + n
		if factor+r%2 < a.registers() {
			factor += r % 2
		}
		a.do("VBROADCASTSD", at(8*r, "BX"), a.r(factor))
		for i := range n {
			a.do("VFMADD231PD", a.r(sums+i), a.r(factor), a.r(r*n+i))
		}
	}
}

// registers is the number of registers.
func (a *x86) registers() int { return 4 * a.lanes }

// blend adds products of runs: four registers of the run at a time, then one, then single entries.
func (a *x86) blend() {
	for _, weighted := range []bool{false, true} {
		name := "blend" + a.name
		if weighted {
			name = "weighted" + a.name
		}
		a.function(name, "func "+name+"(a *blendArgs)")
		a.do("MOVQ", "a+0(FP)", "DI")
		a.do("MOVQ", "0(DI)", "DX")
		a.do("MOVQ", "8(DI)", "SI")
		a.do("MOVQ", "16(DI)", "R8")
		a.do("MOVQ", "40(DI)", "CX")
		a.run(weighted, 4, false)
		a.run(weighted, 1, false)
		a.run(weighted, 1, true)
		a.do("VZEROUPPER")
		a.do("RET")
	}
}

// run goes over the run, some registers at a time; single says one entry at a time.
func (a *x86) run(weighted bool, wide int, single bool) {
	name, lanes, reg := fmt.Sprintf("by%d", wide), a.lanes, a.r
	move, multiply, add, clear := "VMOVUPD", "VMULPD", "VFMADD231PD", a.zero
	if single {
		name, lanes = "single", 1
		reg = func(n int) string { return fmt.Sprintf("X%d", n) }
		move, multiply, add, clear = "VMOVSD", "VMULSD", "VFMADD231SD", "VXORPD"
	}
	a.label(name)
	a.do("CMPQ", "CX", fmt.Sprintf("$%d", wide*lanes))
	a.do("JLT", name+"end")
	a.do("CMPQ", "64(DI)", "$0")
	a.do("JEQ", name+"zero")
	for i := range wide {
		a.do(move, at(8*lanes*i, "DX"), reg(i))
	}
	a.do("JMP", name+"begin")
	a.label(name + "zero")
	for i := range wide {
		a.do(clear, reg(i), reg(i), reg(i))
	}
	a.label(name + "begin")
	a.do("MOVQ", "24(DI)", "R9")  // places in a
	a.do("MOVQ", "32(DI)", "R10") // places in b
	a.do("MOVQ", "48(DI)", "R12") // terms
	if weighted {
		a.do("MOVQ", "56(DI)", "R11") // weights
	}
	a.label(name + "k")
	a.do("MOVQ", "(R9)", "AX")
	a.do("MOVQ", "(R10)", "BX")
	factor := wide
	if weighted {
		factor = 3 * wide
		if single {
			a.do("VMOVSD", "(R11)", reg(factor))
		} else {
			a.do("VBROADCASTSD", "(R11)", reg(factor))
		}
		a.do("ADDQ", "$8", "R11")
	}
	for i := range wide {
		a.do(move, at(8*lanes*i, "SI")+"(AX*8)", reg(wide+i))
		if weighted {
			a.do(multiply, reg(factor), reg(wide+i), reg(wide+i))
		}
	}
	for i := range wide {
		a.do(add, at(8*lanes*i, "R8")+"(BX*8)", reg(wide+i), reg(i))
	}
	a.do("ADDQ", "$8", "R9")
	a.do("ADDQ", "$8", "R10")
	a.do("DECQ", "R12")
	a.do("JNZ", name+"k")
	for i := range wide {
		a.do(move, reg(i), at(8*lanes*i, "DX"))
	}
	bytes := fmt.Sprintf("$%d", 8*lanes*wide)
	for _, r := range []string{"DX", "SI", "R8"} {
		a.do("ADDQ", bytes, r)
	}
	a.do("SUBQ", fmt.Sprintf("$%d", wide*lanes), "CX")
	a.do("JMP", name)
	a.label(name + "end")
}

// dot adds up 32 sums of products, each over every 32nd entry.
func (a *x86) dot() {
	a.function("dot"+a.name, "func dot"+a.name+"(a *dotArgs)")
	n := 32 / a.lanes
	a.do("MOVQ", "a+0(FP)", "DI")
	a.do("MOVQ", "0(DI)", "SI")
	a.do("MOVQ", "8(DI)", "R8")
	a.do("MOVQ", "16(DI)", "CX")
	a.do("MOVQ", "24(DI)", "DX")
	for i := range n {
		a.clear(i)
	}
	a.label("next")
	for i := range n {
		a.do("VMOVUPD", at(8*a.lanes*i, "SI"), a.r(n+i%4))
		a.do("VFMADD231PD", at(8*a.lanes*i, "R8"), a.r(n+i%4), a.r(i))
	}
	a.do("ADDQ", "$256", "SI")
	a.do("ADDQ", "$256", "R8")
	a.do("DECQ", "CX")
	a.do("JNZ", "next")
	for i := range n {
		a.do("VMOVUPD", a.r(i), at(8*a.lanes*i, "DX"))
	}
	a.do("VZEROUPPER")
	a.do("RET")
}

// batch adds up products of two rows and two columns, eight matrices at a time.
func (a *x86) batch() {
	a.function("batch"+a.name, "func batch"+a.name+"(a *batchArgs)")
	n := 8 / a.lanes
	places := []string{"SI", "R8", "R9", "R10"} // two rows of a, two columns of b
	a.do("MOVQ", "a+0(FP)", "DI")
	for i, place := range places {
		a.do("MOVQ", at(32+8*i, "DI"), place)
	}
	a.do("MOVQ", "88(DI)", "R11") // blocks
	a.do("XORQ", "DX", "DX")      // bytes into out
	a.label("next")
	for i := range 4 * n {
		a.clear(i)
	}
	a.do("MOVQ", "64(DI)", "R12") // places in a
	a.do("MOVQ", "72(DI)", "R13") // places in b
	a.do("MOVQ", "80(DI)", "CX")  // terms
	a.label("k")
	a.do("MOVQ", "(R12)", "AX")
	a.do("MOVQ", "(R13)", "BX")
	for side, place := range places {
		offset := "(AX*8)"
		if side >= 2 {
			offset = "(BX*8)"
		}
		for i := range n {
			a.do("VMOVUPD", at(8*a.lanes*i, place)+offset, a.r((4+side)*n+i))
		}
	}
	for tile := range 4 {
		for i := range n {
			a.do("VFMADD231PD", a.r((6+tile%2)*n+i), a.r((4+tile/2)*n+i), a.r(tile*n+i))
		}
	}
	a.do("ADDQ", "$8", "R12")
	a.do("ADDQ", "$8", "R13")
	a.do("DECQ", "CX")
	a.do("JNZ", "k")
	for tile := range 4 {
		a.do("MOVQ", at(8*tile, "DI"), "AX")
		for i := range n {
			a.do("VMOVUPD", a.r(tile*n+i), at(8*a.lanes*i, "AX")+"(DX*1)")
		}
	}
	a.do("ADDQ", "$64", "DX")
	for _, place := range places {
		a.do("ADDQ", "$64", place)
	}
	a.do("DECQ", "R11")
	a.do("JNZ", "next")
	a.do("VZEROUPPER")
	a.do("RET")
}

// transpose copies tiles of four rows and columns.
func (a *x86) transpose() {
	a.function("transpose"+a.name, "func transpose"+a.name+"(a *transposeArgs)")
	a.do("MOVQ", "a+0(FP)", "DI")
	a.do("MOVQ", "8(DI)", "SI")   // from
	a.do("MOVQ", "16(DI)", "R12") // where
	a.do("MOVQ", "24(DI)", "R13") // at
	a.do("MOVQ", "32(DI)", "CX")  // tiles
	columns := []string{"R8", "R9", "R10", "R11"}
	for i, column := range columns {
		a.do("MOVQ", at(72+8*i, "DI"), column)
		a.do("ADDQ", "SI", column)
	}
	a.do("MOVQ", "(DI)", "DX") // to
	rows := []string{"SI", "R14", "R15", "DI"}
	for i, row := range rows {
		a.do("MOVQ", at(40+8*i, "DI"), row)
	}
	for _, row := range rows {
		a.do("ADDQ", "DX", row)
	}
	a.label("next")
	a.do("MOVQ", "(R13)", "AX")
	a.do("MOVQ", "(R12)", "BX")
	for i, column := range columns {
		a.do("VMOVUPD", "("+column+")(AX*8)", a.r(i))
	}
	for i := range 2 { // entries 0 and 2 of two columns, then 1 and 3
		a.do("VUNPCKLPD", a.r(2*i+1), a.r(2*i), a.r(4+2*i))
		a.do("VUNPCKHPD", a.r(2*i+1), a.r(2*i), a.r(5+2*i))
	}
	for i := range 2 {
		a.do("VPERM2F128", "$0x20", a.r(6+i), a.r(4+i), a.r(8+i))
		a.do("VPERM2F128", "$0x31", a.r(6+i), a.r(4+i), a.r(10+i))
	}
	for i, row := range rows {
		a.do("VMOVUPD", a.r(8+i), "("+row+")(BX*8)")
	}
	a.do("ADDQ", "$8", "R12")
	a.do("ADDQ", "$8", "R13")
	a.do("DECQ", "CX")
	a.do("JNZ", "next")
	a.do("VZEROUPPER")
	a.do("RET")
}

// scatter copies lines of eight entries to eight places each.
func (a *x86) scatter() {
	a.function("scatter"+a.name, "func scatter"+a.name+"(a *scatterArgs)")
	a.do("MOVQ", "a+0(FP)", "DI")
	a.do("MOVQ", "(DI)", "DX")   // to
	a.do("MOVQ", "8(DI)", "SI")  // from
	a.do("MOVQ", "24(DI)", "CX") // at
	places := []string{"R8", "R9", "R10", "R11", "R12", "R13", "R14", "R15"}
	for i, place := range places {
		a.do("MOVQ", at(40+8*i, "DI"), place)
		a.do("ADDQ", "DX", place)
	}
	a.do("MOVQ", "16(DI)", "DX") // where
	a.do("MOVQ", "32(DI)", "DI") // lines
	a.label("next")
	a.do("MOVQ", "(CX)", "AX")
	a.do("MOVQ", "(DX)", "BX")
	for i := range places {
		a.do("VMOVSD", at(8*i, "SI")+"(AX*8)", fmt.Sprintf("X%d", i))
	}
	for i, place := range places {
		a.do("VMOVSD", fmt.Sprintf("X%d", i), "("+place+")(BX*8)")
	}
	a.do("ADDQ", "$8", "CX")
	a.do("ADDQ", "$8", "DX")
	a.do("DECQ", "DI")
	a.do("JNZ", "next")
	a.do("RET")
}
