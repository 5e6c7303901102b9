package message

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/vmihailenco/msgpack/v5"

	"github.com/basetensor/basetensor/internal/base/codec"
	"github.com/basetensor/basetensor/internal/form"
	"github.com/basetensor/basetensor/internal/methods/bounding"
	"github.com/basetensor/basetensor/internal/methods/closed"
	"github.com/basetensor/basetensor/internal/methods/exact"
	"github.com/basetensor/basetensor/internal/methods/regions"
	"github.com/basetensor/basetensor/internal/methods/sampled"
	truncatedparts "github.com/basetensor/basetensor/internal/methods/truncated"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/countspace"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
	"github.com/basetensor/basetensor/pkg/wire"
)

// pack is the library's encoding, keys sorted.
func pack(x any) []byte {
	var b bytes.Buffer
	if err := msgpack.NewEncoder(&b).SetSortMapKeys(true).Encode(x); err != nil {
		panic(err)
	}
	return b.Bytes()
}

// hostile are byte strings that have killed or misled decoders, each with what Scan says of it.
var hostile = []struct {
	name  string
	bytes []byte
	says  string
}{
	{"nothing", nil, "the message ends inside a value"},
	{
		"an array of 4e9 in 5 bytes", []byte{0xdd, 0xee, 0x6b, 0x28, 0x00},
		"a array of 4000000000 where 0 bytes remain",
	},
	{
		"a map of 4e9 in 5 bytes", []byte{0xdf, 0xee, 0x6b, 0x28, 0x00},
		"a map of 4000000000 where 0 bytes remain",
	},
	{
		"a bin of 4e9 in 5 bytes", []byte{0xc6, 0xee, 0x6b, 0x28, 0x00},
		"a bin of 4000000000 where 0 bytes remain",
	},
	{
		"a map whose pairs cannot fit", []byte{0x82, 0xa0, 0xc0, 0xa1},
		"a map of 2 where 3 bytes remain",
	},
	{
		"72 KB of nested arrays", bytes.Repeat([]byte{0x91}, 72<<10),
		"more than 16 levels of arrays and maps",
	},
	{
		"nested maps", bytes.Repeat([]byte{0x81, 0xa1, 'a'}, 20),
		"more than 16 levels of arrays and maps",
	},
	{"a key twice", []byte{0x82, 0xa1, 'k', 0x01, 0xa1, 'k', 0x02}, `key "k" twice in one map`},
	{
		"a key twice in two widths", []byte{0x82, 0xa1, 'k', 0x01, 0xd9, 1, 'k', 0x02},
		`key "k" twice in one map`,
	},
	{"a key that is a number", []byte{0x81, 0x01, 0x01}, "a map's key is a integer, not a string"},
	{"trailing bytes", []byte{0x80, 0x00}, "1 bytes after the value"},
	{"a string that is not UTF-8", []byte{0xa1, 0xff}, "a string that is not UTF-8"},
	{"a key that is not UTF-8", []byte{0x81, 0xa1, 0xff, 0x01}, "a key that is not UTF-8"},
	{"an extension", []byte{0xd4, 0x01, 0x00}, "extension types have no place here"},
	{"the code nobody uses", []byte{0xc1}, "extension types have no place here"},
	{"a cut integer", []byte{0xcf, 1, 2, 3}, "the message ends inside a value"},
	{
		"too many keys", append([]byte{0xde, 0, 65}, bytes.Repeat([]byte{0xa0, 0xc0}, 65)...),
		"a map of 65 keys, at most 64",
	},
}

func TestScanRefusesHostileBytes(t *testing.T) {
	for _, c := range hostile {
		err := codec.Scan(c.bytes, wire.MaxMessage)
		if !errors.Is(err, wire.ErrMalformed) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q", c.name, err, c.says)
		}
		for _, m := range sampleMessages() {
			if err := wire.Decode(c.bytes, empty(m)); fault.CodeOf(err) != fault.BadInput {
				t.Errorf("%s as a %s: %v has code %q", c.name, m.Name(), err, fault.CodeOf(err))
			}
		}
		for _, decode := range blobDecoders {
			if err := decode(c.bytes); fault.CodeOf(err) != fault.BadInput {
				t.Errorf("%s as a blob: %v", c.name, err)
			}
		}
	}
	if err := codec.Scan(make([]byte, 11), 10); !errors.Is(err, wire.ErrTooLarge) {
		t.Errorf("11 bytes, 10 allowed: %v", err)
	}
	sixteen := append(bytes.Repeat([]byte{0x91}, 16), 0xc0)
	if err := codec.Scan(sixteen, 100); err != nil {
		t.Errorf("16 levels are allowed: %v", err)
	}
}

var blobDecoders = map[string]func([]byte) error{
	nameNetwork:     func(b []byte) error { _, err := DecodeNetwork(b); return err },
	nameAssignments: func(b []byte) error { _, err := DecodeAssignments(b); return err },
	namePlan:        func(b []byte) error { _, err := DecodePlan(b); return err },
}

func TestScanAllocatesNothing(t *testing.T) {
	r := random{rand.New(rand.NewPCG(1, 1))}
	b, err := EncodePlan(r.plan(&btn.Network{Dims: []int{2, 3, 2, 2}}))
	if err != nil {
		t.Fatal(err)
	}
	if n := testing.AllocsPerRun(100, func() {
		if codec.Scan(b, MaxBlob) != nil {
			t.Fatal("refused")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// A small message must not become a large one: a hundred thousand empty queries of one byte each.
func TestDecodeBoundsMemory(t *testing.T) {
	b := append([]byte{0x83, 0xa1, 't', 0xa5}, "model"...)
	b = append(b, 0xa1, 'v', 1, 0xa7)
	b = append(b, "queries"...)
	b = append(b, 0xdd, 0, 1, 0x86, 0xa0)
	b = append(b, bytes.Repeat([]byte{0x80}, 100_000)...)
	if err := codec.Scan(b, wire.MaxMessage); err != nil {
		t.Fatal(err)
	}
	err := wire.Decode(b, new(wire.Request))
	if !errors.Is(err, wire.ErrTooLarge) || !strings.Contains(err.Error(), "model.queries") {
		t.Errorf("%v", err)
	}
}

// wellFormed are messages that pass the scan, each with one thing wrong.
func TestDecodeNamesTheField(t *testing.T) {
	type object = map[string]any
	task := func(change object) object {
		m := object{
			"t":            "task",
			"v":            1,
			"job":          "j",
			"digest":       digestA,
			"network_blob": digestA,
			"job_blob":     digestA,
			"k":            0,
			"n":            1,
			"units":        []any{object{"q": 0, "c": 0}},
			"demands":      []any{object{}},
			"stored":       5,
		}
		for k, v := range change {
			if m[k] = v; v == nil {
				delete(m, k)
			}
		}
		return m
	}
	if err := wire.Decode(pack(task(nil)), new(Task)); err != nil {
		t.Fatal(err)
	}
	soft := func(w []float64) object {
		var b []byte
		for _, x := range w {
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(x))
		}
		return object{"evidence": object{"s": []any{object{"v": 0, "w": b}}}}
	}
	for _, c := range []struct {
		change object
		is     error
		says   string
	}{
		{
			object{"v": 2}, wire.ErrVersion,
			"task: wire: unknown version: 2, this program reads version 1",
		},
		{
			object{"v": nil}, wire.ErrMalformed,
			"task.v: wire: malformed message: required field is missing",
		},
		{object{"v": "1"}, wire.ErrMalformed, "integer expected, not string"},
		{object{"t": "partial"}, wire.ErrMalformed, `a "partial" where a "task" belongs`},
		{
			object{"stored": nil}, wire.ErrMalformed,
			"task.stored: wire: malformed message: required field is missing",
		},
		{object{"job": nil}, wire.ErrMalformed, "task.job"},
		{object{"job": 7}, wire.ErrMalformed, "task.job: wire: malformed message: at byte"},
		{
			object{"job": "a.b.c"}, wire.ErrInvalid,
			`task.job: wire: invalid message: "a.b.c" is not [A-Za-z0-9_-]{1,64}`,
		},
		{object{"job": "a*"}, wire.ErrInvalid, "task.job"},
		{object{"job": ""}, wire.ErrInvalid, "task.job"},
		{object{"job": strings.Repeat("x", 65)}, wire.ErrInvalid, "task.job"},
		{
			object{"digest": "abc"}, wire.ErrInvalid,
			`task.digest: wire: invalid message: "abc" is not 64 hexadecimal digits`,
		},
		{object{"digest": strings.ToUpper(digestA)}, wire.ErrInvalid, "task.digest"},
		{object{"tenant": "a\nb"}, wire.ErrInvalid, "task.tenant"},
		{object{"k": 1}, wire.ErrInvalid, "task.k: wire: invalid message: chunk 1 of 1"},
		{object{"k": -1}, wire.ErrInvalid, "task.k"},
		{object{"n": 1 << 40}, wire.ErrInvalid, "task.n"},
		{object{"n": 1.0}, wire.ErrMalformed, "task.n"},
		{
			object{"k": uint64(math.MaxUint64)}, wire.ErrMalformed,
			"task.k: wire: malformed message: at byte",
		},
		{
			object{"units": []any{object{"q": 0, "c": uint64(1 << 63)}}}, wire.ErrMalformed,
			"task.units[0].c",
		},
		{
			object{"units": []any{object{"q": 1, "c": 0}}}, wire.ErrInvalid,
			"task.units[0].q: wire: invalid message: demand 1, the task has 1 from 0",
		},
		{
			object{"units": []any{object{"q": 0}}}, wire.ErrMalformed,
			"task.units[0].c: wire: malformed message: required field is missing",
		},
		{object{"units": []any{object{"q": 0, "c": -1}}}, wire.ErrInvalid, "task.units[0].c"},
		{object{"units": object{}}, wire.ErrMalformed, "array expected, not map"},
		{
			object{"demands": []any{object{"evidence": object{"h": []any{object{"v": 1, "x": 0}, object{"v": 1, "x": 0}}}}}},
			wire.ErrInvalid, "task.demands[0].evidence.h[1]",
		},
		{
			object{"demands": []any{soft([]float64{1, math.NaN()})}}, wire.ErrInvalid,
			"variable 0 = 1 has the weight NaN",
		},
		{object{"demands": []any{soft(nil)}}, wire.ErrMalformed, "task.demands[0].evidence.s[0].w"},
		{
			object{"demands": []any{object{"evidence": object{"s": []any{object{"v": 0, "w": []byte{1, 2, 3}}}}}}},
			wire.ErrMalformed, "a bin of 3 bytes cannot be a list of float64",
		},
		{object{"cost": math.Inf(1)}, wire.ErrInvalid, "task.cost"},
		{object{"cost": uint64(1)<<53 + 1}, wire.ErrMalformed, "task.cost"},
		{object{"memory": -1}, wire.ErrInvalid, "task.memory"},
		{object{"stored": -1}, wire.ErrInvalid, "task.time"},
		{object{"timings": object{"x": -1.0}}, wire.ErrInvalid, `"x" took -1 ms`},
		{object{"timings": object{"x": "1"}}, wire.ErrMalformed, "task.timings.x"},
	} {
		err := wire.Decode(pack(task(c.change)), new(Task))
		// an absent bin is packed as null: no weights
		if c.says == "task.demands[0].evidence.s[0].w" {
			c.is, c.says = wire.ErrInvalid, "variable 0 has no numbers"
		}
		if !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%v: %v, want %q", c.change, err, c.says)
		}
		want := fault.BadInput
		if c.is == wire.ErrVersion {
			want = fault.Unsupported
		}
		if fault.CodeOf(err) != want {
			t.Errorf("%v: code %q, want %q", c.change, fault.CodeOf(err), want)
		}
	}
}

// factor, graph and received are a request as anybody may write it; Validate is what its reader says.
type (
	factor struct {
		Scope []int       `msgpack:"scope"`
		Table form.Tensor `msgpack:"table"`
	}
	graph struct {
		Domains []int    `msgpack:"domains"`
		Factors []factor `msgpack:"factors"`
	}
	received struct {
		Job     string        `msgpack:"job"`
		Model   graph         `msgpack:"model"`
		Queries []query.Query `msgpack:"queries"`
	}
)

func (*received) Name() string { return "model" }

func (m *received) Validate() error {
	b, err := codec.Marshal(m.Name(), m, false)
	if err != nil {
		return err
	}
	return wire.Decode(b, &wire.Request{})
}

func TestValidateNamesTheField(t *testing.T) {
	queries := []query.Query{{}}
	native := func(f ...factor) *received {
		return &received{Job: "j", Queries: queries, Model: graph{[]int{2, 3}, f}}
	}
	dense := func(shape []int, n int) form.Tensor {
		return form.Tensor{Kind: form.KindDense, Shape: shape, Data: make([]float64, n)}
	}
	levels := &form.Levels{D: 2, Tables: [][]byte{{0, 1}}, Legs: []int{0}}
	ok := query.Result{Job: "j", Status: "ok"}
	answer := func(change func(*query.Result)) *wire.Answer {
		r := ok
		change(&r)
		return &wire.Answer{
			Job:     "j",
			Digest:  digestA,
			Status:  wire.StatusOK,
			Results: []query.Result{r},
		}
	}
	partial := func(v btn.UnitValue) *Partial {
		return &Partial{
			Job:         "j",
			Digest:      digestA,
			JobBlob:     digestA,
			N:           1,
			NumericKind: "x",
			Values:      []btn.UnitValue{v},
		}
	}
	for _, c := range []struct {
		m    wire.Message
		says string
	}{
		{&wire.Request{Job: "j", Queries: queries}, "none of model, text and model_digest"},
		{
			&wire.Request{Job: "j", Queries: queries, Text: "x", Model: &wire.Model{}},
			"both model and text",
		},
		{&wire.Request{Job: "j", Text: "x"}, "queries: wire: invalid message: there is none"},
		{&wire.Request{Job: "j", Text: "x", Queries: queries, DeadlineMS: -1}, "deadline_ms"},
		{&wire.Request{Job: "j", Text: "x", Queries: queries, Settings: query.Settings{Components: -1}}, "settings.components"},
		{
			&wire.Request{Job: "j", Text: "x", Queries: queries, Settings: query.Settings{Method: "magic"}},
			`settings.method: wire: invalid message: "magic" is none of`,
		},
		{&wire.Request{Job: "j", Text: "x", Queries: queries, Settings: query.Settings{Maps: query.MapGiven}}, "settings.maps"},
		{&wire.Request{Job: "j", Text: "x", Queries: queries, Settings: query.Settings{Cores: "all"}}, "settings.cores"},
		{
			&wire.Request{Job: "j", Text: "x", Queries: []query.Query{{Joint: []int{0}, Named: &query.ByName{Joint: []string{"a"}}}}},
			"queries[0].named.joint: wire: invalid message: both named.joint and joint",
		},
		{
			&wire.Request{Job: "j", Model: &wire.Model{Domains: []int{2}, States: [][]string{nil, nil}}, Queries: queries},
			"model.states: wire: invalid message: names of the values of 2 variables",
		},
		{
			&wire.Request{
				Job:     "j",
				Text:    "x",
				Queries: []query.Query{{Evid: "0", Evidence: factorgraph.Evidence{Hard: make([]factorgraph.Observation, 1)}}},
			},
			"both evid and evidence",
		},
		{
			&wire.Request{
				Job:     "j",
				Model:   &wire.Model{Domains: []int{2}},
				Queries: []query.Query{{Evidence: factorgraph.Evidence{Hard: []factorgraph.Observation{{Var: 0, Value: 2}}}}},
			},
			"variable 0 = 2 is out of range",
		},
		{
			&wire.Request{
				Job:     "j",
				Model:   &wire.Model{Domains: []int{2}},
				Queries: []query.Query{{Evidence: factorgraph.Evidence{Soft: []factorgraph.Likelihood{{Weights: []float64{1}}}}}},
			},
			"1 numbers for variable 0",
		},
		{
			&wire.Request{Job: "j", Model: &wire.Model{Domains: []int{0}}, Queries: queries},
			"model.domains[0]: wire: invalid message: 0 values",
		},
		{
			&wire.Request{Job: "j", Model: &wire.Model{Domains: []int{2}, Names: []string{"a", "b"}}, Queries: queries},
			"2 names for 1 variables",
		},
		{
			native(factor{Scope: []int{0}, Table: dense([]int{2}, 3)}),
			"model.factors[0].table.data: wire: invalid message: 3 entries do not fill shape [2]",
		},
		{
			native(factor{Scope: []int{2}, Table: dense([]int{2}, 2)}),
			"factors[0].scope: wire: invalid message: variable 2 of 2",
		},
		{native(factor{Scope: []int{0, 0}, Table: dense([]int{2, 2}, 4)}), "variable 0 twice"},
		{
			native(factor{Scope: []int{1}, Table: dense([]int{2}, 2)}),
			"mode 0 has 2 values, variable 1 has 3",
		},
		{
			native(factor{Scope: []int{0}, Table: dense([]int{2, 3}, 6)}),
			"1 variables, the table has 2",
		},
		{
			native(factor{Scope: []int{0}, Table: form.Tensor{Kind: form.KindDense, Shape: []int{2}, Data: []float64{1, math.Inf(1)}}}),
			"entry 1 of a list is +Inf",
		},
		{
			native(factor{Table: dense([]int{1 << 30, 1 << 30, 1 << 30}, 1)}),
			"1 entries do not fill shape",
		},
		{native(factor{Table: dense([]int{-1}, 1)}), "mode 0 has -1 values"},
		{
			native(factor{Table: form.Tensor{Kind: "sparse"}}),
			`"sparse" is none of dense, cp, symmetric, symmetry-cp`,
		},
		{
			native(factor{Table: form.Tensor{Kind: form.KindCP, Shape: []int{2}, Weights: []float64{1}}}),
			"vectors: wire: invalid message: 0 for 1 modes",
		},
		{
			native(factor{Table: form.Tensor{Kind: form.KindCP, Shape: []int{2}, Weights: []float64{1}, Vectors: [][]float64{nil}}}),
			"the identity of 2 values with rank 1",
		},
		{
			native(factor{Table: form.Tensor{Kind: form.KindCP, Shape: []int{2}, Weights: []float64{1}, Vectors: [][]float64{{1}}}}),
			"1 entries for rank 1 and 2 values",
		},
		{
			native(factor{Table: form.Tensor{Kind: form.KindSymmetric, Shape: []int{2}}}),
			"table.levels: wire: malformed message: required field is missing",
		},
		{
			native(factor{Table: form.Tensor{Kind: form.KindSymmetric, Shape: []int{2}, Levels: levels}}),
			"table.values: wire: malformed message: required field is missing",
		},
		{
			native(
				factor{Table: form.Tensor{Kind: form.KindSymmetric, Shape: []int{2}, Levels: levels, Values: &form.Scaled{Mant: []float64{1}}}},
			),
			"1 entries, the count vectors are 2",
		},
		{
			native(
				factor{
					Table: form.Tensor{
						Kind:   form.KindSymmetric,
						Shape:  []int{2},
						Levels: levels,
						Values: &form.Scaled{Mant: []float64{1, 2}, Exp: []int64{}},
					},
				},
			),
			"0 exponents for 2 entries",
		},
		{
			native(factor{Table: form.Tensor{Kind: form.KindSymmetric, Shape: []int{3}, Levels: levels, Values: &form.Scaled{}}}),
			"a table of 2 for 3 values",
		},
		{
			native(factor{Table: form.Tensor{Kind: form.KindSymmetric, Shape: []int{2}, Levels: &form.Levels{D: 1, Tables: [][]byte{{0, 1}}}}}),
			"value 1 at level 1 of 1",
		},
		{
			native(factor{Table: form.Tensor{Kind: form.KindSymmetric, Shape: []int{2}, Levels: &form.Levels{D: 257}}}),
			"257 levels, at most 256",
		},
		{
			native(factor{Table: form.Tensor{Kind: form.KindSymmetric, Shape: []int{2}, Levels: &form.Levels{D: 1, Legs: []int{0}}}}),
			"levels.legs[0]: wire: invalid message: table 0 of 0",
		},
		{
			native(
				factor{
					Table: form.Tensor{
						Kind:   form.KindSymmetryCP,
						Shape:  []int{2},
						Levels: levels,
						Terms:  []form.Term{{S: form.Scaled{Mant: []float64{1, 2}}, R: [][]float64{{1}}}},
					},
				},
			),
			"terms[0].r[0]: wire: invalid message: 1 entries for 2 values",
		},
		{
			partial(btn.UnitValue{Value: btn.Value{Z: scaled.Number{Mant: 0.5}}}),
			"values[0].v.z: wire: invalid message: 0.5·2^0 is not normalised",
		},
		{
			partial(btn.UnitValue{Value: btn.Value{Z: scaled.Number{Mant: math.NaN()}}}),
			"values[0].v.z",
		},
		{partial(btn.UnitValue{Value: btn.Value{Flops: math.NaN()}}), "values[0].v.f"},
		{
			partial(btn.UnitValue{Error: &query.ErrorInfo{Code: "oops"}}),
			`values[0].x.code: wire: invalid message: "oops" is no code`,
		},
		{
			&Partial{Job: "j", Digest: digestA, JobBlob: digestA, N: 1},
			`kind: wire: invalid message: "" is no numeric kind`,
		},
		{answer(func(r *query.Result) { r.Job = "k" }), `results[0].job: wire: invalid message: "k" in an answer to "j"`},
		{answer(func(r *query.Result) { r.Status = "cancelled" }), "results[0].status"},
		{answer(func(r *query.Result) { r.Status = "error" }), "results[0].error"},
		{answer(func(r *query.Result) { r.LogZ = pointer(math.Inf(-1)) }), "results[0].log_z: wire: invalid message: -Inf is not finite"},
		{answer(func(r *query.Result) { r.Plan = &query.Cost{Flops: math.Inf(1)} }), "results[0].plan.flops"},
		{answer(func(r *query.Result) { r.TimingsMS = map[string]float64{"x": math.NaN()} }), "results[0].timings_ms.x"},
		{
			&wire.Answer{Job: "j", Digest: digestA, Status: wire.StatusOK},
			"results: wire: invalid message: an answer that is ok has at least one",
		},
		{
			&wire.Answer{Job: "j", Digest: digestA, Status: wire.StatusCancelled},
			`error: wire: invalid message: status "cancelled" needs it`,
		},
		{
			&wire.Progress{Job: "j", Stage: "learn", Done: 2, Total: 1},
			"done: wire: invalid message: 2 of 1",
		},
		{&wire.Progress{Job: "j", Stage: "a b"}, `stage: wire: invalid message: "a b" is no stage`},
		{&wire.Cancel{Job: "j", Digest: "x"}, "digest"},
		{
			&DeadLetter{Job: "j", Stage: "learn", Error: query.ErrorInfo{Code: fault.Internal}},
			"subject: wire: invalid message: is empty",
		},
		{&Redrive{Job: "j", Time: -1}, "time"},
		{&End{Job: "j", Answer: []byte{0x80}, Time: -1}, "time"},
		{&End{Job: "j"}, "answer"},
		{&Room{Left: -1}, "left"},
		{&Serves{Process: "p", Numeric: "a b", Cores: 1}, "kind"},
		{&Serves{Process: "", Numeric: "a", Cores: 1}, "process"},
		{&Serves{Process: "p", Numeric: "a", Cores: 0}, "cores"},
		{&Here{Process: "", Stage: "s", Host: "h", Version: "1"}, "process"},
		{&Here{Process: "p", Stage: "a b", Host: "h", Version: "1"}, "stage"},
		{&Here{Process: "p", Stage: "s", Host: "h"}, "version"},
		{&Here{Process: "p", Stage: "s", Version: "1"}, "host"},
		{&Here{Process: "p", Stage: "s", Host: "h", PID: -1, Version: "1"}, "pid"},
		{&Here{Process: "p", Stage: "s", Host: "h", Version: "1", MessageKeys: []string{"a b"}}, "message_keys"},
		{&Here{Process: "p", Stage: "s", Host: "h", Version: "1", AnswersKeys: make([]string, maxKeys+1)}, "answers_keys"},
		{&Here{Process: "p", Stage: "s", Host: "h", Version: "1", AnswersSigner: "*"}, "answers_signer"},
		{&Here{Process: "p", Stage: "s", Host: "h", Version: "1", Messages: -1}, "messages"},
		{&End{Job: "j$"}, "job"},
		{&wire.Graph{}, "model: wire: invalid message: neither model nor text is given"},
		{&wire.Graph{Model: &wire.Model{Domains: []int{0}}}, "model.domains[0]"},
		{
			&wire.Request{Job: "j", Text: "x", ModelDigest: digestA, Queries: []query.Query{{}}},
			"model_digest: wire: invalid message: the model is given as well",
		},
		{&wire.Request{Job: "j", ModelDigest: "A", Queries: []query.Query{{}}}, "model_digest"},
		{
			&wire.Unanswered{Status: wire.StatusOK},
			`status: wire: invalid message: "ok" is neither pending nor refused`,
		},
		{&wire.Unanswered{Status: wire.StatusPending, Job: "j"}, "digest"},
		{
			&wire.Unanswered{Status: wire.StatusRefused, Error: query.ErrorInfo{Code: "x"}},
			"error.code",
		},
	} {
		err := c.m.Validate()
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q", c.m.Name(), err, c.says)
		}
	}
}

func TestDecodeNetworkRefuses(t *testing.T) {
	one := btn.Core{Legs: []int{0}, T: &tensor.Dense{Shape: []int{2}, Data: []float64{1, 2}}}
	for says, n := range map[string]*btn.Network{
		"dims[0]: wire: invalid message: 0 values":         {Dims: []int{0}},
		"leg_maps[0]: wire: invalid message: a map of":     {Dims: []int{2}, Maps: []btn.Map{{A: []float64{1}}}},
		"leg_maps: wire: invalid message: 0 for 1":         {Dims: []int{2}, Maps: []btn.Map{}},
		"cores[0].legs: wire: invalid message: leg 0 of 0": {Cores: []btn.Core{one}},
		"cores[0].legs: wire: invalid message: leg 0 has 3 values, mode": {
			Dims: []int{3}, Cores: []btn.Core{one},
		},
		"links[0].legs: wire: invalid message: 0 for 1 modes": {Dims: []int{3}, Links: []btn.Link{{T: one.T}}},
		"homes[0]: wire: invalid message: link 0 of 0":        {Variables: []btn.Variable{{Domain: 1}}},
		"homes[0]: wire: invalid message: link 0 has no weight per value": {
			Dims:      []int{2},
			Links:     []btn.Link{btn.Link(one)},
			Variables: []btn.Variable{{Domain: 2}},
		},
		"scale: wire: invalid message: NaN·2^0 is not normalised": {
			Scale: scaled.Number{Mant: math.NaN()},
		},
	} {
		b, err := EncodeNetwork(n)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := DecodeNetwork(b); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want %q", err, says)
		}
	}
}

// Nothing that a contraction indexes is out of range.
func TestCheckAssignments(t *testing.T) {
	n := &btn.Network{Dims: []int{2, 3}, Variables: []btn.Variable{{Domain: 2}}}
	check := func(p *btn.Plan, says string) {
		t.Helper()
		err := CheckAssignments(n, []btn.Assignment{{Plan: p}})
		if !errors.Is(err, wire.ErrInvalid) || fault.CodeOf(err) != fault.BadInput ||
			!strings.Contains(err.Error(), "assignments[0].plan."+says) {
			t.Errorf("%v, want %q", err, says)
		}
	}
	good := func() btn.Estimate {
		return btn.Estimate{
			Rule:    btn.Linear,
			Slices:  1,
			Parts:   []btn.Part{&closed.RankOne{Frame: &btn.Frame{}}},
			Quality: &btn.Quality{},
		}
	}
	if err := CheckAssignments(
		n, []btn.Assignment{{Plan: &btn.Plan{Estimates: []btn.Estimate{good()}}}},
	); err != nil {
		t.Fatal(err)
	}
	for says, p := range map[string]*btn.Plan{
		"estimates: wire: invalid message: there is none": {},
		"estimates[0]: wire: invalid message: one whose quality is known": {
			Estimates: []btn.Estimate{good(), good()},
		},
		"accuracy: wire: invalid message: NaN nats":  {Estimates: []btn.Estimate{good()}, Accuracy: math.NaN()},
		"accuracy: wire: invalid message: +Inf nats": {Estimates: []btn.Estimate{good()}, Accuracy: math.Inf(1)},
	} {
		check(p, says)
	}
	for says, change := range map[string]func(*btn.Estimate){
		"alpha_m: wire: invalid message: 2 for 1 parts":         func(e *btn.Estimate) { e.Alpha = make([]scaled.Number, 2) },
		`rule: wire: invalid message: "cubic" is no rule`:       func(e *btn.Estimate) { e.Rule = "cubic" },
		"parts: wire: invalid message: there is none":           func(e *btn.Estimate) { e.Parts = nil },
		"parts[0]: wire: invalid message: there is none":        func(e *btn.Estimate) { e.Parts[0] = nil },
		"parts[0]: wire: invalid message: class rank-one under": func(e *btn.Estimate) { e.Rule = btn.LogLinear },
		"slices: wire: invalid message: 2 for 1 parts":          func(e *btn.Estimate) { e.Slices = 2 },
		"slices: wire: invalid message: 0 for 1 parts":          func(e *btn.Estimate) { e.Slices = 0 },
		"cost: wire: invalid message: NaN flops":                func(e *btn.Estimate) { e.Cost.Flops = math.NaN() },
		"cost: wire: invalid message: 0 flops, -1 bytes":        func(e *btn.Estimate) { e.Cost.Bytes = -1 },
		"level: wire: invalid message: NaN":                     func(e *btn.Estimate) { e.Level = math.NaN() },
		"parts[0]: wire: invalid message: class regions under":  func(e *btn.Estimate) { e.Parts[0] = &regions.Regions{} },
	} {
		e := good()
		change(&e)
		check(&btn.Plan{Estimates: []btn.Estimate{e}}, "estimates[0]."+says)
	}
	levels := &btn.Frame{Levels: countspace.TwoLevels(n.Dims)}
	symmetric := func(shape []int, s ...float64) btn.Part {
		return &closed.SymmetryRankOne{
			Frame: levels,
			S:     countspace.Poly{Shape: shape, Coef: scaled.Vector{Mant: s}},
		}
	}
	cp := func(shape []int, vectors ...[]float64) btn.Part {
		return &closed.CP{
			Frame:  &btn.Frame{},
			Tensor: &tensor.CP{Shape: shape, Weights: []float64{1, 2}, Vectors: vectors},
		}
	}
	truncated := func(family query.Family, bond int, slice btn.Slice) btn.Part {
		return &truncatedparts.Truncated{
			Plan:  &truncatedparts.TruncatedPlan{Family: family},
			Bond:  bond,
			Slice: slice,
		}
	}
	tree := &exact.Tree{Count: 3}
	for says, part := range map[string]btn.Part{
		"it has no frame":                        &closed.RankOne{},
		"1 learned maps for 2 legs":              &closed.RankOne{Frame: &btn.Frame{Rotations: make([][]float64, 1)}},
		"learned map of leg 1 has 4 entries":     &closed.RankOne{Frame: &btn.Frame{Rotations: [][]float64{nil, make([]float64, 4)}}},
		"vectors for 1 legs, the network has 2":  &closed.RankOne{Frame: &btn.Frame{}, R: make([][]float64, 1)},
		"vector of leg 1 has 2 entries":          &closed.RankOne{Frame: &btn.Frame{}, R: [][]float64{nil, {1, 2}}},
		"a CP tensor over all 2 legs is needed":  cp([]int{2}),
		"the CP tensor has dimension 2 on leg 1": cp([]int{2, 2}, nil, nil),
		"identity vectors on leg 1 need rank 3":  cp([]int{2, 3}, nil, nil),
		"vectors of leg 1 have 5 entries": cp(
			[]int{2, 3}, nil, make([]float64, 5),
		),
		"0 levels": &closed.SymmetryRankOne{Frame: &btn.Frame{}},
		"S has 2 count variables, the levels have 1":   symmetric([]int{3, 3}),
		"S has 2 counts at level 1, the levels have 3": symmetric([]int{2}, 1, 2),
		"S has 2 coefficients, its shape [3] needs 3":  symmetric([]int{3}, 1, 2),
		"S has an entry that is not finite": symmetric(
			[]int{3}, 1, 2, math.Inf(1),
		),
		"vectors for 3 legs, the network has 2": &closed.SymmetryRankOne{Frame: levels, R: make([][]float64, 3)},
		"NaN flops":                             &exact.Elimination{Flops: math.NaN()},
		"it has no tree":                        &exact.Slices{},
		"slices -1 to 1 of 3":                   &exact.Slices{Tree: tree, From: -1, To: 1},
		"slices 2 to 1 of 3":                    &exact.Slices{Tree: tree, From: 2, To: 1},
		"slices 2 to 4 of 3":                    &exact.Slices{Tree: tree, From: 2, To: 4},
		"0 slices":                              &exact.Slices{Tree: &exact.Tree{}},
		"it has no groups":                      &exact.Groups{},
		"groups 0 to 2 of 1":                    &exact.Groups{Of: &exact.MarginalGroups{Groups: make([]exact.MarginalGroup, 1)}, To: 2},
		"it has no tree and no sweep":           &truncatedparts.Truncated{Bond: 1},
		`"regions" is no family`: truncated(
			query.FamilyRegions, 1, btn.Slice{},
		),
		"bond 0": truncated(
			query.FamilySweep, 0, btn.Slice{},
		),
		"it fixes variable 1 of 1": truncated(
			query.FamilyTree, 1, btn.Slice{Variables: []int{1}},
		),
		"slice 2 of 2": truncated(
			query.FamilyTree, 1, btn.Slice{Variables: []int{0}, At: 2},
		),
		"slice -1 of 1": truncated(
			query.FamilyTree, 1, btn.Slice{At: -1},
		),
		"0 of 2 indices are summed out": &sampled.Sampled{Sampling: &sampled.Slices{Independent: drawn(sampled.BySlices, 1, 0)}, To: 1},
		"3 of 2 indices are summed out": &sampled.Sampled{
			Sampling: &sampled.Slices{Independent: drawn(sampled.BySlices, 1, 0), Rest: 3}, To: 1,
		},
		"is no kind of this version": &sampled.Sampled{Sampling: &sampled.MiniBuckets{Independent: drawn("dice")}, To: 1},
		"it does not say how":        &sampled.Sampled{To: 1},
		"a sweep of bond 0":          &sampled.Sampled{Sampling: &sampled.Sweep{Independent: drawn(sampled.BySweep)}, To: 1},
		"beliefs that follow by 2": &sampled.Sampled{
			Sampling: &sampled.Beliefs{Independent: drawn(sampled.ByBeliefs), Follow: 2, Defence: 0.1}, To: 1,
		},
		"beliefs that follow by 0 with a defence of 0": &sampled.Sampled{
			Sampling: &sampled.Beliefs{Independent: drawn(sampled.ByBeliefs)}, To: 1,
		},
		"products of 0 entries":       &bounding.Bound{Kind: bounding.MiniBuckets},
		"is no bound of this version": &bounding.Bound{Kind: "guess"},

		"regions of size -1":  &regions.Regions{Size: -1},
		"regions from 1 to 0": &regions.Regions{From: 1},
		fmt.Sprintf("regions from 0 to %d", regions.WholeShare+1): &regions.Regions{To: regions.WholeShare + 1},
	} {
		if err := part.Fits(n); !errors.Is(err, btn.ErrPart) ||
			!strings.Contains(err.Error(), says) {
			t.Errorf("%v, want %q", err, says)
		}
		e := good()
		e.Parts[0] = part
		check(
			&btn.Plan{Estimates: []btn.Estimate{e}},
			"estimates[0].parts[0]: wire: invalid message: btn: the part does not fit the network: ",
		)
	}
	if err := CheckAssignments(n, []btn.Assignment{{}}); err == nil ||
		!strings.Contains(err.Error(), "assignments[0]") {
		t.Error(err)
	}
}

// TestAssignmentsNameWhatTheyAnswer: the queries come first, a ratio names another one or none, and as many demands follow as serve them.
func TestAssignmentsNameWhatTheyAnswer(t *testing.T) {
	failed := btn.Assignment{Error: &query.ErrorInfo{Code: fault.OverBudget}}
	answers := func(q query.Query, extra int) btn.Assignment {
		a := failed
		a.Asked = &btn.Asked{Query: q, Extra: []btn.Extra{{Kind: "information", Demands: extra}}}
		return a
	}
	over := func(k int) []btn.Assignment {
		return []btn.Assignment{answers(query.Query{}, 0), answers(query.Query{Over: k, Joint: []int{3, 0}}, 0)}
	}
	for name, c := range map[string]struct {
		all  []btn.Assignment
		want string
	}{
		"no ratio":             {over(0), ""},
		"a ratio":              {over(1), ""},
		"over nothing":         {over(3), "over"},
		"over itself":          {over(2), "the query itself"},
		"below 0":              {over(-1), "over"},
		"served":               {[]btn.Assignment{answers(query.Query{}, 2), failed, failed}, ""},
		"one is missing":       {[]btn.Assignment{answers(query.Query{}, 2), failed}, "1 follow the queries"},
		"one too many":         {[]btn.Assignment{answers(query.Query{}, 0), failed}, "1 follow the queries"},
		"fewer than none":      {[]btn.Assignment{answers(query.Query{}, -1), answers(query.Query{}, 1)}, "assignments[0]"},
		"a query after others": {[]btn.Assignment{answers(query.Query{}, 1), failed, answers(query.Query{}, 0)}, "assignments[2].asked"},
		"names":                {[]btn.Assignment{answers(query.Query{Evid: "a=b"}, 0)}, "evid"},
	} {
		b, err := EncodeAssignments(c.all)
		if err != nil {
			t.Fatal(err)
		}
		got, err := DecodeAssignments(b)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
		if err == nil && !reflect.DeepEqual(got, c.all) {
			t.Errorf("%s: decoded %+v, encoded %+v", name, got, c.all)
		}
	}
}

// Joint marginals of variables that are not there, twice there or too many are refused wherever
// their domains are known, and as far as possible where not.
func TestJointMarginalsAreChecked(t *testing.T) {
	n := &btn.Network{Variables: []btn.Variable{{Domain: 2}, {Domain: 1 << 19}, {Domain: 4}}}
	failed := &query.ErrorInfo{Code: fault.OverBudget}
	for _, c := range []struct {
		set        []int
		want       string
		everywhere bool
	}{
		{[]int{0, 1}, "", false},
		{nil, "", false},
		{[]int{3}, "variable 3", false},
		{[]int{-1}, "variable -1", true},
		{[]int{2, 2}, "variable 2", true},
		{[]int{1, 2}, "cells", false},
	} {
		err := CheckAssignments(n, []btn.Assignment{{Error: failed, Want: btn.Want{Joint: c.set}}})
		if (err == nil) != (c.want == "") || err != nil && (!strings.Contains(
			err.Error(), "assignments[0].want",
		) || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%v: %v, want %q", c.set, err, c.want)
		}
		m := &wire.Request{
			Job:     "j",
			Model:   &wire.Model{Domains: []int{2, 1 << 19, 4}, Factors: []factorgraph.Factor{}},
			Queries: []query.Query{{Joint: c.set}},
		}
		if err := m.Validate(); (err == nil) != (c.want == "") || err != nil &&
			!strings.Contains(err.Error(), "queries[0].joint") {
			t.Errorf("native model, %v: %v", c.set, err)
		}
		m = &wire.Request{Job: "j", Text: "MARKOV", Queries: []query.Query{{Joint: c.set}}}
		if err := m.Validate(); (err != nil) != c.everywhere {
			t.Errorf("model as text, %v: %v", c.set, err)
		}
	}
}
