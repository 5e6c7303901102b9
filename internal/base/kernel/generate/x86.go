package main

// Loops for amd64.

import "fmt"

// vectors is an instruction set: registers of lanes float64.
type vectors struct {
	name   string // of its functions
	about  string
	lanes  int
	prefix string // of its registers
	rows   int    // the largest number of rows of a tile
	wide   int    // the largest number of rows of a tile that has two panels
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

// x86 writes the loops of one instruction set. The arguments of a function are fields of a struct, at the offsets that the comments beside
// MOVQ name.
type x86 struct {
	assembly
	vectors
}

// x86Loops returns the assembly file of an instruction set.
func x86Loops(v vectors) []byte {
	a := &x86{vectors: v}
	a.header(v.about)
	a.panel()
	a.blend()
	a.dot()
	a.batch()
	if a.lanes == 4 { // these loops for AVX2 are used with AVX-512, too
		a.transpose()
		a.scatter()
	}
	return a.Bytes()
}

// register returns the operand for vector register n. It panics if there is none.
func (a *x86) register(n int) string {
	if n >= a.registers() {
		panic(fmt.Sprintf("%s has no register %d", a.name, n))
	}
	return fmt.Sprintf("%s%d", a.prefix, n)
}

// clear writes the instruction that sets vector register n to zero.
func (a *x86) clear(n int) { a.instruct(a.zero, a.register(n), a.register(n), a.register(n)) }

// panel writes the function of kernel.tiles: it jumps to the loops for the number of rows.
func (a *x86) panel() {
	a.function("panel"+a.name, "func panel"+a.name+"(a *panelArgs)")
	a.instruct("MOVQ", "a+0(FP)", "DI")
	a.instruct("MOVQ", "0(DI)", "DX")   // out
	a.instruct("MOVQ", "8(DI)", "SI")   // v
	a.instruct("MOVQ", "32(DI)", "CX")  // panels
	a.instruct("MOVQ", "48(DI)", "R8")  // bytes between rows of out
	a.instruct("MOVQ", "56(DI)", "R9")  // bytes between panels of v
	a.instruct("MOVQ", "80(DI)", "R10") // bytes of s that are not read after each value of the sum
	a.instruct("MOVQ", "72(DI)", "AX")  // rows
	for rows := 1; rows < a.rows; rows++ {
		a.instruct("CMPQ", "AX", fmt.Sprintf("$%d", rows))
		a.instruct("JEQ", fmt.Sprintf("rows%d", rows))
	}
	a.instruct("JMP", fmt.Sprintf("rows%d", a.rows))
	for rows := 1; rows <= a.rows; rows++ {
		a.label(fmt.Sprintf("rows%d", rows))
		if rows <= a.wide {
			a.tiles(rows, 2) // two panels at a time
		}
		a.tiles(rows, 1) // those that are left
		a.instruct("VZEROUPPER")
		a.instruct("RET")
	}
}

// tiles writes the loop over the panels of v for a number of rows: out[r, j] ← Σ_k s[r, k]·v[k, j] for the columns j of one or two panels
// at a time, or added to out. It ends when fewer panels are left. The sums are in the first registers, row after row. DX and SI point to
// the panel in out and v, and CX is the number of panels that are left.
func (a *x86) tiles(rows, panels int) {
	name := fmt.Sprintf("rows%dpanels%d", rows, panels)
	a.label(name)
	a.instruct("CMPQ", "CX", fmt.Sprintf("$%d", panels))
	a.instruct("JLT", name+"end")
	a.setSums(rows, panels, name)
	if panels == 2 {
		a.instruct("LEAQ", "(SI)(R9*1)", "R13") // the second panel of v
	}
	a.instruct("MOVQ", "16(DI)", "BX")  // s
	a.instruct("MOVQ", "24(DI)", "R11") // places of the rows of v
	a.instruct("MOVQ", "40(DI)", "R12") // depth
	a.label(name + "k")
	a.addTerm(rows, panels)
	a.instruct("ADDQ", "$8", "R11")
	a.instruct("LEAQ", memory(8*rows, "BX")+"(R10*1)", "BX")
	a.instruct("DECQ", "R12")
	a.instruct("JNZ", name+"k")
	a.eachSum(rows, panels, func(sum int, place string) { a.instruct("VMOVUPD", a.register(sum), place) })
	a.instruct("ADDQ", fmt.Sprintf("$%d", 64*panels), "DX")
	a.instruct("LEAQ", fmt.Sprintf("(SI)(R9*%d)", panels), "SI")
	a.instruct("SUBQ", fmt.Sprintf("$%d", panels), "CX")
	a.instruct("JMP", name)
	a.label(name + "end")
}

// setSums writes instructions that set the sums of a tile to the entries of out or, if the argument add is 0, to zero. Labels begin with
// name.
func (a *x86) setSums(rows, panels int, name string) {
	a.instruct("CMPQ", "64(DI)", "$0")
	a.instruct("JEQ", name+"zero")
	a.eachSum(rows, panels, func(sum int, place string) { a.instruct("VMOVUPD", place, a.register(sum)) })
	a.instruct("JMP", name+"begin")
	a.label(name + "zero")
	for sum := range rows * panels * 8 / a.lanes {
		a.clear(sum)
	}
	a.label(name + "begin")
}

// eachSum calls f for every register of sums of a tile, with the operand for its place in out. It writes instructions that move AX from
// row to row of out.
func (a *x86) eachSum(rows, panels int, f func(sum int, place string)) {
	n := panels * 8 / a.lanes // registers of a row: a panel has eight columns
	a.instruct("MOVQ", "DX", "AX")
	for r := range rows {
		for i := range n {
			f(r*n+i, memory(8*a.lanes*i, "AX"))
		}
		if r < rows-1 {
			a.instruct("ADDQ", "R8", "AX") // bytes between rows of out
		}
	}
}

// addTerm writes instructions that add the products of one k to the sums of a tile: s[r, k]·v[k, j] for every row r and column j. Row k
// of v is in the n registers behind the sums, an entry of s in the one or two behind these.
func (a *x86) addTerm(rows, panels int) {
	n := panels * 8 / a.lanes // registers of sums for a row
	sums := rows * n
	a.instruct("MOVQ", "(R11)", "AX") // the place of row k
	for i := range n {
		base := "SI"
		if i >= n/panels { // the second panel
			base = "R13"
		}
		a.instruct("VMOVUPD", memory(8*a.lanes*(i%(n/panels)), base)+"(AX*8)", a.register(sums+i))
	}
	for r := range rows {
		// Two registers take turns where there are two, so that the next factor can be loaded while this one is used.
		factor := sums + n
		if factor+r%2 < a.registers() {
			factor += r % 2
		}
		a.instruct("VBROADCASTSD", memory(8*r, "BX"), a.register(factor))
		for i := range n {
			a.instruct("VFMADD231PD", a.register(sums+i), a.register(factor), a.register(r*n+i))
		}
	}
}

// registers returns the number of vector registers: sixteen, or 32 with AVX-512.
func (a *x86) registers() int { return 4 * a.lanes }

// blend writes the functions of kernel.blend, without and with weights: sums of products of runs, four registers of the runs at a time,
// then one, then single entries.
func (a *x86) blend() {
	for _, weighted := range []bool{false, true} {
		name := "blend" + a.name
		if weighted {
			name = "weighted" + a.name
		}
		a.function(name, "func "+name+"(a *blendArgs)")
		a.instruct("MOVQ", "a+0(FP)", "DI")
		a.instruct("MOVQ", "0(DI)", "DX")  // out
		a.instruct("MOVQ", "8(DI)", "SI")  // a
		a.instruct("MOVQ", "16(DI)", "R8") // b
		a.instruct("MOVQ", "40(DI)", "CX") // n
		a.run(weighted, 4, false)          // four registers at a time
		a.run(weighted, 1, false)          // one register
		a.run(weighted, 1, true)           // one entry
		a.instruct("VZEROUPPER")
		a.instruct("RET")
	}
}

// runLoop is how one of the loops of blend takes the entries of a run: some vector registers of lanes entries at a time, or one entry at
// a time.
type runLoop struct {
	name      string // its label; other labels of the loop begin with it
	registers int    // of sums
	lanes     int    // entries of a register

	register                   func(n int) string // the operand for register n
	move, multiply, add, clear string             // instructions
}

// entries returns the number of entries that the loop takes at a time.
func (l *runLoop) entries() int { return l.registers * l.lanes }

// run writes the loop over the entries of a run: out[i] ← Σ_k w_k·a[i+p_k]·b[i+q_k] or added to out, where all w_k are 1 unless weighted
// is set. The loop takes the entries of wide registers at a time, or one entry if single is set, and ends when fewer are left. It moves
// the pointers DX, SI and R8 along out, a and b; CX is the number of entries that are left.
func (a *x86) run(weighted bool, wide int, single bool) {
	l := &runLoop{
		name: fmt.Sprintf("by%d", wide), registers: wide, lanes: a.lanes, register: a.register,
		move: "VMOVUPD", multiply: "VMULPD", add: "VFMADD231PD", clear: a.zero,
	}
	if single {
		l = &runLoop{
			name: "single", registers: 1, lanes: 1, register: func(n int) string { return fmt.Sprintf("X%d", n) },
			move: "VMOVSD", multiply: "VMULSD", add: "VFMADD231SD", clear: "VXORPD",
		}
	}
	a.label(l.name)
	a.instruct("CMPQ", "CX", fmt.Sprintf("$%d", l.entries()))
	a.instruct("JLT", l.name+"end")
	a.setRunSums(l)
	a.addRunTerms(l, weighted)
	for i := range l.registers {
		a.instruct(l.move, l.register(i), memory(8*l.lanes*i, "DX"))
	}
	bytes := fmt.Sprintf("$%d", 8*l.entries())
	for _, pointer := range []string{"DX", "SI", "R8"} {
		a.instruct("ADDQ", bytes, pointer)
	}
	a.instruct("SUBQ", fmt.Sprintf("$%d", l.entries()), "CX")
	a.instruct("JMP", l.name)
	a.label(l.name + "end")
}

// setRunSums writes instructions that set the sums, in the first registers, to the entries of out at DX or, if the argument add is 0, to
// zero.
func (a *x86) setRunSums(l *runLoop) {
	a.instruct("CMPQ", "64(DI)", "$0") // add
	a.instruct("JEQ", l.name+"zero")
	for i := range l.registers {
		a.instruct(l.move, memory(8*l.lanes*i, "DX"), l.register(i))
	}
	a.instruct("JMP", l.name+"begin")
	a.label(l.name + "zero")
	for i := range l.registers {
		a.instruct(l.clear, l.register(i), l.register(i), l.register(i))
	}
	a.label(l.name + "begin")
}

// addRunTerms writes the loop over the terms k, which adds their products to the sums in the first n registers. The entries of a are in
// the n registers behind these, and the weight of the term, if there is one, is in register 3n.
func (a *x86) addRunTerms(l *runLoop, weighted bool) {
	n := l.registers
	a.instruct("MOVQ", "24(DI)", "R9")  // places in a
	a.instruct("MOVQ", "32(DI)", "R10") // places in b
	a.instruct("MOVQ", "48(DI)", "R12") // terms
	if weighted {
		a.instruct("MOVQ", "56(DI)", "R11") // weights
	}
	a.label(l.name + "k")
	a.instruct("MOVQ", "(R9)", "AX")
	a.instruct("MOVQ", "(R10)", "BX")
	weight := 3 * n
	if weighted {
		load := "VBROADCASTSD" // into every lane
		if l.lanes == 1 {
			load = "VMOVSD"
		}
		a.instruct(load, "(R11)", l.register(weight))
		a.instruct("ADDQ", "$8", "R11")
	}
	for i := range n {
		a.instruct(l.move, memory(8*l.lanes*i, "SI")+"(AX*8)", l.register(n+i))
		if weighted {
			a.instruct(l.multiply, l.register(weight), l.register(n+i), l.register(n+i))
		}
	}
	for i := range n {
		a.instruct(l.add, memory(8*l.lanes*i, "R8")+"(BX*8)", l.register(n+i), l.register(i))
	}
	a.instruct("ADDQ", "$8", "R9")
	a.instruct("ADDQ", "$8", "R10")
	a.instruct("DECQ", "R12")
	a.instruct("JNZ", l.name+"k")
}

// dot writes the function of kernel.dot: 32 sums of products, each over every 32nd entry. The sums are in the first n registers, and the
// four behind them hold entries of a in turn.
func (a *x86) dot() {
	a.function("dot"+a.name, "func dot"+a.name+"(a *dotArgs)")
	n := 32 / a.lanes // registers of sums
	a.instruct("MOVQ", "a+0(FP)", "DI")
	a.instruct("MOVQ", "0(DI)", "SI")  // a
	a.instruct("MOVQ", "8(DI)", "R8")  // b
	a.instruct("MOVQ", "16(DI)", "CX") // blocks of 32 entries
	a.instruct("MOVQ", "24(DI)", "DX") // sums
	for i := range n {
		a.clear(i)
	}
	a.label("next")
	for i := range n {
		a.instruct("VMOVUPD", memory(8*a.lanes*i, "SI"), a.register(n+i%4))
		a.instruct("VFMADD231PD", memory(8*a.lanes*i, "R8"), a.register(n+i%4), a.register(i))
	}
	a.instruct("ADDQ", "$256", "SI") // 32 entries of 8 bytes
	a.instruct("ADDQ", "$256", "R8")
	a.instruct("DECQ", "CX")
	a.instruct("JNZ", "next")
	for i := range n {
		a.instruct("VMOVUPD", a.register(i), memory(8*a.lanes*i, "DX"))
	}
	a.instruct("VZEROUPPER")
	a.instruct("RET")
}

// batch writes the function of kernel.batch: the products of two rows and two columns, for blocks of eight matrices that lie side by
// side. A block of eight entries takes n registers. The sums of the four pairs of a row and a column are in the first 4n registers.
func (a *x86) batch() {
	a.function("batch"+a.name, "func batch"+a.name+"(a *batchArgs)")
	n := 8 / a.lanes
	pointers := []string{"SI", "R8", "R9", "R10"} // to two rows of a, two columns of b
	a.instruct("MOVQ", "a+0(FP)", "DI")
	for i, pointer := range pointers {
		a.instruct("MOVQ", memory(32+8*i, "DI"), pointer)
	}
	a.instruct("MOVQ", "88(DI)", "R11") // blocks
	a.instruct("XORQ", "DX", "DX")      // bytes into out
	a.label("next")
	for sum := range 4 * n {
		a.clear(sum)
	}
	a.addBatchTerms(n, pointers)
	for pair := range 4 {
		a.instruct("MOVQ", memory(8*pair, "DI"), "AX") // out
		for i := range n {
			a.instruct("VMOVUPD", a.register(pair*n+i), memory(8*a.lanes*i, "AX")+"(DX*1)")
		}
	}
	a.instruct("ADDQ", "$64", "DX") // eight entries of 8 bytes
	for _, pointer := range pointers {
		a.instruct("ADDQ", "$64", pointer)
	}
	a.instruct("DECQ", "R11")
	a.instruct("JNZ", "next")
	a.instruct("VZEROUPPER")
	a.instruct("RET")
}

// addBatchTerms writes the loop over the terms of batch, which adds the products of a block of eight matrices to the sums. The sums of the
// four pairs of a row and a column are in the first 4n registers. The entries of the two rows and of the two columns are in the registers
// behind them, n registers each.
func (a *x86) addBatchTerms(n int, pointers []string) {
	firstRow, firstColumn := 4*n, 6*n   // registers
	a.instruct("MOVQ", "64(DI)", "R12") // places in a
	a.instruct("MOVQ", "72(DI)", "R13") // places in b
	a.instruct("MOVQ", "80(DI)", "CX")  // terms
	a.label("k")
	a.instruct("MOVQ", "(R12)", "AX")
	a.instruct("MOVQ", "(R13)", "BX")
	for operand, pointer := range pointers {
		offset := "(AX*8)"
		if operand >= 2 { // a column of b
			offset = "(BX*8)"
		}
		for i := range n {
			a.instruct("VMOVUPD", memory(8*a.lanes*i, pointer)+offset, a.register(firstRow+operand*n+i))
		}
	}
	for pair := range 4 {
		row, column := firstRow+pair/2*n, firstColumn+pair%2*n
		for i := range n {
			a.instruct("VFMADD231PD", a.register(column+i), a.register(row+i), a.register(pair*n+i))
		}
	}
	a.instruct("ADDQ", "$8", "R12")
	a.instruct("ADDQ", "$8", "R13")
	a.instruct("DECQ", "CX")
	a.instruct("JNZ", "k")
}

// transpose writes the function of kernel.Tiles: it copies tiles of four rows and columns, transposed. Entry i of column j of a tile of
// the input becomes entry j of row i of the tile of the output.
func (a *x86) transpose() {
	a.function("transpose"+a.name, "func transpose"+a.name+"(a *transposeArgs)")
	a.instruct("MOVQ", "a+0(FP)", "DI")
	a.instruct("MOVQ", "8(DI)", "SI")   // input
	a.instruct("MOVQ", "16(DI)", "R12") // targets
	a.instruct("MOVQ", "24(DI)", "R13") // sources
	a.instruct("MOVQ", "32(DI)", "CX")  // tiles
	columns := []string{"R8", "R9", "R10", "R11"}
	for j, column := range columns { // pointers from here on: input plus the column's offset
		a.instruct("MOVQ", memory(72+8*j, "DI"), column)
		a.instruct("ADDQ", "SI", column)
	}
	a.instruct("MOVQ", "(DI)", "DX")           // output
	rows := []string{"SI", "R14", "R15", "DI"} // input and the arguments are not needed any more when SI and DI are set
	for i, row := range rows {
		a.instruct("MOVQ", memory(40+8*i, "DI"), row)
	}
	for _, row := range rows {
		a.instruct("ADDQ", "DX", row)
	}
	a.label("next")
	a.instruct("MOVQ", "(R13)", "AX") // the tile's place in input
	a.instruct("MOVQ", "(R12)", "BX") // and in output
	a.transposeTile(columns, rows)
	a.instruct("ADDQ", "$8", "R12")
	a.instruct("ADDQ", "$8", "R13")
	a.instruct("DECQ", "CX")
	a.instruct("JNZ", "next")
	a.instruct("VZEROUPPER")
	a.instruct("RET")
}

// transposeTile writes instructions that copy one tile from the columns to the rows. Columns 0 to 3 are loaded into the registers 0 to 3.
// The registers 4 to 7 have the entries of two columns in turn. The registers 8 to 11 have the rows 0 to 3.
func (a *x86) transposeTile(columns, rows []string) {
	for j, column := range columns {
		a.instruct("VMOVUPD", "("+column+")(AX*8)", a.register(j))
	}
	for pair := range 2 { // columns 0 and 1, then 2 and 3: their entries 0 and 2, and their entries 1 and 3
		a.instruct("VUNPCKLPD", a.register(2*pair+1), a.register(2*pair), a.register(4+2*pair))
		a.instruct("VUNPCKHPD", a.register(2*pair+1), a.register(2*pair), a.register(5+2*pair))
	}
	for i := range 2 { // rows i and i+2: the lower and the upper halves of two registers
		a.instruct("VPERM2F128", "$0x20", a.register(6+i), a.register(4+i), a.register(8+i))
		a.instruct("VPERM2F128", "$0x31", a.register(6+i), a.register(4+i), a.register(10+i))
	}
	for i, row := range rows {
		a.instruct("VMOVUPD", a.register(8+i), "("+row+")(BX*8)")
	}
}

// scatter writes the function of kernel.Lines: it copies lines of eight entries to eight places each.
func (a *x86) scatter() {
	a.function("scatter"+a.name, "func scatter"+a.name+"(a *scatterArgs)")
	a.instruct("MOVQ", "a+0(FP)", "DI")
	a.instruct("MOVQ", "(DI)", "DX")   // output
	a.instruct("MOVQ", "8(DI)", "SI")  // input
	a.instruct("MOVQ", "24(DI)", "CX") // sources
	places := []string{"R8", "R9", "R10", "R11", "R12", "R13", "R14", "R15"}
	for i, place := range places { // pointers from here on: output plus the place
		a.instruct("MOVQ", memory(40+8*i, "DI"), place)
		a.instruct("ADDQ", "DX", place)
	}
	a.instruct("MOVQ", "16(DI)", "DX") // targets, over the pointer to output
	a.instruct("MOVQ", "32(DI)", "DI") // lines, over the pointer to the arguments
	a.label("next")
	a.instruct("MOVQ", "(CX)", "AX") // the line's place in input
	a.instruct("MOVQ", "(DX)", "BX") // and in output
	for i := range places {
		a.instruct("VMOVSD", memory(8*i, "SI")+"(AX*8)", fmt.Sprintf("X%d", i))
	}
	for i, place := range places {
		a.instruct("VMOVSD", fmt.Sprintf("X%d", i), "("+place+")(BX*8)")
	}
	a.instruct("ADDQ", "$8", "CX")
	a.instruct("ADDQ", "$8", "DX")
	a.instruct("DECQ", "DI")
	a.instruct("JNZ", "next")
	a.instruct("RET")
}
