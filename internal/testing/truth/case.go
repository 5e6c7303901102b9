package truth

// A case: a model, queries, settings, and the route of the request.

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/basetensor/basetensor/internal/base/policy"
	"github.com/basetensor/basetensor/internal/testing/modeltest"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/modeljson"
	"github.com/basetensor/basetensor/pkg/query"
)

// Route is the way that a request takes.
type Route string

const (
	RoutePlain Route = "plain" // infer.Run
	RouteJSON  Route = "json"  // the model through the native format
	// model and observations through UAI text; where it cannot hold them, as plain
	RouteUAI  Route = "uai"
	RouteWire Route = "wire" // every message and blob through its bytes
)

// Case is one request.
type Case struct {
	Name     string             `json:"name"`
	Model    *factorgraph.Model `json:"-"` // written in the native format
	Queries  []query.Query      `json:"queries"`
	Settings query.Settings     `json:"settings"`
	Route    Route              `json:"route"`
	Timeout  time.Duration      `json:"timeout_ns,omitempty"` // of the context; 0: the harness's own
}

// Draw returns case i of a profile: its model, settings, queries, and the route that its request takes. The same seed gives the same case.
func Draw(p modeltest.Profile, seed, i uint64) *Case {
	h := fnv.New64a()
	fmt.Fprintf(h, "%s/%d", p, seed)
	rng := rand.New(rand.NewPCG(h.Sum64(), i))
	d := newDrawer(rng, p)
	c := &Case{Name: fmt.Sprintf("%s-%d-%d", p, seed, i), Model: d.Model()}
	c.Settings = d.settings()
	c.Queries = d.queries(c.Model, c.Settings)
	c.Route = modeltest.Pick(rng, RoutePlain, RoutePlain, RoutePlain, RouteJSON, RouteUAI, RouteWire)
	if d.Chance(0.02) {
		c.Timeout = time.Duration(1+rng.IntN(30)) * time.Millisecond
	}
	d.circuits(&c.Settings)
	d.sampled(&c.Settings)
	return c
}

// Named draws the case of a name that Draw or DrawFamily gave.
func Named(name string) (*Case, []Truth, error) {
	var seed, i uint64
	family, rest, _ := strings.Cut(name, "-")
	if _, err := fmt.Sscanf(rest, "%d-%d", &seed, &i); err != nil {
		return nil, nil, fmt.Errorf("%q is not the name of a case: %w", name, err)
	}
	switch {
	case family == string(modeltest.Wild) || family == string(modeltest.Tame):
		return Draw(modeltest.Profile(family), seed, i), nil, nil
	case slices.Contains(Families, family):
		c, truth := DrawFamily(seed, i)
		return c, truth, nil
	}
	return nil, nil, fmt.Errorf("%q is none of wild, tame, %s", family, strings.Join(Families, ", "))
}

// settings draws method, maps, cores and budgets. Work is kept small: a run has tens of thousands of
// cases.
func (d *drawer) settings() query.Settings {
	s := query.Settings{
		Method: modeltest.Pick(d.Rand, query.MethodAuto, query.MethodAuto, query.MethodAuto, query.MethodExact,
			query.MethodExact, query.MethodExact,
			query.MethodSymmetryCP, query.MethodTruncated, query.MethodRegions),
		Maps: modeltest.Pick(d.Rand, query.MapIdentity, query.MapIdentity, query.MapOrthogonal, query.MapLearned,
			query.MapBP),
		Cores:  modeltest.Pick(d.Rand, query.CoresAreFactors, query.CoresAreFactors, query.CoresAreVariables),
		Memory: modeltest.Pick[int64](d.Rand, 0, 0, 0, 1<<20, 64<<10, 8<<10, 2<<10, 512),
		Seed:   d.Rand.Uint64N(3),
	}

	if s.Method == query.MethodAuto {
		s.NoExact = d.Chance(0.3)
	}
	switch s.Method {
	case query.MethodSymmetryCP:
		s.Components = 1 + d.Rand.IntN(4)
		s.Budget = modeltest.Pick(d.Rand, 1e6, 1e7)
	case query.MethodTruncated, query.MethodRegions, query.MethodAuto:
		s.Bond = modeltest.Pick(d.Rand, 0, 1, 2, 3, 4, 8)
		s.Budget = modeltest.Pick(d.Rand, 1e5, 1e6, 1e7)
		if d.Chance(0.2) {
			s.Accuracy = 1e-3
		}
	}

	return s
}

// sampled turns some questions to other estimates into questions to sampled components. It comes last, as circuits does.
func (d *drawer) sampled(s *query.Settings) {
	if (s.Method == query.MethodTruncated || s.Method == query.MethodRegions) && d.Chance(0.4) {
		s.Method = query.MethodSampled
	}
}

// circuits turns some exact questions into questions to circuits, at times with so little work that
// there is none. It comes last, so that models are drawn as before.
func (d *drawer) circuits(s *query.Settings) {
	if s.Method != query.MethodExact || !d.Chance(0.4) {
		return
	}
	s.Method, s.Memory = query.MethodCircuit, modeltest.Pick(d.Rand, 0, 0, s.Memory)
	s.Budget = modeltest.Pick[float64](d.Rand, 0, 0, oneStep, 40*oneStep)
}

// oneStep is the budget in which a search has one step.
const oneStep = policy.CircuitFlops

// queries draws a query, at times a second one, at times an event asked over the first.
func (d *drawer) queries(m *factorgraph.Model, s query.Settings) []query.Query {
	first := query.Query{Evidence: d.evidence(m), Marginals: d.Chance(0.5)}
	if n := len(m.Domains); n > 0 && d.Chance(0.15) &&
		(s.Method == query.MethodAuto || s.Method == query.MethodExact) &&
		!s.NoExact {
		first.Joint = d.Shuffled(modeltest.UpTo(n))[:min(n, 1+d.Rand.IntN(3))]
	}
	queries := []query.Query{first}
	if d.Chance(0.2) {
		queries = append(queries, query.Query{Evidence: d.evidence(m), Marginals: d.Chance(0.3)})
	}
	if d.Chance(0.4) {
		queries = append(queries, query.Query{
			Evidence:  d.event(m, first.Evidence),
			Over:      1,
			Marginals: d.Chance(0.2),
		})
	}
	return queries
}

// evidence draws observations and likelihoods; a variable may have both.
func (d *drawer) evidence(m *factorgraph.Model) factorgraph.Evidence {
	var ev factorgraph.Evidence
	hard, soft := modeltest.Pick(d.Rand, 0, 0, 0.2, 0.5), modeltest.Pick(d.Rand, 0, 0, 0.2, 0.5)
	for v, n := range m.Domains {
		if d.Chance(hard) {
			ev.Hard = append(ev.Hard, factorgraph.Observation{Var: v, Value: d.Rand.IntN(n)})
		}
		if d.Chance(soft) {
			ev.Soft = append(ev.Soft, factorgraph.Likelihood{Var: v, Weights: d.Numbers(n)})
		}
	}
	return ev
}

// event is given and more.
func (d *drawer) event(m *factorgraph.Model, given factorgraph.Evidence) factorgraph.Evidence {
	hard, soft := map[int]int{}, map[int][]float64{}
	for _, h := range given.Hard {
		hard[h.Var] = h.Value
	}
	for _, s := range given.Soft {
		soft[s.Var] = s.Weights
	}

	for v, n := range m.Domains {
		if _, ok := hard[v]; !ok && d.Chance(0.4) {
			hard[v] = d.Rand.IntN(n)
		}
	}

	var ev factorgraph.Evidence
	for v := range m.Domains {
		if value, ok := hard[v]; ok {
			ev.Hard = append(ev.Hard, factorgraph.Observation{Var: v, Value: value})
		}
		if w, ok := soft[v]; ok {
			ev.Soft = append(ev.Soft, factorgraph.Likelihood{Var: v, Weights: w})
		}
	}

	return ev
}

// caseFile is a case as it is written down.
type caseFile struct {
	*plainCase
	Model json.RawMessage `json:"model"` // in the native format
}

type plainCase Case // without MarshalJSON

// MarshalJSON writes a case with its model in the native format.
func (c *Case) MarshalJSON() ([]byte, error) {
	var model bytes.Buffer
	if err := modeljson.Encode(&model, c.Model); err != nil {
		return nil, err
	}
	return json.Marshal(caseFile{(*plainCase)(c), model.Bytes()})
}

// Load reads a case that was written down.
func Load(path string) (*Case, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	c := &Case{}
	f := caseFile{plainCase: (*plainCase)(c)}
	if err := json.Unmarshal(text, &f); err != nil {
		return nil, err
	}
	c.Model, err = modeljson.Decode(bytes.NewReader(f.Model), modeljson.Limits{})
	return c, err
}
