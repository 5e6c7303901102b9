package message

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/vmihailenco/msgpack/v5"

	"github.com/basetensor/basetensor/internal/base/codec"
	"github.com/basetensor/basetensor/internal/methods/closed"
	"github.com/basetensor/basetensor/internal/methods/exact"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/countspace"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
	"github.com/basetensor/basetensor/pkg/wire"
)

func empty(m wire.Message) wire.Message {
	return reflect.New(reflect.TypeOf(m).Elem()).Interface().(wire.Message)
}

func TestMessagesRoundTrip(t *testing.T) {
	for _, m := range sampleMessages() {
		b, err := wire.Encode(m)
		if err != nil {
			t.Fatalf("%s: %v", m.Name(), err)
		}
		got := empty(m)
		if err := wire.Decode(b, got); err != nil {
			t.Fatalf("%s: %v", m.Name(), err)
		}
		if !reflect.DeepEqual(got, m) {
			t.Errorf("%s: decoded\n%+v\nencoded\n%+v", m.Name(), got, m)
		}
		for range 5 { // free maps are iterated in another order each time
			if again, _ := wire.Encode(got); !bytes.Equal(again, b) {
				t.Fatalf("%s: the same message gave other bytes", m.Name())
			}
		}
	}
}

func TestModelRoundTrip(t *testing.T) {
	want := sampleModel()
	body, err := wire.NewModel(want)
	if err != nil {
		t.Fatal(err)
	}
	b, err := wire.Encode(&wire.Request{Job: "j", Model: body, Queries: []query.Query{{}}})
	if err != nil {
		t.Fatal(err)
	}
	var m wire.Request
	if err := wire.Decode(b, &m); err != nil {
		t.Fatal(err)
	}
	got, err := m.Model.Decode()
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("decoded %+v, want %+v", got, want)
	}
}

func TestBlobsRoundTrip(t *testing.T) {
	for seed := range uint64(300) {
		r := random{rand.New(rand.NewPCG(seed, 1))}
		n := r.network()
		b, err := EncodeNetwork(n)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		got, err := DecodeNetwork(b)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if !reflect.DeepEqual(got, n) {
			t.Fatalf("seed %d: decoded\n%+v\nencoded\n%+v", seed, got, n)
		}
		if again, _ := EncodeNetwork(got); !bytes.Equal(again, b) {
			t.Fatalf("seed %d: the same network gave other bytes", seed)
		}
		all := r.assignments(n)
		if b, err = EncodeAssignments(all); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		gotAll, err := DecodeAssignments(b)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if !reflect.DeepEqual(gotAll, all) {
			t.Fatalf("seed %d: decoded\n%+v\nencoded\n%+v", seed, gotAll, all)
		}
		if err := CheckAssignments(n, gotAll); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		for i, a := range all {
			if a.Plan == nil {
				continue
			}
			if (gotAll[i].Plan == gotAll[0].Plan) != (a.Plan == all[0].Plan) {
				t.Fatalf(
					"seed %d: assignments 0 and %d do not share their plans as they did", seed, i,
				)
			}
			b, err := EncodePlan(a.Plan)
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			got, err := DecodePlan(b)
			if err != nil || !reflect.DeepEqual(got, a.Plan) {
				t.Fatalf("seed %d: %v: decoded\n%+v\nencoded\n%+v", seed, err, got, a.Plan)
			}
		}
	}
}

// What parts have in common is written once, and shared again when read.
func TestPartsShareWhatTheyShared(t *testing.T) {
	tree := &exact.Tree{Shape: digestA, Tables: 500, Merges: make([]int, 2*499), Count: 4}
	frame := &btn.Frame{Rotations: [][]float64{make([]float64, 1<<10)}}
	plan := func(parts ...btn.Part) *btn.Plan {
		return &btn.Plan{Estimates: []btn.Estimate{{Rule: btn.Linear, Slices: 1, Parts: parts}}}
	}
	one, err := EncodePlan(plan(&exact.Slices{Tree: tree, To: 1}, &closed.RankOne{Frame: frame}))
	if err != nil {
		t.Fatal(err)
	}
	all, err := EncodePlan(
		plan(&exact.Slices{Tree: tree, To: 1}, &closed.RankOne{Frame: frame}, &exact.Slices{
			Tree: tree,
			From: 1,
			To:   4,
		}, &closed.CP{
			Frame:  frame,
			Tensor: &tensor.CP{Shape: []int{}, Weights: []float64{1}, Vectors: [][]float64{}},
		}),
	)
	if err != nil {
		t.Fatal(err)
	}
	if more := len(all) - len(one); more > 200 {
		t.Errorf("two parts more take %d bytes more", more)
	}
	got, err := DecodePlan(all)
	if err != nil {
		t.Fatal(err)
	}
	p := got.Estimates[0].Parts
	if p[0].(*exact.Slices).Tree != p[2].(*exact.Slices).Tree ||
		p[1].(*closed.RankOne).Frame != p[3].(*closed.CP).Frame {
		t.Error("parts do not share what they shared")
	}
}

// A null is not an empty list: a nil vector is the identity or all ones, a nil map of a leg is the
// identity.
func TestNilIsNotEmpty(t *testing.T) {
	for i, n := range []*btn.Network{
		{},
		{
			Dims: []int{}, Maps: []btn.Map{}, Cores: []btn.Core{}, Links: nil,
			Variables: []btn.Variable{},
		},
		{Dims: []int{1}, Cores: []btn.Core{{Legs: []int{0}, T: &tensor.CP{Shape: []int{1}, Weights: []float64{2}, Vectors: [][]float64{nil}}}}},
		{Dims: []int{1}, Cores: []btn.Core{{Legs: []int{0}, T: &tensor.CP{Shape: []int{1}, Weights: []float64{}, Vectors: [][]float64{{}}}}}},
		{Dims: []int{1}, Maps: []btn.Map{{}}, Links: []btn.Link{{Legs: []int{0}, T: &tensor.SymmetryCP{
			Shape:  []int{1},
			Levels: countspace.Levels{D: 1, Of: [][]uint8{{0}}},
			Terms:  []tensor.SymmetryRankOne{},
		}}}},
	} {
		b, err := EncodeNetwork(n)
		if err != nil {
			t.Fatal(i, err)
		}
		got, err := DecodeNetwork(b)
		if err != nil || !reflect.DeepEqual(got, n) {
			t.Errorf("%d: decoded %#v (%v), encoded %#v", i, got, err, n)
		}
	}
}

// A term without vectors, which the native format has, is one of ones throughout.
func TestTermWithoutVectors(t *testing.T) {
	dims := []int{2, 3}
	table := &tensor.SymmetryCP{
		Shape:  dims,
		Levels: countspace.TwoLevels(dims),
		Terms:  []tensor.SymmetryRankOne{{Alpha: 1, S: scaled.Vector{Mant: []float64{1, 2, 3}}}},
	}
	m := &factorgraph.Model{
		Domains: dims,
		Factors: []factorgraph.Factor{{Scope: []int{0, 1}, Table: table}},
	}
	g, err := wire.NewGraph(m)
	if err != nil {
		t.Fatal(err)
	}
	b, _, err := wire.EncodeGraph(g)
	if err != nil {
		t.Fatal(err)
	}
	var back wire.Graph
	if err := wire.Decode(b, &back); err != nil {
		t.Fatal(err)
	}
	if r := back.Model.Factors[0].Table.(*tensor.SymmetryCP).Terms[0].R; len(r) != 2 ||
		r[0] != nil || r[1] != nil {
		t.Errorf("vectors %v", r)
	}
}

// Thousands of legs with few distinct maps and level tables: they are written once, and shared
// again when read.
func TestSharedTablesAreWrittenOnce(t *testing.T) {
	const legs = 5000
	n := &btn.Network{Dims: make([]int, legs), Maps: make([]btn.Map, legs)}
	all := make([]int, legs)
	for i := range n.Dims {
		n.Dims[i], all[i] = 2+i%2, i
		n.Maps[i] = btn.Map{Kind: query.MapOrthogonal, A: make([]float64, n.Dims[i]*n.Dims[i])}
	}
	levels := countspace.TwoLevels(n.Dims)
	n.Cores = []btn.Core{{Legs: all, T: &tensor.Symmetric{Shape: n.Dims, Levels: levels}}}
	n.Cores[0].T.(*tensor.Symmetric).Values.Mant = make([]float64, legs+1)
	b, err := EncodeNetwork(n)
	if err != nil {
		t.Fatal(err)
	}
	// values, and a few bytes a leg for legs, dims, indices
	if limit := 8*(legs+1) + 9*legs; len(b) > limit {
		t.Errorf("%d bytes, expected at most %d", len(b), limit)
	}
	got, err := DecodeNetwork(b)
	if err != nil {
		t.Fatal(err)
	}
	if &got.Maps[0].A[0] != &got.Maps[2].A[0] || !reflect.DeepEqual(got, n) {
		t.Error("equal maps are not shared, or not equal")
	}
}

// The msgpack library, which shares no code with our reader, finds in our bytes what we put there.
func TestLibraryReadsOurBytes(t *testing.T) {
	units := []btn.Unit{{Query: 3, Part: 1 << 20}, {Query: 3, Part: 3}}
	want := Task{
		Job:         "j",
		Digest:      digestA,
		NetworkBlob: digestB,
		JobBlob:     digestA,
		K:           200,
		N:           70000,
		Units:       units,
		Demands:     []btn.Demand{{Want: btn.Want{Joint: []int{4}}}},
		First:       3,
		Memory:      1 << 50,
		Cost:        0.1,
		Stored:      1767225600000,
		Timings:     map[string]float64{"x": 1.25},
	}
	b, err := wire.Encode(&want)
	if err != nil {
		t.Fatal(err)
	}
	var got Task
	if err := msgpack.Unmarshal(b, &got); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("the library reads %+v (%v), want %+v", got, err, want)
	}
	// And the other way round: what the library writes for a client in another language, plus our
	// two common keys.
	theirs, err := msgpack.Marshal(
		map[string]any{
			"v":     1,
			"t":     "cancel",
			"job":   "j",
			"time":  uint64(1767225600000),
			"later": []any{1, nil, map[string]any{"a": 1.5}},
		},
	)
	if err != nil {
		t.Fatal(err)
	}
	var c wire.Cancel
	if err := wire.Decode(theirs, &c); err != nil ||
		c != (wire.Cancel{Job: "j", Time: 1767225600000}) {
		t.Errorf("%+v, %v", c, err)
	}
}

// Results carry the names and values that encoding/json gives them.
func TestResultsAreKeyedAsInJSON(t *testing.T) {
	for _, m := range sampleMessages() {
		a, ok := m.(*wire.Answer)
		if !ok || len(a.Results) == 0 {
			continue
		}
		b, err := wire.Encode(a)
		if err != nil {
			t.Fatal(err)
		}
		view, err := codec.View(b)
		if err != nil {
			t.Fatal(err)
		}
		var got struct{ Results []any }
		if err := json.Unmarshal(view, &got); err != nil {
			t.Fatal(err)
		}
		for i, r := range a.Results {
			text, err := json.Marshal(r)
			if err != nil {
				t.Fatal(err)
			}
			var want any
			if err := json.Unmarshal(text, &want); err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got.Results[i], want) {
				t.Errorf("result %d: message\n%v\njson\n%v", i, got.Results[i], want)
			}
		}
	}
}

func TestViewsRoundTrip(t *testing.T) {
	for _, m := range sampleMessages() {
		b, err := wire.Encode(m)
		if err != nil {
			t.Fatal(err)
		}
		view, err := codec.View(b)
		if err != nil {
			t.Fatal(err)
		}
		if !json.Valid(view) {
			t.Fatalf("%s: not JSON: %s", m.Name(), view)
		}
		back, err := codec.FromView(m, view)
		if err != nil {
			t.Fatal(err)
		}
		got := empty(m)
		if err := wire.Decode(back, got); err != nil || !reflect.DeepEqual(got, m) {
			t.Errorf("%s: %v: %s", m.Name(), err, view)
		}
	}
}

func TestDigest(t *testing.T) {
	base := func() *wire.Request {
		return &wire.Request{Job: "j", Text: "MARKOV", Queries: []query.Query{{}}}
	}
	digest := func(m *wire.Request) string {
		d, err := m.Digest()
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	want := digest(base())
	same := base()
	same.Settings = query.Settings{}.WithDefaults()
	same.Queries[0].Evidence.Hard = same.Queries[0].Evidence.Hard[:0:0]
	if digest(same) != want {
		t.Error("defaults written out, or an empty list for none, change the digest")
	}
	b, err := wire.Encode(base())
	if err != nil {
		t.Fatal(err)
	}
	var decoded wire.Request
	if err := wire.Decode(b, &decoded); err != nil || digest(&decoded) != want {
		t.Error("the digest does not survive the wire", err)
	}
	seen := map[string]string{want: "nothing"}
	for name, change := range map[string]func(*wire.Request){
		"job":       func(m *wire.Request) { m.Job = "k" },
		"tenant":    func(m *wire.Request) { m.Tenant = "k" },
		"text":      func(m *wire.Request) { m.Text += " " },
		"native":    func(m *wire.Request) { m.Text, m.Model = "", &wire.Model{Domains: []int{2}} },
		"deadline":  func(m *wire.Request) { m.DeadlineMS = 1 },
		"seed":      func(m *wire.Request) { m.Settings.Seed = 1 },
		"method":    func(m *wire.Request) { m.Settings.Method = query.MethodExact },
		"queries":   func(m *wire.Request) { m.Queries = append(m.Queries, query.Query{}) },
		"evid":      func(m *wire.Request) { m.Queries[0].Evid = "1 0 1" },
		"evid file": func(m *wire.Request) { m.Queries[0].EvidenceFile = "f" },
	} {
		m := base()
		change(m)
		if other, taken := seen[digest(m)]; taken {
			t.Errorf("changing %s gives the digest of changing %s", name, other)
		}
		seen[digest(m)] = name
	}
}

func TestEncodeRefuses(t *testing.T) {
	many := map[string]float64{}
	for i := range codec.MaxKeys + 1 {
		many[fmt.Sprint(i)] = 1
	}
	for want, m := range map[string]wire.Message{
		`network.job`: &Network{Job: "a.b.c"},
		`timings: wire: invalid message: 65 stages, at most 64`: &Network{
			Job:     "a",
			Digest:  digestA,
			Blob:    digestB,
			Queries: []query.Query{{}},
			Timings: many,
		},
		`answer.status`: &wire.Answer{Job: "a", Digest: digestA, Status: "fine"},
	} {
		if _, err := wire.Encode(m); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if _, err := EncodeNetwork(&btn.Network{Cores: []btn.Core{{}}}); err == nil ||
		!strings.Contains(
			err.Error(), "cores[0]: wire: invalid message: a tensor of type <nil>",
		) {
		t.Error(err)
	}
	if _, err := EncodeAssignments([]btn.Assignment{{}}); err == nil ||
		!strings.Contains(err.Error(), "assignments[0].plan") {
		t.Error(err)
	}
}

// A file in another encoding can be sent; what it says is for its reader to refuse, and its digest
// survives the wire.
func TestTextThatIsNotUTF8(t *testing.T) {
	m := &wire.Request{
		Job:     "j",
		Text:    "MARKOV \xe9 2",
		Queries: []query.Query{{EvidenceFile: "\xff.evid"}},
	}
	b, err := wire.Encode(m)
	if err != nil {
		t.Fatal(err)
	}
	var got wire.Request
	if err := wire.Decode(b, &got); err != nil {
		t.Fatal(err)
	}
	if got.Text != "MARKOV \uFFFD 2" || got.Queries[0].EvidenceFile != "\uFFFD.evid" {
		t.Errorf("%q, %q", got.Text, got.Queries[0].EvidenceFile)
	}
	sent, err := m.Digest()
	if err != nil {
		t.Fatal(err)
	}
	if received, err := got.Digest(); err != nil || received != sent {
		t.Errorf("digest %s became %s (%v)", sent, received, err)
	}
	n := &Network{
		Job:     "a",
		Digest:  digestA,
		Blob:    digestB,
		Queries: []query.Query{{}},
		Timings: map[string]float64{"\xff": 1},
	}
	if _, err := wire.Encode(n); fault.CodeOf(err) != fault.Internal ||
		!strings.Contains(err.Error(), "is not UTF-8") {
		t.Error(err)
	}
	if _, err := wire.Encode(&wire.Request{Job: "a.b.c"}); fault.CodeOf(err) != fault.BadInput {
		t.Error(err)
	}
}
