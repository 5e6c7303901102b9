package bp

// Pending work of sweeps after a warm start: the messages whose inputs have changed since they were
// computed.

import (
	"math"
)

// due adds up, per incidence, the staleness of its message: the change found by a check of all
// messages, and the movement of its inputs since. Where evidence is far away that stays below a part
// of the tolerance, and the message is left as it is; another check has the last word. A nil due
// leaves nothing out.
type due struct {
	by    []float64 // of an incidence
	least float64
	old   []float64 // the messages of an index to its tables, before they are sent again
}

func newDue(g *graph, tolerance float64) *due {
	return &due{by: make([]float64, len(g.table)), least: tolerance / 16}
}

func (d *due) set(k int32, by float64) {
	if d != nil {
		d.by[k] = by
	}
}

// settled reports whether the message of incidence k is not due; one that is will be computed now.
func (d *due) settled(k int32) bool {
	if d == nil {
		return false
	}
	if d.by[k] <= d.least {
		return true
	}
	d.by[k] = 0
	return false
}

func (d *due) before(s *State, i int) {
	if d != nil {
		d.old = append(d.old[:0], s.v[s.g.at[s.g.begin[i]]:s.g.at[s.g.end[i]]]...)
	}
}

// after makes the messages due that depend on index i's.
func (d *due) after(s *State, i int) {
	if d == nil {
		return
	}
	at := 0
	for k := s.g.begin[i]; k < s.g.end[i]; k++ {
		change := 0.0
		for _, x := range s.g.message(s.v, k) {
			change = max(change, math.Abs(x-d.old[at]))
			at++
		}
		if change == 0 {
			continue
		}
		for _, other := range s.g.alongScope(s.g.table[k]) {
			if other != k {
				d.by[other] += change
			}
		}
	}
}
