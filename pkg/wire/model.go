package wire

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"reflect"
	"sync"

	"github.com/basetensor/basetensor/internal/base/codec"
	"github.com/basetensor/basetensor/internal/form"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// Request is the message that upstream publishes for reparam-worker: a factor graph and the queries on it. The graph is
// exactly one of Model, Text, and the digest of a registered Graph.
type Request struct {
	Job         string         `msgpack:"job"`
	Tenant      string         `msgpack:"tenant,omitempty"`
	Model       *Model         `msgpack:"model,omitempty"`
	Text        string         `msgpack:"text,omitempty"`         // the text of a file in a format of package formats
	ModelDigest string         `msgpack:"model_digest,omitempty"` // of a registered Graph
	Queries     []query.Query  `msgpack:"queries"`                // at least one
	Settings    query.Settings `msgpack:"settings,omitempty"`
	// milliseconds after the message was stored, 0: none
	DeadlineMS int64 `msgpack:"deadline_ms,omitempty"`
}

// Model is a factor graph on the wire.
type Model struct {
	Domains []int      `msgpack:"domains"`
	Names   []string   `msgpack:"names,omitempty"`  // one per variable
	States  [][]string `msgpack:"states,omitempty"` // per variable one per value, or null
	Factors factors    `msgpack:"factors"`          // a list of factorgraph.Factor
	Bayes   bool       `msgpack:"bayes,omitempty"`
	Aliases []string   `msgpack:"aliases,omitempty"` // per variable a second name under which it is found, "" for none
	Layout  []float64  `msgpack:"layout,omitempty"`  // per variable x and y, downwards, in the drawing of its file
	Lines   []int      `msgpack:"lines,omitempty"`   // per factor the line of its file, for warnings; 0 for none
	// per factor the lines of the rows of its last variable, for warnings, or null; the last factors may have no entry
	RowLines [][]int `msgpack:"row_lines,omitempty"`
}

// factors are encoded and decoded one at a time, as a scope and a table each.
type factors []factorgraph.Factor

// factor is a factor on the wire.
type factor struct {
	Scope []int       `msgpack:"scope"`
	Table form.Tensor `msgpack:"table"`
}

// Encode writes the factors.
func (l *factors) Encode(w *codec.Writer) error {
	return form.WritePieces(w, "scope", len(*l), func(j int) ([]int, tensor.Tensor) { return (*l)[j].Scope, (*l)[j].Table })
}

// Decode reads n factors. It checks every length of a table against its shape, and that the entries are finite.
func (l *factors) Decode(r *codec.Reader, n int) error {
	if err := r.Charge(n, reflect.TypeFor[factorgraph.Factor]()); err != nil { // from the memory that a message may take
		return err
	}
	*l = make(factors, n)
	f := new(factor) // used for all, which saves allocations
	tensors := new(form.Tensors)
	for j := range *l {
		*f = factor{}
		err := r.Value(f)
		var t tensor.Tensor
		if err == nil {
			t, err = f.decodeTable(tensors)
		}
		if err != nil {
			return codec.WithField(fmt.Sprintf("[%d]", j), err)
		}
		(*l)[j] = factorgraph.Factor{Scope: f.Scope, Table: t}
	}
	return nil
}

// Element returns a factor in the form in which it is encoded.
func (*factors) Element() any { return new(factor) }

// decodeTable returns the table of the factor, with memory from tensors. It checks that the entries are finite.
func (f *factor) decodeTable(tensors *form.Tensors) (tensor.Tensor, error) {
	t, err := f.Table.Decode(tensors)
	if err == nil {
		err = f.Table.CheckFinite()
	}
	return t, codec.WithField("table", err)
}

// Name returns "model".
func (m *Request) Name() string { return "model" }

// Validate checks the job's id, the queries and, of a model in Model, scopes, shapes and lengths.
// The text of a file is checked by its reader.
func (m *Request) Validate() error {
	if err := form.CheckJob(m.Job, m.Tenant); err != nil {
		return err
	}
	if err := form.CheckSettings(m.Settings); err != nil {
		return err
	}
	switch {
	case m.DeadlineMS < 0:
		return codec.Invalid("deadline_ms", "%d is negative", m.DeadlineMS)
	case len(m.Queries) == 0:
		return codec.Invalid("queries", "there is none")
	}
	if err := checkSource(m.Model, m.Text, &m.ModelDigest); err != nil {
		return err
	}
	if m.Model == nil {
		return form.CheckQueries(nil, false, m.Queries) // false: the model is not known yet
	}
	return form.CheckQueries(m.Model.Domains, true, m.Queries)
}

// Digest identifies the job's content: SHA-256, in 64 hexadecimal digits, of everything in m, with
// every setting written out and empty lists taken as absent. Two submissions of one digest are the
// same job. A request that names its model by digest and one that carries the same model are two
// requests.
func (m *Request) Digest() (string, error) {
	withDefaults := *m
	withDefaults.Settings = m.Settings.WithDefaults()
	h := sha256.New()
	w := hashWriters.Get().(*bufio.Writer)
	defer hashWriters.Put(w)
	w.Reset(h)
	if err := codec.MarshalTo(w, m.Name(), &withDefaults, true); err != nil { // canonical: empty lists are absent
		return "", err
	}
	w.Flush() // a hash takes everything
	return hex.EncodeToString(h.Sum(nil)), nil
}

// hashWriters are the buffers of Digest, which every job needs twice.
var hashWriters = sync.Pool{New: func() any { return bufio.NewWriter(nil) }}

// NewModel returns m as it goes on the wire. It shares m's slices. The error names a factor whose table has no form there.
func NewModel(m *factorgraph.Model) (*Model, error) {
	for j, f := range m.Factors {
		if _, err := form.NewTensor(f.Table); err != nil {
			return nil, codec.WithField("factors", codec.WithField(fmt.Sprintf("[%d]", j), err))
		}
	}
	return &Model{
		Domains: m.Domains, Names: m.Names, States: m.States, Factors: m.Factors, Bayes: m.Bayes,
		Aliases: m.Aliases, Layout: m.Layout, Lines: m.Lines, RowLines: m.RowLines,
	}, nil
}

// Decode returns the factor graph, after checking domains, names, scopes (in range, no repetition),
// shapes and lengths, and that entries are finite. It shares b's slices.
func (b *Model) Decode() (*factorgraph.Model, error) {
	if err := b.check(); err != nil {
		return nil, err
	}
	return &factorgraph.Model{
		Domains: b.Domains, Names: b.Names, States: b.States, Factors: b.Factors, Bayes: b.Bayes,
		Aliases: b.Aliases, Layout: b.Layout, Lines: b.Lines, RowLines: b.RowLines,
	}, nil
}

// check checks domains, names, scopes, shapes and lengths, and that entries are finite.
func (b *Model) check() error {
	// domains, and lists that have an item per variable or factor
	for i, d := range b.Domains {
		if d < 1 || d > math.MaxInt32 {
			return codec.Invalid(fmt.Sprintf("domains[%d]", i), "%d values", d)
		}
	}
	if err := checkNames(b.Domains, b.Names, b.States); err != nil {
		return err
	}
	if len(b.Aliases) != 0 && len(b.Aliases) != len(b.Domains) {
		return codec.Invalid("aliases", "%d aliases for %d variables", len(b.Aliases), len(b.Domains))
	}
	if len(b.Layout) != 0 && len(b.Layout) != 2*len(b.Domains) {
		return codec.Invalid("layout", "%d numbers for %d variables", len(b.Layout), len(b.Domains))
	}
	if len(b.Lines) != 0 && len(b.Lines) != len(b.Factors) {
		return codec.Invalid("lines", "%d lines for %d factors", len(b.Lines), len(b.Factors))
	}
	if len(b.RowLines) > len(b.Factors) {
		return codec.Invalid("row_lines", "lines of the rows of %d factors, the model has %d", len(b.RowLines), len(b.Factors))
	}

	// factors
	lastMark := make([]int, len(b.Domains)) // lastMark[i]: 1 + the last factor that has i in its scope
	for j := range b.Factors {
		if err := checkFactor(&b.Factors[j], b.Domains, lastMark, j+1); err != nil {
			return codec.WithField("factors", codec.WithField(fmt.Sprintf("[%d]", j), err))
		}
	}
	return nil
}

// checkNames checks that there is one name per variable, if there are any, and one state per value.
func checkNames(domains []int, names []string, states [][]string) error {
	if len(names) != 0 && len(names) != len(domains) {
		return codec.Invalid("names", "%d names for %d variables", len(names), len(domains))
	}
	if len(states) != 0 && len(states) != len(domains) {
		return codec.Invalid("states", "names of the values of %d variables, the model has %d", len(states), len(domains))
	}
	for v, names := range states {
		if len(names) != 0 && len(names) != domains[v] {
			return codec.Invalid(fmt.Sprintf("states[%d]", v), "%d names for %d values", len(names), domains[v])
		}
	}
	return nil
}

// NewRequest returns a request for m with the queries given, or for its ln Z alone, under no id and
// by default settings. It shares m's slices. Errors have the code bad_input.
func NewRequest(m *factorgraph.Model, queries ...query.Query) (Request, error) {
	body, err := NewModel(m)
	if err != nil {
		return Request{}, fault.Wrap(fault.BadInput, err)
	}
	if len(queries) == 0 {
		queries = []query.Query{{}} // an empty query asks for ln Z
	}
	return Request{Model: body, Queries: queries}, nil
}

// checkFactor checks a factor against the domains. lastMark[i] is the mark of the last factor that has variable i, and
// mark is that of this factor: a variable that has this mark already is there twice.
func checkFactor(f *factorgraph.Factor, domains, lastMark []int, mark int) error {
	if err := tensor.Validate(f.Table); err != nil {
		return codec.WithField("table", fmt.Errorf("%w: %w", codec.ErrInvalid, err))
	}
	shape := f.Table.Dims()
	if len(f.Scope) != len(shape) {
		return codec.Invalid("scope", "%d variables, the table has %d", len(f.Scope), len(shape))
	}
	for p, i := range f.Scope {
		switch {
		case i < 0 || i >= len(domains):
			return codec.Invalid("scope", "variable %d of %d", i, len(domains))
		case lastMark[i] == mark:
			return codec.Invalid("scope", "variable %d twice", i)
		case shape[p] != domains[i]:
			return codec.Invalid("table", "mode %d has %d values, variable %d has %d", p, shape[p], i, domains[i])
		}
		lastMark[i] = mark
	}
	return nil
}
