package kernel

// Copies into another sequence.

import "slices"

// TileSide is the side of a tile of Tiles.
const TileSide = 4

// transposeArgs is a call of the assembly. The generator knows where the fields are.
type transposeArgs struct {
	output, input    *float64
	targets, sources *int // by tile
	tiles            int
	rows             [TileSide]int // bytes from the beginning of a tile to its rows in output
	columns          [TileSide]int // and in input
}

// Tiles transposes tiles of four by four entries: it copies input[sources[k]+columns[j]+i] to output[targets[k]+rows[i]+j], for i, j < 4
// and every tile k.
type Tiles struct {
	targets, sources    []int // by tile
	rows, columns       [TileSide]int
	outputLen, inputLen int // entries that output and input must have at least
}

// Set sets where the tiles are, by the formula of Tiles. It keeps the lists, which must stay as they are until the last Copy.
func (t *Tiles) Set(targets, sources []int, rows, columns *[TileSide]int) {
	*t = Tiles{targets: targets[:len(sources)], sources: sources, rows: *rows, columns: *columns}
	if len(sources) > 0 {
		t.outputLen = largestSum(t.targets, rows[:]) + TileSide
		t.inputLen = largestSum(sources, columns[:]) + TileSide
	}
}

// largestSum returns the largest sum of a place in x and one in y. It panics if a sum is below 0.
func largestSum(x, y []int) int {
	if slices.Min(x)+slices.Min(y) < 0 {
		panic("kernel: a negative place")
	}
	return slices.Max(x) + slices.Max(y)
}

// Copy copies all tiles.
func (t *Tiles) Copy(output, input []float64) { t.copy(active, output, input) }

// copy copies input[sources[k]+columns[j]+i] to output[targets[k]+rows[i]+j] for i, j < 4 and all tiles k, with the loops of the set x. It
// panics if output or input is too short, since the assembly does not check.
func (t *Tiles) copy(x loopSet, output, input []float64) {
	if len(t.sources) == 0 {
		return
	}
	if x == rounded || x == fused {
		for k, source := range t.sources {
			target := output[t.targets[k]:]
			for j, column := range t.columns {
				for i, v := range (*[TileSide]float64)(input[source+column:]) {
					target[t.rows[i]+j] = v
				}
			}
		}
		return
	}
	_, _ = output[t.outputLen-1], input[t.inputLen-1] // panics if one is too short
	a := transposeArgs{output: &output[0], input: &input[0], targets: &t.targets[0], sources: &t.sources[0], tiles: len(t.sources)}
	for i := range TileSide {
		a.rows[i], a.columns[i] = 8*t.rows[i], 8*t.columns[i] // bytes
	}
	x.transposeVector(&a)
}

// scatterArgs is a call of the assembly. The generator knows where the fields are.
type scatterArgs struct {
	output, input    *float64
	targets, sources *int // by line
	lines            int
	places           [Columns]int // bytes from the beginning of a line in output
}

// Lines scatters lines of Columns entries: it copies input[sources[k]+j] to output[targets[k]+places[j]], for every entry j of every line
// k.
type Lines struct {
	targets, sources    []int // by line
	places              [Columns]int
	outputLen, inputLen int // entries that output and input must have at least
}

// Set sets where the lines are, by the formula of Lines. It keeps the lists, which must stay as they are until the last Copy.
func (l *Lines) Set(targets, sources []int, places *[Columns]int) {
	*l = Lines{targets: targets[:len(sources)], sources: sources, places: *places}
	if len(sources) > 0 {
		l.outputLen = largestSum(l.targets, places[:]) + 1
		l.inputLen = largestSum(sources, []int{0}) + Columns
	}
}

// Copy copies all lines.
func (l *Lines) Copy(output, input []float64) { l.copy(active, output, input) }

// copy copies input[sources[k]+j] to output[targets[k]+places[j]] for every entry j of every line k, with the loops of the set x. It panics
// if output or input is too short, since the assembly does not check.
func (l *Lines) copy(x loopSet, output, input []float64) {
	if len(l.sources) == 0 {
		return
	}
	if x == rounded || x == fused {
		for k, source := range l.sources {
			target := output[l.targets[k]:]
			for j, v := range (*[Columns]float64)(input[source:]) {
				target[l.places[j]] = v
			}
		}
		return
	}
	_, _ = output[l.outputLen-1], input[l.inputLen-1] // panics if one is too short
	a := scatterArgs{output: &output[0], input: &input[0], targets: &l.targets[0], sources: &l.sources[0], lines: len(l.sources)}
	for j, p := range l.places {
		a.places[j] = 8 * p // bytes
	}
	x.scatterVector(&a)
}
