package message

import (
	"fmt"
	"math"

	"github.com/basetensor/basetensor/internal/btn"
	"github.com/basetensor/basetensor/internal/form"
	"github.com/basetensor/basetensor/pkg/countspace"
	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// decompositionBlob is a btn.Decomposition on the wire.
type decompositionBlob struct {
	Method        string      `msgpack:"method"`
	Levels        Levels      `msgpack:"levels"`
	Rotations     [][]float64 `msgpack:"rotations,omitempty"`
	Components    []component `msgpack:"components"`
	AlphaMant     []float64   `msgpack:"alpha_m"`
	AlphaExp      []int64     `msgpack:"alpha_e"`
	Exact         bool        `msgpack:"exact,omitempty"`
	Residual      float64     `msgpack:"residual"`
	LnExplained   float64     `msgpack:"ln_explained"`
	LnNormB       float64     `msgpack:"ln_norm_b"`
	LnNormError   float64     `msgpack:"ln_norm_error"`
	ConditionGram float64     `msgpack:"condition_gram"`
	Plan          btn.Cost    `msgpack:"plan"`
	Warnings      []string    `msgpack:"warnings,omitempty"`
	Contraction   *btn.Tree   `msgpack:"contraction,omitempty"`
	Growth        *btn.Growth `msgpack:"growth,omitempty"`
	Parts         []partBlob  `msgpack:"parts,omitempty"`
}

// partBlob is a btn.Part on the wire: what differs between exact decompositions.
type partBlob struct {
	Links      []int       `msgpack:"links"`
	Levels     Levels      `msgpack:"levels"`
	Components []component `msgpack:"components"`
	AlphaMant  []float64   `msgpack:"alpha_m"`
	AlphaExp   []int64     `msgpack:"alpha_e"`
	Plan       btn.Cost    `msgpack:"plan"`
}

func newPart(part btn.Part) (partBlob, error) {
	own, err := newDecomposition(part.Decomposition)
	return partBlob{Links: part.Links, Levels: own.Levels, Components: own.Components, AlphaMant: own.AlphaMant, AlphaExp: own.AlphaExp, Plan: own.Plan}, err
}

func (w *partBlob) decode() (btn.Part, error) {
	own := decompositionBlob{
		Method: string(btn.MethodExact), Levels: w.Levels, Components: w.Components, AlphaMant: w.AlphaMant, AlphaExp: w.AlphaExp,
		Exact: true, LnNormError: math.Inf(-1), ConditionGram: 1, Plan: w.Plan,
	}
	d, err := own.decode()
	return btn.Part{Links: w.Links, Decomposition: d}, err
}

type component struct {
	Class string      `msgpack:"class"`
	Box   []int       `msgpack:"box,omitempty"` // of S
	S     Scaled      `msgpack:"s,omitempty"`
	R     [][]float64 `msgpack:"r,omitempty"`
	CP    *Tensor     `msgpack:"cp,omitempty"`
	Order []int       `msgpack:"order,omitempty"`
	From  int64       `msgpack:"from,omitempty"`
	To    int64       `msgpack:"to,omitempty"`
	Rung  int         `msgpack:"rung,omitempty"`
	Slice int64       `msgpack:"slice,omitempty"`
}

type jobBlob struct {
	Decompositions []decompositionBlob `msgpack:"decompositions"`
	Assignments    []assignment        `msgpack:"assignments"`
}

type assignment struct {
	Decomposition int              `msgpack:"decomposition"`
	Cache         string           `msgpack:"cache"`
	LnLinks       float64          `msgpack:"ln_links"`
	Plan          *btn.Cost        `msgpack:"plan,omitempty"`
	Warnings      []string         `msgpack:"warnings,omitempty"`
	Relearned     string           `msgpack:"relearned,omitempty"`
	Unsure        bool             `msgpack:"unsure,omitempty"`
	Over          int              `msgpack:"over,omitempty"`
	Event         bool             `msgpack:"event,omitempty"`
	Hard          bool             `msgpack:"hard,omitempty"`
	Joint         []int            `msgpack:"joint,omitempty"`
	Propagation   *btn.Propagation `msgpack:"bp,omitempty"`
	Messages      []float64        `msgpack:"messages,omitempty"`
	Error         *btn.ErrorInfo   `msgpack:"error,omitempty"`
}

const (
	nameDecomposition = "decomposition-blob"
	nameJob           = "job-blob"
)

// EncodeDecomposition returns the bytes of d, as the cache keeps them.
func EncodeDecomposition(d *btn.Decomposition) ([]byte, error) {
	w, err := newDecomposition(d)
	if err != nil {
		return nil, under(nameDecomposition, err)
	}
	return encodeBlob(nameDecomposition, &w)
}

// DecodeDecomposition reads what EncodeDecomposition wrote. It checks that lengths agree with one another; CheckJob
// checks them against a network. Its errors are those of Decode.
func DecodeDecomposition(b []byte) (*btn.Decomposition, error) {
	var w decompositionBlob
	if err := unmarshal(nameDecomposition, b, MaxBlob, &w); err != nil {
		return nil, blame(nameDecomposition, err)
	}
	d, err := w.decode()
	return d, blame(nameDecomposition, err)
}

// EncodeJob returns the bytes under whose Digest a job's decompositions and assignments are stored.
func EncodeJob(j *btn.Job) ([]byte, error) {
	var w jobBlob
	if j.Decompositions != nil {
		w.Decompositions = make([]decompositionBlob, len(j.Decompositions))
	}
	for i, d := range j.Decompositions {
		var err error
		if w.Decompositions[i], err = newDecomposition(d); err != nil {
			return nil, under(fmt.Sprintf("%s.decompositions[%d]", nameJob, i), err)
		}
	}
	if j.Assignments != nil {
		w.Assignments = make([]assignment, len(j.Assignments))
	}
	for i, a := range j.Assignments {
		w.Assignments[i] = assignment(a)
	}
	return encodeBlob(nameJob, &w)
}

// DecodeJob reads what EncodeJob wrote. Every assignment names a decomposition or has an error. Its errors are those of
// Decode.
func DecodeJob(b []byte) (*btn.Job, error) {
	var w jobBlob
	if err := unmarshal(nameJob, b, MaxBlob, &w); err != nil {
		return nil, blame(nameJob, err)
	}
	j, err := w.decode()
	return j, blame(nameJob, err)
}

func (w *jobBlob) decode() (*btn.Job, error) {
	j := &btn.Job{}
	if w.Decompositions != nil {
		j.Decompositions = make([]*btn.Decomposition, len(w.Decompositions))
	}
	for i := range w.Decompositions {
		var err error
		if j.Decompositions[i], err = w.Decompositions[i].decode(); err != nil {
			return nil, under(fmt.Sprintf("decompositions[%d]", i), err)
		}
	}
	if w.Assignments != nil {
		j.Assignments = make([]btn.Assignment, len(w.Assignments))
	}
	for i, a := range w.Assignments {
		place := fmt.Sprintf("assignments[%d]", i)
		switch {
		case a.Error == nil && (a.Decomposition < 0 || a.Decomposition >= len(w.Decompositions)):
			return nil, invalid(place, "decomposition %d of %d", a.Decomposition, len(w.Decompositions))
		case a.Error != nil && a.Decomposition != -1:
			return nil, invalid(place, "decomposition %d and an error", a.Decomposition)
		}
		if err := checkOver(a.Over, i, len(w.Assignments)); err != nil {
			return nil, under(place, err)
		}
		if err := checkErrorInfo(a.Error); err != nil {
			return nil, under(place+".error", err)
		}
		j.Assignments[i] = btn.Assignment(a)
	}
	return j, nil
}

func newDecomposition(d *btn.Decomposition) (decompositionBlob, error) {
	if d == nil {
		return decompositionBlob{}, fmt.Errorf("%w: no decomposition", ErrInvalid)
	}
	w := decompositionBlob{
		Method: string(d.Method), Levels: newLevels(d.Levels), Rotations: d.Rotations, Exact: d.Exact, Residual: d.Residual,
		LnExplained: d.LnExplained, LnNormB: d.LnNormB, LnNormError: d.LnNormError, ConditionGram: d.ConditionGram,
		Plan: d.Plan, Warnings: d.Warnings, Contraction: d.Contraction, Growth: d.Growth,
	}
	if d.Alpha != nil {
		w.AlphaMant, w.AlphaExp = make([]float64, len(d.Alpha)), make([]int64, len(d.Alpha))
	}
	for i, a := range d.Alpha {
		w.AlphaMant[i], w.AlphaExp[i] = a.Mant, a.Exp
	}
	for p, part := range d.Parts {
		own, err := newPart(part)
		if err != nil {
			return w, under(fmt.Sprintf("parts[%d]", p), err)
		}
		w.Parts = append(w.Parts, own)
	}
	if d.Components != nil {
		w.Components = make([]component, len(d.Components))
	}
	for i, c := range d.Components {
		w.Components[i] = component{Class: string(c.Class), Box: c.S.Shape, S: newScaled(c.S.Coef), R: c.R, Order: c.Order, From: c.From, To: c.To, Rung: c.Rung, Slice: c.Slice}
		if c.CP != nil {
			t, err := newTensor(c.CP)
			if err != nil {
				return w, err
			}
			w.Components[i].CP = &t
		}
	}
	return w, nil
}

func (w *decompositionBlob) decode() (*btn.Decomposition, error) {
	levels, err := w.Levels.Decode()
	if err != nil {
		return nil, under("levels", err)
	}
	if len(w.AlphaMant) != len(w.Components) || len(w.AlphaExp) != len(w.Components) {
		return nil, invalid("alpha_m", "%d and %d for %d components", len(w.AlphaMant), len(w.AlphaExp), len(w.Components))
	}
	d := &btn.Decomposition{
		Method: btn.Method(w.Method), Levels: levels, Rotations: w.Rotations, Exact: w.Exact, Residual: w.Residual,
		LnExplained: w.LnExplained, LnNormB: w.LnNormB, LnNormError: w.LnNormError, ConditionGram: w.ConditionGram,
		Plan: w.Plan, Warnings: w.Warnings, Contraction: w.Contraction, Growth: w.Growth,
	}
	if w.AlphaMant != nil {
		d.Alpha = make([]scaled.Number, len(w.AlphaMant))
	}
	for i := range w.AlphaMant {
		d.Alpha[i] = scaled.Number{Mant: w.AlphaMant[i], Exp: w.AlphaExp[i]}
	}
	for p := range w.Parts {
		part, err := w.Parts[p].decode()
		if err != nil {
			return nil, under(fmt.Sprintf("parts[%d]", p), err)
		}
		d.Parts = append(d.Parts, part)
	}
	if w.Components != nil {
		d.Components = make([]btn.Component, len(w.Components))
	}
	for i := range w.Components {
		if d.Components[i], err = w.Components[i].decode(levels); err != nil {
			return nil, under(fmt.Sprintf("components[%d]", i), err)
		}
	}
	return d, nil
}

func (w *component) decode(levels countspace.Levels) (btn.Component, error) {
	c := btn.Component{Class: btn.Class(w.Class), R: w.R, Order: w.Order, From: w.From, To: w.To, Rung: w.Rung, Slice: w.Slice, S: countspace.Poly{Shape: w.Box, Coef: w.S.Decode()}}
	for _, d := range w.Box {
		if d < 1 || d > math.MaxInt32 {
			return c, invalid("box", "%v", w.Box)
		}
	}
	switch c.Class {
	case btn.ClassSymmetric, btn.ClassSymmetryRankOne:
		n, ok := product(w.Box)
		switch {
		case levels.D < 1 || len(w.Box) != levels.D-1 || !ok:
			return c, invalid("box", "%v for %d levels", w.Box, levels.D)
		}
		if err := w.S.Check(n); err != nil {
			return c, under("s", err)
		}
	case btn.ClassCP:
		if w.CP == nil {
			return c, missing("cp")
		}
	case btn.ClassRankOne, btn.ClassBase, btn.ClassParts, btn.ClassTruncated, btn.ClassRegion:
	default:
		return c, invalid("class", "%.40q is no class of this version", w.Class)
	}
	if w.CP == nil {
		return c, nil
	}
	t, err := w.CP.Decode(&form.Tensors{})
	if err != nil {
		return c, under("cp", err)
	}
	cp, ok := t.(*tensor.CP)
	if !ok {
		return c, invalid("cp.kind", "%q is not cp", w.CP.Kind)
	}
	c.CP = cp
	return c, nil
}
