package kernel

// Products whose entries are anywhere.

// Places are where operands and the result of a product have its rows, columns and values of the sum.
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
	depth := len(x.ASum)
	p.at = progression(p.at, depth, Columns)
	width := max(Columns, min(blockColumns, packedEntries/depth&^(Columns-1)))
	height := max(12, min(blockRows, packedEntries/depth))
	for j := 0; j < len(x.BColumns); j += width {
		columns := x.BColumns[j:min(j+width, len(x.BColumns))]
		places := x.OutColumns[j:]
		p.v = room(p.v, PackedColumns(len(columns), depth))
		PackColumns(p.v, b, x.BSum, columns)
		for i := 0; i < len(x.ARows); i += height {
			rows := x.ARows[i:min(i+height, len(x.ARows))]
			p.s, p.tile = room(p.s, len(rows)*depth), room(p.tile, len(rows)*len(columns))
			PackRows(p.s, a, rows, x.ASum)
			Panel(p.tile, len(columns), len(rows), len(columns), p.s, p.v, p.at, depth*Columns, true)
			for r := range rows {
				place(out[x.OutRows[i+r]:], p.tile[r*len(columns):][:len(columns)], places)
			}
		}
	}
}

// place copies entries to their places.
func place(out, entries []float64, places []int) {
	for k, entry := range entries {
		out[places[k]] = entry
	}
}

// MultiplyRuns is MultiplyAt where every column that is listed is the first of so many that follow one another, in b and in out. No entry
// of b is copied.
func (p *Product) MultiplyRuns(out, a, b []float64, run int, x *Places) {
	p.s = room(p.s, len(x.ASum))
	for r, row := range x.ARows {
		for k, offset := range x.ASum {
			p.s[k] = a[row+offset]
		}
		for c, column := range x.BColumns {
			Panel(out[x.OutRows[r]+x.OutColumns[c]:], run, 1, run, p.s, b[column:], x.BSum, Columns, true)
		}
	}
}
