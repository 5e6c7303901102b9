package kernel

// Products whose entries are anywhere.

// Places say where the entries of a product out ← a·b of matrices are: that of row r and column c of out is at OutRows[r]+OutColumns[c],
// that of row r and value k of the sum in a at ARows[r]+ASum[k], and that of k and column c in b at BColumns[c]+BSum[k].
type Places struct {
	OutRows, OutColumns []int
	ARows, ASum         []int
	BColumns, BSum      []int
}

// packedEntries bounds the entries of an operand that are packed at a time, unless one panel or tile takes more.
const packedEntries = blockColumns * blockSum

// MultiplyAt computes a product whose operands and result have their entries anywhere,
//
//	out[OutRows[r]+OutColumns[c]] ← Σ_k a[ARows[r]+ASum[k]]·b[BColumns[c]+BSum[k]].
//
// It takes 2·rows·columns·terms flops, and copies every entry once.
func (p *Product) MultiplyAt(out, a, b []float64, x *Places) {
	const isFirst = true // Panel sets its output
	depth := len(x.ASum)
	p.panelRows = progression(p.panelRows, depth, Columns)
	maxColumns := max(Columns, min(blockColumns, packedEntries/depth&^(Columns-1))) // whole panels
	maxRows := max(12, min(blockRows, packedEntries/depth))                         // at least the 12 rows of the largest tile
	for j := 0; j < len(x.BColumns); j += maxColumns {
		columns := x.BColumns[j:min(j+maxColumns, len(x.BColumns))]
		outColumns := x.OutColumns[j:]
		p.packedB = resize(p.packedB, PackedColumns(len(columns), depth))
		PackColumns(p.packedB, b, x.BSum, columns)
		for i := 0; i < len(x.ARows); i += maxRows {
			rows := x.ARows[i:min(i+maxRows, len(x.ARows))]
			p.packedA, p.tile = resize(p.packedA, len(rows)*depth), resize(p.tile, len(rows)*len(columns))
			PackRows(p.packedA, a, rows, x.ASum)
			Panel(p.tile, len(columns), len(rows), len(columns), p.packedA, p.packedB, p.panelRows, depth*Columns, isFirst)
			for r := range rows {
				scatter(out[x.OutRows[i+r]:], p.tile[r*len(columns):][:len(columns)], outColumns)
			}
		}
	}
}

// scatter sets out[places[k]] to entries[k] for every k.
func scatter(out, entries []float64, places []int) {
	for k, entry := range entries {
		out[places[k]] = entry
	}
}

// MultiplyRuns is MultiplyAt for columns in runs: every listed column is the first of run columns that follow one another, in b and in out.
// No entry of b is copied.
func (p *Product) MultiplyRuns(out, a, b []float64, run int, x *Places) {
	const isFirst = true // Panel sets its output
	p.packedA = resize(p.packedA, len(x.ASum))
	for r, row := range x.ARows {
		for k, offset := range x.ASum {
			p.packedA[k] = a[row+offset]
		}
		for c, column := range x.BColumns { // a panel of one row: b is read as it is, from the column on
			Panel(out[x.OutRows[r]+x.OutColumns[c]:], run, 1, run, p.packedA, b[column:], x.BSum, Columns, isFirst)
		}
	}
}
