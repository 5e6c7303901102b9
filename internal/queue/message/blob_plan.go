package message

// Plans as bytes, which caches keep and tasks name. A new class of parts whose fields have msgpack tags needs nothing
// here.

import (
	"fmt"
	"reflect"

	"github.com/basetensor/basetensor/internal/base/codec"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// Names of the blobs in errors.
const (
	namePlan        = "plan-blob"
	nameAssignments = "assignments-blob"
)

// planBlob is an encoded btn.Plan. A value that several parts share is written once, in Common, before the estimates.
type planBlob struct {
	btn.Plan
	Common    commonList     `msgpack:"common,omitempty"`
	Estimates []estimateBlob `msgpack:"estimates,omitempty"`
}

// estimateBlob is an encoded btn.Estimate.
type estimateBlob struct {
	Rule      btn.Rule     `msgpack:"rule"`
	Track     string       `msgpack:"track,omitempty"`
	Level     float64      `msgpack:"level"`
	Slices    int64        `msgpack:"slices"`
	Lossless  bool         `msgpack:"lossless,omitempty"`
	AlphaMant []float64    `msgpack:"alpha_m,omitempty"`
	AlphaExp  []int64      `msgpack:"alpha_e,omitempty"`
	Parts     partList     `msgpack:"parts"`
	Quality   *btn.Quality `msgpack:"quality,omitempty"`
	Cost      query.Cost   `msgpack:"cost"`
}

// partBlob is an encoded part.
type partBlob struct {
	class  string
	common int // 1 + the position in planBlob.Common of the value that the part shares with others; 0: it shares none
	form   any // a pointer to the part itself, or to the form of its class
}

// commonBlob is a value that several parts point at.
type commonBlob struct {
	class string // of the first of these parts
	form  any
}

// partList and commonList are encoded flat, as [class, common, form, class, common, form, …] and
// [class, form, class, form, …], because the type of a form depends on the class before it.
type (
	partList   []partBlob
	commonList []commonBlob
)

// Encode writes the parts, one at a time, as class, common and form.
func (l *partList) Encode(w *codec.Writer) error {
	if err := w.ArrayLen(3 * len(*l)); err != nil {
		return err
	}

	for i := range *l {
		p := &(*l)[i]
		for _, v := range []any{&p.class, &p.common, p.form} {
			if err := w.Value(v); err != nil {
				return err
			}
		}
	}
	return nil
}

// Decode reads what Encode wrote: an array of n elements, three for each part. Charge takes the memory of the list from
// what the reader may use, before it is allocated.
func (l *partList) Decode(r *codec.Reader, n int) error {
	if n%3 != 0 {
		return invalid("parts", "%d elements", n)
	}
	if err := r.Charge(n/3, reflect.TypeFor[partBlob]()); err != nil {
		return err
	}

	*l = make(partList, n/3)
	for i := range *l {
		if err := (*l)[i].readFrom(r); err != nil {
			return under(fmt.Sprintf("[%d]", i), err)
		}
	}
	return nil
}

// readFrom decodes one part: its class, the position of the value that it shares with other parts, and then the part. A
// part with tensors or with estimates of other parts is encoded in a form, from which toPart later fills the target.
func (p *partBlob) readFrom(r *codec.Reader) error {
	for _, v := range []any{&p.class, &p.common} {
		if err := r.Value(v); err != nil {
			return err
		}
	}

	class := btn.Class(p.class)
	part, ok := btn.NewPart(class)
	if !ok {
		return invalid("class", "%.40q is no class of this version", p.class)
	}
	switch typed := part.(type) {
	case btn.Tensorial:
		p.form = &tensorForm{target: typed}
	case btn.Compound:
		p.form = &compoundForm{target: typed}
	default:
		p.form = part
	}

	if err := r.Charge(1, reflect.TypeOf(p.form).Elem()); err != nil {
		return err
	}
	return r.Value(p.form)
}

// Encode writes the shared values, one at a time, as class and form.
func (l *commonList) Encode(w *codec.Writer) error {
	if err := w.ArrayLen(2 * len(*l)); err != nil {
		return err
	}

	for i := range *l {
		c := &(*l)[i]
		if err := w.Value(&c.class); err != nil {
			return err
		}
		if err := w.Value(c.form); err != nil {
			return err
		}
	}
	return nil
}

// Decode reads what Encode wrote: an array of n elements, two for each value. Charge takes the memory of the list from
// what the reader may use, before it is allocated.
func (l *commonList) Decode(r *codec.Reader, n int) error {
	if n%2 != 0 {
		return invalid("common", "%d elements", n)
	}
	if err := r.Charge(n/2, reflect.TypeFor[commonBlob]()); err != nil {
		return err
	}

	*l = make(commonList, n/2)
	for i := range *l {
		if err := (*l)[i].readFrom(r); err != nil {
			return under(fmt.Sprintf("[%d]", i), err)
		}
	}
	return nil
}

// readFrom decodes one value that parts share: first the class of these parts, which says what type the value has, and
// then the value.
func (c *commonBlob) readFrom(r *codec.Reader) error {
	if err := r.Value(&c.class); err != nil {
		return err
	}

	var about btn.About
	if part, ok := btn.NewPart(btn.Class(c.class)); ok {
		about = part.About()
	}
	field := about.Shared
	if field == nil {
		return invalid("class", "%.40q has nothing in common with others", c.class)
	}

	// Make an empty value of the right type. field points to the field of a part that points to the shared value.
	if about.SharedKind != nil {
		kind := r.Peek("kind")
		if c.form = about.SharedKind(kind); c.form == nil {
			return invalid("kind", "%.40q is no kind of this version", kind)
		}
	} else if reflect.TypeOf(field) == reflect.TypeFor[**btn.Frame]() {
		c.form = new(frameForm)
	} else {
		c.form = reflect.New(reflect.TypeOf(field).Elem().Elem()).Interface()
	}

	if err := r.Charge(1, reflect.TypeOf(c.form).Elem()); err != nil {
		return err
	}
	return r.Value(c.form)
}

// EncodePlan returns the bytes of a plan, as caches keep them.
func EncodePlan(p *btn.Plan) ([]byte, error) {
	w, err := newPlanBlob(p)
	if err != nil {
		return nil, under(namePlan, err)
	}
	return encodeBlob(namePlan, &w)
}

// DecodePlan decodes what EncodePlan wrote. It checks that lengths agree with one another; CheckPlan checks them
// against a network. Its errors are those of codec.Unmarshal.
func DecodePlan(b []byte) (*btn.Plan, error) {
	var w planBlob
	if err := unmarshal(namePlan, b, MaxBlob, &w); err != nil {
		return nil, blame(namePlan, err)
	}
	p, err := w.decode()
	return p, blame(namePlan, err)
}

// planWriter encodes estimates, and collects the values that their parts share.
type planWriter struct {
	positions map[any]int // by the shared pointer: 1 + its position in common
	common    commonList
}

// newPlanBlob returns the encoded form of a plan: its estimates, and the values that several of their parts share, which
// the writer collects.
func newPlanBlob(p *btn.Plan) (planBlob, error) {
	if p == nil {
		return planBlob{}, fmt.Errorf("%w: no plan", ErrInvalid)
	}

	w := planBlob{Plan: *p}
	writer := planWriter{}
	for k := range p.Estimates {
		e, err := writer.encodeEstimate(&p.Estimates[k])
		if err != nil {
			return w, under(fmt.Sprintf("estimates[%d]", k), err)
		}
		w.Estimates = append(w.Estimates, e)
	}

	w.Common = writer.common
	return w, nil
}

// encodeEstimate returns the encoded form of an estimate. The coefficients of its parts, which are mantissas with
// exponents, become two lists.
func (w *planWriter) encodeEstimate(e *btn.Estimate) (estimateBlob, error) {
	out := estimateBlob{
		Rule:     e.Rule,
		Track:    e.Track,
		Level:    e.Level,
		Slices:   e.Slices,
		Lossless: e.Lossless,
		Quality:  e.Quality,
		Cost:     e.Cost,
		Parts:    make(partList, len(e.Parts)),
	}
	if e.Alpha != nil {
		out.AlphaMant = make([]float64, len(e.Alpha))
		out.AlphaExp = make([]int64, len(e.Alpha))
	}
	for i, a := range e.Alpha {
		out.AlphaMant[i] = a.Mant
		out.AlphaExp[i] = a.Exp
	}

	for i, part := range e.Parts {
		var err error
		if out.Parts[i], err = w.encodePart(part); err != nil {
			return out, under(fmt.Sprintf("parts[%d]", i), err)
		}
	}
	return out, nil
}

// encodePart returns the encoded form of a part. Data that it shares with other parts of its plan is encoded once, in
// w.common, and the part has the position there. A part with tensors has a form of its own, and so has a part that
// consists of estimates of other parts. All other parts are encoded as they are.
func (w *planWriter) encodePart(part btn.Part) (partBlob, error) {
	if part == nil {
		return partBlob{}, fmt.Errorf("%w: no part", ErrInvalid)
	}

	out := partBlob{class: string(part.Class()), form: part}
	out.common = w.commonPosition(out.class, btn.SharedData(part))

	switch typed := part.(type) {
	case btn.Tensorial:
		form, err := newTensorForm(typed)
		if err != nil {
			return out, err
		}
		out.form = form
	case btn.Compound:
		form := &compoundForm{Factors: make([]factorForm, len(typed.Pieces()))}
		for f, factor := range typed.Pieces() {
			e, err := w.encodeEstimate(factor.Estimate)
			if err != nil {
				return out, under(fmt.Sprintf("factors[%d]", f), err)
			}
			form.Factors[f] = factorForm{Links: factor.Links, Estimate: e}
		}
		out.form = form
	}
	return out, nil
}

// commonPosition returns 1 + the position in w.common of a value that parts share. It adds the value if it is new. It
// returns 0 for nil. class is the class of the part that has the value. Values are encoded as they are, except for a frame.
func (w *planWriter) commonPosition(class string, common any) int {
	if common == nil {
		return 0
	}
	if position := w.positions[common]; position > 0 {
		return position
	}

	form := common
	if frame, ok := common.(*btn.Frame); ok {
		form = &frameForm{
			Closed:    frame.Closed,
			Levels:    newLevels(frame.Levels),
			Rotations: frame.Rotations,
		}
	}

	w.common = append(w.common, commonBlob{class: class, form: form})
	if w.positions == nil {
		w.positions = map[any]int{}
	}
	w.positions[common] = len(w.common)
	return len(w.common)
}

// decode returns the plan. w.Common has the values that several parts point at. Most of them are encoded as they are. A
// frame has an encoded form of its own, from which decode makes it once, for all parts that share it.
func (w *planBlob) decode() (*btn.Plan, error) {
	p := w.Plan
	common := make([]any, len(w.Common))
	for i := range w.Common {
		common[i] = w.Common[i].form
		frame, ok := common[i].(*frameForm)
		if !ok {
			continue
		}
		levels, err := frame.Levels.Decode()
		if err != nil {
			return nil, under(fmt.Sprintf("common[%d].levels", i), err)
		}
		common[i] = &btn.Frame{Closed: frame.Closed, Levels: levels, Rotations: frame.Rotations}
	}

	for k := range w.Estimates {
		e, err := w.Estimates[k].decodeWith(common)
		if err != nil {
			return nil, under(fmt.Sprintf("estimates[%d]", k), err)
		}
		p.Estimates = append(p.Estimates, e)
	}
	return &p, nil
}

// decodeWith returns the estimate. Its parts refer by number to the values in common, which several parts share. The
// coefficients α of the parts are encoded as a list of mantissas and one of exponents, or left out if all are 1.
func (w *estimateBlob) decodeWith(common []any) (btn.Estimate, error) {
	e := btn.Estimate{
		Rule:     w.Rule,
		Track:    w.Track,
		Level:    w.Level,
		Slices:   w.Slices,
		Lossless: w.Lossless,
		Quality:  w.Quality,
		Cost:     w.Cost,
		Parts:    make([]btn.Part, len(w.Parts)),
	}
	isOnePerPart := w.AlphaMant == nil || len(w.AlphaMant) == len(w.Parts)
	if len(w.AlphaMant) != len(w.AlphaExp) || !isOnePerPart {
		return e, invalid(
			"alpha_m", "%d and %d for %d parts", len(w.AlphaMant), len(w.AlphaExp), len(w.Parts),
		)
	}
	if w.AlphaMant != nil {
		e.Alpha = make([]scaled.Number, len(w.AlphaMant))
	}
	for i := range w.AlphaMant {
		e.Alpha[i] = scaled.Number{Mant: w.AlphaMant[i], Exp: w.AlphaExp[i]}
	}

	for i := range w.Parts {
		var err error
		if e.Parts[i], err = w.Parts[i].decodeWith(common); err != nil {
			return e, under(fmt.Sprintf("parts[%d]", i), err)
		}
	}
	return e, nil
}

// decodeWith returns the part. If it shares a value with other parts, p.common is 1 + the position of that value in common,
// and decodeWith sets it in the part.
func (p *partBlob) decodeWith(common []any) (part btn.Part, err error) {
	switch form := p.form.(type) {
	case *compoundForm:
		part, err = form.toPart(common)
	case *tensorForm:
		part, err = form.toPart()
	case btn.Part:
		part = form
	}
	if err != nil {
		return nil, err
	}

	switch {
	case p.common == 0:
		return part, nil
	case p.common < 0 || p.common > len(common):
		return nil, invalid("common", "%d of %d for class %s", p.common, len(common), p.class)
	case !btn.SetSharedData(part, common[p.common-1]):
		return nil, invalid("common", "%d is of another class than %s", p.common, p.class)
	}
	return part, nil
}
