package message

import (
	"math"
	"math/rand/v2"
	"strings"

	"github.com/basetensor/basetensor/internal/methods/closed"
	"github.com/basetensor/basetensor/internal/methods/exact"
	regionparts "github.com/basetensor/basetensor/internal/methods/regions"
	"github.com/basetensor/basetensor/internal/methods/truncated"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/countspace"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
	"github.com/basetensor/basetensor/pkg/wire"
)

var digestA, digestB = wire.Digest([]byte("a")), wire.Digest([]byte("b"))

func pointer[T any](x T) *T { return &x }

// sampleMessages returns at least one valid message of every type, with every field used somewhere.
func sampleMessages() []wire.Message {
	evidence := factorgraph.Evidence{
		Hard: []factorgraph.Observation{{Var: 0, Value: 1}},
		Soft: []factorgraph.Likelihood{{Var: 1, Weights: []float64{0.25, 4, 1e300}}},
	}
	queries := []query.Query{{}, {Evidence: evidence, EvidenceFile: "a.evid"}}
	demands := []btn.Demand{{}, {Evidence: evidence, Want: btn.Want{
		Marginals: true, Targets: []int{2}, Joint: []int{2, 3}, Best: 2, Map: []int{3}, Samples: 4, Seed: 5, Conflict: true, Derivatives: true,
		Target: &factorgraph.Observation{Var: 2, Value: 1},
	}}, {Want: btn.Want{Cases: &query.Cases{Variables: []int{1}, Rows: [][]int{{0}}}}}}
	timings := map[string]float64{"reparam": 1.5, "learn": 0, "queue": 1e6}
	settings := query.Settings{
		Method:     query.MethodExact,
		Components: 3,
		Maps:       query.MapOrthogonal,
		Cores:      query.CoresAreVariables,
		Seed:       math.MaxUint64,
		Memory:     1 << 40,
	}
	body, err := wire.NewModel(sampleModel())
	if err != nil {
		panic(err)
	}
	result := query.Result{
		Job:                "job-1",
		Query:              1,
		Status:             "ok",
		Exact:              true,
		Method:             query.MethodExact,
		LogZ:               pointer(-3.25),
		Log10Z:             pointer(-1.5),
		Components:         1,
		Residual:           pointer(0.0),
		LnExplained:        pointer(0.0),
		ConditionGram:      pointer(1.0),
		Certificate:        &query.Certificate{LnBound: -20, LnLower: pointer(-3.5), LnUpper: -3},
		CancellationDigits: pointer(0.5),
		EvidenceFile:       pointer("a.evid"),
		Warnings:           []string{"an estimate"},
		Cache:              "miss",
		Plan:               &query.Cost{Width: 3, Log2Table: 4, Flops: 1e3, Bytes: 128},
		TimingsMS:          timings,
	}
	failed := query.Result{
		Job:    "job-1",
		Status: "error",
		Error:  &query.ErrorInfo{Code: fault.FailedEstimate, Message: "negative", Stage: "aggregate"},
		Cache:  "off",
	}
	sampled := query.Result{
		Job: "job-1", Query: 2, Status: "ok", Method: query.MethodSampled, LogZ: pointer(-3.25), Log10Z: pointer(-1.5), Components: 1024,
		Bounds:      &query.Bounds{Lower: pointer(-3.5), Level: 0.999, How: "below by means"},
		Uncertainty: pointer(0.25), Warnings: []string{}, Cache: "miss", Ended: "complete",
		Estimates: []query.EstimateResult{{
			Family: query.FamilySampled, Kind: "annealing", LogZ: pointer(-3.25), Components: 1024, StandardError: pointer(0.1),
			EffectiveSamples: pointer(100.5), TailIndex: pointer(0.25), LnLower: pointer(-3.5),
		}},
	}
	return []wire.Message{
		&wire.Request{
			Job:     "job-1",
			Text:    "MARKOV\n1\n2\n0\n",
			Queries: []query.Query{{Evid: "1 0 1", EvidenceFile: "x.uai.evid"}},
		},
		&wire.Request{
			Job:        strings.Repeat("J", 64),
			Tenant:     "Käse & Co",
			Model:      body,
			Queries:    queries,
			Settings:   settings,
			DeadlineMS: 60000,
		},
		&Network{
			Job:        "job-1",
			Tenant:     "t",
			Digest:     digestA,
			Blob:       digestB,
			Queries:    queries,
			Settings:   settings,
			Stored:     1767225600000,
			DeadlineMS: 5,
			Timings:    timings,
		},
		&Task{
			Job:         "job-1",
			Tenant:      "t",
			Digest:      digestA,
			NetworkBlob: digestB,
			JobBlob:     digestA,
			K:           2,
			N:           3,
			Units: []btn.Unit{
				{Query: 1, Part: 70000}, {},
			},
			Demands:    demands,
			Memory:     1 << 31,
			Cost:       1e9,
			Stored:     1767225600000,
			DeadlineMS: 5,
			Timings:    timings,
		},
		&Partial{
			Job:         "job-1",
			Digest:      digestA,
			JobBlob:     digestB,
			K:           0,
			N:           1,
			NumericKind: "0123456789abcdef",
			Stored:      1,
			Timings:     timings,
			Values: []btn.UnitValue{
				{
					Unit:  btn.Unit{Query: 1, Part: 2},
					Value: btn.Value{Z: scaled.Number{Mant: -1.5, Exp: -1 << 60}, Flops: 12},
				},
				{
					Unit: btn.Unit{Query: 0, Part: 2},
					Error: &query.ErrorInfo{
						Code:    fault.OverBudget,
						Message: "needs 3 GiB",
						Stage:   "contract",
					},
				}},
		},
		&Partial{
			Job: "job-1", Digest: digestA, JobBlob: digestB, N: 2, NumericKind: "0123456789abcdef", Stored: 1, Timings: timings,
			Values: []btn.UnitValue{
				{Unit: btn.Unit{Part: 1}, Value: btn.Value{Z: scaled.Make(2, -9), Flops: 12, Weights: &btn.Weights{
					Ln: []float64{1, math.Inf(-1)}, LnMost: pointer(3.5), Top: 1,
					Domains: []int{2, 1}, Share: []float64{1, 0, 1}, Squares: []float64{1, 0, 1},
					Picked: &btn.Picked{First: 2, Ln: []float64{1, math.Inf(-1)}, Values: []int{0, 1, 0, 0}},
				}}},
				{Unit: btn.Unit{Part: 2}, Value: btn.Value{Flops: 3, Bound: &btn.BoundValue{Lower: math.Inf(-1), Upper: 7}}},
			},
		},
		&wire.Answer{
			Job:     "job-1",
			Digest:  digestA,
			Status:  wire.StatusOK,
			Results: []query.Result{failed, result, sampled},
		},
		&wire.Answer{
			Job:    "job-1",
			Tenant: "t",
			Digest: digestA,
			Status: wire.StatusDeadline,
			Error:  &query.ErrorInfo{Code: fault.Deadline, Message: "passed", Stage: "learn"},
		},
		&wire.Progress{
			Job:   "job-1",
			Stage: "contract",
			Done:  3,
			Total: 7,
			Text:  "chunk 3",
			Time:  1767225600000,
		},
		&wire.Cancel{Job: "job-1", Digest: digestA, Reason: "changed my mind", Time: 1767225600000},
		&wire.Deadline{Job: "job-1", Tenant: "t", Digest: digestA, Time: 1767225600000},
		&DeadLetter{
			Stage:   "learn",
			Job:     "job-1",
			Tenant:  "t",
			Subject: NetworkSubject(3, "job-1"),
			Error: query.ErrorInfo{
				Code:    fault.Internal,
				Message: "m",
				Stage:   "learn",
			},
			Deliveries: 6,
			Payload:    digestB,
			Time:       1767225600000,
		},
		&wire.Graph{Model: body},
		&wire.Graph{Text: "MARKOV\n0\n0\n"},
		&wire.Request{Job: "job-1", ModelDigest: digestA, Queries: []query.Query{{Evid: "0"}}},
		&wire.Unanswered{
			Job:    "job-1",
			Digest: digestA,
			Status: wire.StatusPending,
			Error:  query.ErrorInfo{Code: fault.Deadline, Message: "later", Stage: "reparam-worker"},
		},
		&End{Job: "job-1", Tenant: "t", Answer: []byte{0x80}, Under: "job$1", Stored: 1767225599000, Time: 1767225600000},
		&Serves{Process: "p1", Numeric: "0123456789abcdef-avx2", Cores: 4, Gone: true, Time: 1767225600000},
		&Here{
			Process: "p1", Stage: "learn-worker", Host: "node-1", PID: 17, Version: "v1.2.3", Messages: 7, Gone: true, Time: 1767225600000,
			MessageKeys: []string{"0011223344556677"}, AnswersKeys: []string{"AKEY"}, AnswersSigner: "AKEY",
		},
		&Room{Left: 7, Full: "BTN_ANSWER", Unserved: "no learn-worker is running"},
		&Redrive{Job: "job-1", Tenant: "t", Reason: "no answer for 30 s", Time: 1767225600000},
	}
}

// sampleModel has a factor of every kind, one of order zero, and mixed domains.
func sampleModel() *factorgraph.Model {
	dims := []int{2, 3}
	levels := countspace.TwoLevels(dims)
	return &factorgraph.Model{
		Domains: []int{2, 3, 1},
		Names:   []string{"rain", "wet", "one"},
		Bayes:   true,
		Factors: []factorgraph.Factor{
			{Scope: []int{}, Table: &tensor.Dense{Shape: []int{}, Data: []float64{2.5}}},
			{
				Scope: []int{1, 0},
				Table: &tensor.Dense{
					Shape: []int{3, 2},
					Data:  []float64{1, 2, 3, 4, 5, math.SmallestNonzeroFloat64},
				},
			},
			{
				Scope: []int{0, 2},
				Table: &tensor.CP{
					Shape:   []int{2, 1},
					Weights: []float64{1, -1},
					Vectors: [][]float64{nil, {0.5, 0.25}},
				},
			},
			{
				Scope: []int{0, 1},
				Table: &tensor.Symmetric{
					Shape:  dims,
					Levels: levels,
					Values: scaled.Vector{Mant: []float64{1, 0, 1}},
				},
			},
			{
				Scope: []int{0, 1},
				Table: &tensor.SymmetryCP{
					Shape:  dims,
					Levels: levels,
					Terms: []tensor.SymmetryRankOne{
						{
							Alpha: -2, S: scaled.Vector{Mant: []float64{1, 2, 3}, Exp: []int64{-9, 0, 1 << 40}},
							R: [][]float64{nil, {1, 2, 3}}}},
				},
			},
		},
	}
}

// random makes random values; nils and empties appear wherever the types allow.
type random struct{ *rand.Rand }

func (r random) float() float64 {
	switch r.IntN(12) {
	case 0:
		return 0
	case 1:
		return math.Copysign(0, -1)
	case 2:
		return math.Inf(1 - 2*r.IntN(2))
	case 3:
		return math.SmallestNonzeroFloat64
	}
	return r.NormFloat64()
}

func (r random) floats(n int) []float64 {
	x := make([]float64, n)
	for i := range x {
		x[i] = r.float()
	}
	return x
}

func (r random) vector(n int) scaled.Vector {
	v := scaled.Vector{Mant: r.floats(n)}
	if r.IntN(2) == 0 {
		v.Exp = make([]int64, n)
		for i := range v.Exp {
			v.Exp[i] = int64(r.Uint64()) >> r.IntN(64)
		}
	}
	return v
}

func (r random) number() scaled.Number { return scaled.Make(r.NormFloat64(), int64(r.Uint64())>>2) }

func (r random) levels(dims []int) countspace.Levels {
	if r.IntN(2) == 0 {
		return countspace.TwoLevels(dims)
	}
	l := countspace.Levels{D: 1 + r.IntN(3), Of: make([][]uint8, len(dims))}
	for i, d := range dims {
		l.Of[i] = make([]uint8, d)
		for x := range d {
			l.Of[i][x] = uint8(r.IntN(l.D))
		}
	}
	return l
}

func (r random) rankOne(dims []int) [][]float64 {
	v := make([][]float64, len(dims))
	for i, d := range dims {
		if r.IntN(3) > 0 {
			v[i] = r.floats(d)
		}
	}
	return v
}

func (r random) cp(dims []int, rank int) *tensor.CP {
	t := &tensor.CP{Shape: dims, Weights: r.floats(rank), Vectors: make([][]float64, len(dims))}
	for i, d := range dims {
		if d != rank || r.IntN(2) == 0 {
			t.Vectors[i] = r.floats(rank * d)
		}
	}
	return t
}

func (r random) tensor(dims []int) tensor.Tensor {
	n := 1
	for _, d := range dims {
		n *= d
	}
	l := r.levels(dims)
	box := 1
	for _, s := range l.Shape() {
		box *= s
	}
	switch r.IntN(4) {
	case 0:
		return &tensor.Dense{Shape: dims, Data: r.floats(n)}
	case 1:
		return r.cp(dims, r.IntN(4))
	case 2:
		return &tensor.Symmetric{Shape: dims, Levels: l, Values: r.vector(box)}
	}
	t := &tensor.SymmetryCP{
		Shape:  dims,
		Levels: l,
		Terms:  make([]tensor.SymmetryRankOne, r.IntN(3)),
	}
	for i := range t.Terms {
		t.Terms[i] = tensor.SymmetryRankOne{Alpha: r.float(), S: r.vector(box), R: r.rankOne(dims)}
	}
	return t
}

func (r random) network() *btn.Network {
	n := &btn.Network{Dims: make([]int, r.IntN(7)), Scale: r.number(), Choice: query.CoresAreFactors, Directed: r.IntN(2) == 0}
	for i := range n.Dims {
		n.Dims[i] = 1 + r.IntN(3)
	}
	if r.IntN(3) > 0 {
		n.Maps = make([]btn.Map, len(n.Dims))
		for i, d := range n.Dims {
			n.Maps[i].Kind = query.MapIdentity
			if r.IntN(2) == 0 {
				n.Maps[i] = btn.Map{Kind: query.MapGiven, A: r.floats(d * d)}
			}
		}
	}
	for rest, leg := len(n.Dims), 0; rest > 0; {
		k := 1 + r.IntN(rest)
		legs := make([]int, k)
		dims := make([]int, k)
		for i := range legs {
			legs[i], dims[i] = leg, n.Dims[leg]
			leg++
		}
		rest -= k
		n.Cores = append(n.Cores, btn.Core{Legs: legs, T: r.tensor(dims)})
		n.Links = append(n.Links, btn.Link{Legs: legs, T: r.tensor(dims)})
	}
	if r.IntN(2) == 0 {
		n.Links = append(n.Links, btn.Link{Legs: nil, T: &tensor.Dense{Data: []float64{3}}})
	}
	if r.IntN(2) == 0 {
		n.Variables = []btn.Variable{}
		for i, l := range n.Links {
			if t, ok := l.T.(*tensor.CP); ok && len(t.Weights) > 0 {
				n.Variables = append(n.Variables, btn.Variable{Domain: len(t.Weights), Link: i})
			}
		}
	}
	return n
}

// finite is a vector without infinities.
func (r random) finite(n int) scaled.Vector {
	v := r.vector(n)
	for i, x := range v.Mant {
		if math.IsInf(x, 0) {
			v.Mant[i] = r.NormFloat64()
		}
	}
	return v
}

// box is the shape of count vectors, and how many there are.
func box(l countspace.Levels) (shape []int, n int) {
	n = 1
	for _, s := range l.Shape() {
		n *= s
	}
	return l.Shape(), n
}

func (r random) cost() query.Cost {
	return query.Cost{
		Width:     r.IntN(9),
		Log2Table: r.float(),
		Flops:     math.Abs(r.float()),
		Bytes:     math.Abs(r.float()),
		Slices:    r.float(),
		Groups:    r.float(),
		Edges:     r.float(),
	}
}

// plan has one estimate whose quality is known, or several that judge each other. Parts of every
// class occur.
func (r random) plan(n *btn.Network) *btn.Plan {
	p := &btn.Plan{Method: query.MethodSymmetryCP}
	if r.IntN(2) == 0 {
		p.Warnings = []string{"ä warning"}
	}
	if r.IntN(2) == 0 {
		p.Estimates = []btn.Estimate{r.known(n, true)}
		return p
	}
	p.Accuracy = r.Float64()
	tree := &truncated.TruncatedPlan{
		Family: query.FamilyTree,
		Number: 2,
		Shape:  digestA,
		Tree:   [][]int{{3}, {0, 1}, nil},
		Masked: true,
	}
	sweep := &truncated.TruncatedPlan{
		Family:   query.FamilySweep,
		Shape:    digestB,
		Order:    r.Perm(3),
		Position: r.Perm(3),
	}
	for range 1 + r.IntN(4) {
		e := btn.Estimate{
			Rule:     btn.Linear,
			Track:    "a track",
			Level:    r.float(),
			Slices:   1,
			Lossless: r.IntN(2) == 0,
			Cost:     r.cost(),
		}
		var slice btn.Slice
		if len(n.Variables) > 0 {
			slice.Variables = []int{r.IntN(len(n.Variables))}
			e.Slices = slice.Count(n)
		}
		regions := r.IntN(2) == 0
		if regions {
			e.Rule = btn.LogLinear
		}
		for at := range e.Slices {
			slice.At = at
			switch {
			case regions:
				from := r.Int64N(regionparts.WholeShare)
				e.Parts = append(
					e.Parts,
					&regionparts.Regions{
						Kind: "balls",
						Size: r.IntN(9),
						From: from,
						To:   regionparts.WholeShare,
					},
				)
			case r.IntN(2) == 0:
				e.Parts = append(
					e.Parts, &truncated.Truncated{Plan: tree, Bond: 1 + r.IntN(9), Slice: slice},
				)
			default:
				e.Parts = append(
					e.Parts, &truncated.Truncated{Plan: sweep, Bond: 1 + r.IntN(9), Slice: slice},
				)
			}
		}
		p.Estimates = append(p.Estimates, e)
	}
	p.Estimates = append(p.Estimates, r.components(sweep)...)
	return p
}

// known is an estimate whose quality is known, with products among its parts where wanted.
func (r random) known(n *btn.Network, products bool) btn.Estimate {
	e := btn.Estimate{Rule: btn.Linear, Slices: 1, Cost: r.cost(), Quality: &btn.Quality{
		Exact:         r.IntN(2) == 0,
		Residual:      r.float(),
		LnExplained:   r.float(),
		LnNormB:       r.float(),
		LnNormError:   math.Inf(-1),
		ConditionGram: r.float(),
	}}
	frame := &btn.Frame{Closed: r.IntN(2) == 0}
	if r.IntN(3) > 0 {
		frame.Levels = r.levels(n.Dims)
	}
	if r.IntN(2) == 0 {
		frame.Rotations = make([][]float64, len(n.Dims))
		for i, d := range n.Dims {
			if r.IntN(2) == 0 {
				frame.Rotations[i] = r.floats(d * d)
			}
		}
	}
	tree := &exact.Tree{
		Shape:     digestA,
		Tables:    3,
		Merges:    []int{0, 1, 2, 3},
		Slices:    r.Perm(2),
		Count:     1 + r.Int64N(9),
		Joint:     true,
		Marginals: r.IntN(2) == 0,
	}
	groups := &exact.MarginalGroups{
		Shape: digestB,
		Groups: []exact.MarginalGroup{
			{Keep: r.Perm(2), Indices: r.Perm(3), Tree: *tree},
			{Indices: []int{}},
		},
	}
	weights := r.IntN(3) > 0
	for range 1 + r.IntN(5) {
		e.Parts = append(e.Parts, r.part(n, frame, tree, groups, products))
		if weights {
			e.Alpha = append(e.Alpha, r.number())
		}
	}
	return e
}

func (r random) part(
	n *btn.Network, frame *btn.Frame, tree *exact.Tree, groups *exact.MarginalGroups, products bool,
) btn.Part {
	switch k := r.IntN(9); {
	case k == 0:
		return &closed.RankOne{Frame: frame, R: r.rankOne(n.Dims)}
	case k == 1:
		return &closed.CP{Frame: frame, Tensor: r.cp(n.Dims, 1+r.IntN(3))}
	case k == 2:
		return &exact.Slices{Tree: tree, From: r.Int64N(tree.Count), To: tree.Count}
	case k == 3:
		return &exact.Groups{Of: groups, From: r.Int64N(2), To: 2}
	case k == 4 && products:
		product := &exact.Product{Factors: []btn.ProductFactor{}}
		for _, links := range n.ConnectedParts() {
			sub, _ := n.Subnetwork(links)
			e := r.known(sub, false)
			product.Factors = append(product.Factors, btn.ProductFactor{Links: links, Estimate: &e})
		}
		return product
	case k >= 7 && frame.Levels.D > 0:
		shape, size := box(frame.Levels)
		s := &closed.SymmetryRankOne{
			Frame: frame,
			S:     countspace.Poly{Shape: shape, Coef: r.finite(size)},
		}
		if k == 8 {
			s.R = r.rankOne(n.Dims)
		}
		return s
	}
	return &exact.Elimination{Order: r.Perm(len(n.Dims)), Flops: r.Float64()}
}

func (r random) assignments(n *btn.Network) []btn.Assignment {
	plans := []*btn.Plan{r.plan(n), r.plan(n), r.plan(n)}
	all := make([]btn.Assignment, r.IntN(4))
	for q := range all {
		a := btn.Assignment{Plan: plans[r.IntN(len(plans))], Cache: "hit", LnLinks: r.float()}
		if q%2 == 1 {
			a.Cost, a.Warnings = pointer(r.cost()), []string{}
		}
		if r.IntN(4) == 0 {
			a.Plan, a.Error = nil, &query.ErrorInfo{
				Code:    fault.OverBudget,
				Message: "too wide",
				Stage:   "learn",
			}
		}
		all[q] = a
	}
	return all
}

var sampleNet = &btn.Network{Dims: []int{2, 3, 2}}

func (r random) samplePlan() *btn.Plan {
	return r.plan(sampleNet)
}

// sampleAssignments have a joint marginal as well, which needs a network with variables.
func (r random) sampleAssignments() []btn.Assignment {
	all := r.assignments(sampleNet)
	for q := range all {
		all[q].Want = btn.Want{Joint: []int{q, 7}, Marginals: true, Targets: []int{7, q}}
		all[q].Asked = &btn.Asked{Query: query.Query{Joint: []int{q, 7}, Targets: []int{7, q}, Over: q}}
	}
	return all
}
