// Cactus plots: the number of solved models by the time of each.

package bench

import (
	"fmt"
	"sort"
)

// Clock is which time of a model is drawn.
type Clock string

// The clocks.
const (
	Wall Clock = "wall time"
	CPU  Clock = "CPU time"
)

// Series is one curve: the sorted times of the models a set solved, in seconds.
type Series struct {
	Name  string
	Times []float64
	Total int // models tried
}

// SeriesOf groups rows by their set, in the order in which the sets appear. Rows without a set count
// to the one named otherwise.
func SeriesOf(rows []Row, otherwise string, clock Clock) []Series {
	var list []Series
	index := map[string]int{}
	for _, r := range rows {
		name := r.Set
		if name == "" {
			name = otherwise
		}
		i, ok := index[name]
		if !ok {
			i, index[name] = len(list), len(list)
			list = append(list, Series{Name: name})
		}
		if list[i].Total++; r.Status.Solved() {
			seconds := r.Wall
			if clock == CPU {
				seconds = r.CPU
			}
			list[i].Times = append(list[i].Times, seconds)
		}
	}

	for _, s := range list {
		sort.Float64s(s.Times)
	}
	return list
}

// point of a curve: solved models need at most so many seconds each.
type point struct{ Seconds, Solved float64 }

// leastSeconds is where the time axis begins at the latest: a logarithm has no 0, and clocks no
// less.
const leastSeconds = 1e-3

// points are the corners of the curve as a staircase, from (from, 0) to (to, solved).
func (s Series) points(from, to float64) []point {
	list := []point{{from, 0}}
	for i, t := range s.Times {
		t = max(t, leastSeconds)
		list = append(list, point{t, float64(i)}, point{t, float64(i + 1)})
	}
	return append(list, point{to, float64(len(s.Times))})
}

// label of the curve in the legend.
func (s Series) label() string {
	return fmt.Sprintf("%s: %d of %d solved", s.Name, len(s.Times), s.Total)
}
