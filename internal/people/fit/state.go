package fit

// What an interrupted run goes on from.

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"

	"github.com/basetensor/basetensor/pkg/fault"
)

// State is where a run is between two iterations.
type State struct {
	Start     int         `json:"start"`
	Iteration int         `json:"iteration"`           // the next one, from 0 on
	Tables    [][]float64 `json:"tables,omitempty"`    // tables of this iteration; none: those that the start begins with
	Last      *float64    `json:"last,omitempty"`      // objective of the iteration before; nil: none, or perturbed since
	Perturbed bool        `json:"perturbed,omitempty"` // whether the tables were perturbed after convergence
	Before    *Outcome    `json:"before,omitempty"`    // the end before that perturbation
	Best      *Outcome    `json:"best,omitempty"`      // the best of the starts that have ended
	Ended     []Start     `json:"ended,omitempty"`     // the starts that have ended
}

// Outcome is the tables that a start ended with.
type Outcome struct {
	Start     `json:"end"`
	Tables    [][]float64 `json:"tables"`
	Unreached Unreached   `json:"unreached"`
}

// resume sets the state of the run. It returns an error if the state has tables of other sizes than the model, or
// contradicts itself.
func (f *fitting) resume(state *State) error {
	// All tables of the state have the sizes of the model's.
	tableSets := []*[][]float64{}
	if state.Tables != nil {
		tableSets = append(tableSets, &state.Tables)
	}
	for _, o := range []*Outcome{state.Before, state.Best} {
		if o != nil {
			tableSets = append(tableSets, &o.Tables)
		}
	}
	for _, tables := range tableSets {
		if !slices.EqualFunc(*tables, f.startTables, func(a, b []float64) bool { return len(a) == len(b) }) {
			return fault.New(fault.BadInput, "the state of the unfinished run has other tables than the model")
		}
	}

	// As many starts have ended as it counts, and there is a best one if any has.
	isConsistent := state.Start >= 0 && state.Iteration >= 0 &&
		state.Start == len(state.Ended) && (state.Best != nil) == (state.Start > 0)
	if !isConsistent {
		return fault.New(fault.BadInput,
			"the state of the unfinished run contradicts itself: start %d of %d that ended", state.Start, len(state.Ended))
	}
	f.state = *state
	return nil
}

// stateFile is the content of a file with a state.
type stateFile struct {
	Run   string `json:"run"` // digest of everything that the state depends on
	State State  `json:"state"`
}

// maxStateBytes bounds the size of a file with a state.
const maxStateBytes = 4 << 30

// LoadState reads the state that an unfinished run left in a file, nil if there is no file. The run must have been of the same digest.
func LoadState(path, runDigest string) (*State, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fault.Wrap(fault.Infrastructure, err)
	}
	if !info.Mode().IsRegular() || info.Size() > maxStateBytes {
		return nil, fault.New(fault.BadInput, "%s: no file of an unfinished run", path)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fault.Wrap(fault.Infrastructure, err)
	}
	var file stateFile
	if err := json.NewDecoder(bytes.NewReader(b)).Decode(&file); err != nil {
		return nil, fault.New(fault.BadInput, "%s: %w: remove it to begin anew", path, err)
	}
	if file.Run != runDigest {
		return nil, fault.New(fault.BadInput,
			"%s is of an unfinished run with another model, other cases or options: remove it to begin anew, or name another output", path)
	}
	return &file.State, nil
}

// WriteState writes the state of a run with a digest.
func WriteState(w io.Writer, run string, s *State) error {
	return json.NewEncoder(w).Encode(stateFile{run, *s})
}
