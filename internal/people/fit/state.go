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
	Iteration int         `json:"iteration"`
	Tables    [][]float64 `json:"tables,omitempty"` // the iteration's; none: those that the start begins with
	Last      *float64    `json:"last,omitempty"`   // objective of the iteration before; nil: it may fall
	Perturbed bool        `json:"perturbed,omitempty"`
	Before    *Outcome    `json:"before,omitempty"` // the tables were perturbed
	Best      *Outcome    `json:"best,omitempty"`   // of the starts that have ended
	Ended     []Start     `json:"ended,omitempty"`
}

// Outcome is the tables that a start ended with.
type Outcome struct {
	Start     `json:"end"`
	Tables    [][]float64 `json:"tables"`
	Unreached Unreached   `json:"unreached"`
}

// resume goes on from a state.
func (f *fitting) resume(s *State) error {
	sets := []*[][]float64{}
	if s.Tables != nil {
		sets = append(sets, &s.Tables)
	}
	for _, o := range []*Outcome{s.Before, s.Best} {
		if o != nil {
			sets = append(sets, &o.Tables)
		}
	}
	for _, tables := range sets {
		if !slices.EqualFunc(*tables, f.given, func(a, b []float64) bool { return len(a) == len(b) }) {
			return fault.New(fault.BadInput, "the state of the unfinished run has other tables than the model")
		}
	}
	if s.Start < 0 || s.Iteration < 0 || s.Start != len(s.Ended) || (s.Best == nil) != (s.Start == 0) {
		return fault.New(fault.BadInput, "the state of the unfinished run contradicts itself: start %d of %d that ended", s.Start, len(s.Ended))
	}
	f.state = *s
	return nil
}

// stateFile is the content of a file with a state.
type stateFile struct {
	Run   string `json:"run"` // digest of everything that the state depends on
	State State  `json:"state"`
}

// mostState bounds the bytes of a file with a state.
const mostState = 4 << 30

// LoadState reads the state that an unfinished run left in a file, nil if there is no file. The run must have been of the same digest.
func LoadState(path, run string) (*State, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fault.Wrap(fault.Infrastructure, err)
	}
	if !info.Mode().IsRegular() || info.Size() > mostState {
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
	if file.Run != run {
		return nil, fault.New(fault.BadInput,
			"%s is of an unfinished run with another model, other cases or options: remove it to begin anew, or name another output", path)
	}
	return &file.State, nil
}

// WriteState writes the state of a run with a digest.
func WriteState(w io.Writer, run string, s *State) error {
	return json.NewEncoder(w).Encode(stateFile{run, *s})
}
