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
	RouteJSON  Route = "json"  // the model is written in the native format and read again
	RouteUAI   Route = "uai"   // model and observations are written as UAI text and read again, if that format can hold them
	RouteWire  Route = "wire"  // every message and blob between the stages is encoded and decoded
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
	d.changeExactToCircuit(&c.Settings)
	d.changeEstimateToSampled(&c.Settings)
	return c
}

// Named draws the case of this name again. Names are those of Draw and DrawFamily, PROFILE-SEED-I and FAMILY-SEED-I. The truth is nil for
// the former, which are solved by enumeration.
func Named(name string) (*Case, []Truth, error) {
	var seed, i uint64
	family, numbers, _ := strings.Cut(name, "-")
	if _, err := fmt.Sscanf(numbers, "%d-%d", &seed, &i); err != nil {
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

// settings draws the settings of a request: method, maps, cores, memory and budgets. Budgets are small, since a run has tens of thousands
// of cases.
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

// changeEstimateToSampled changes the method to sampled components in 40 % of cases whose method is truncated or regions. It must be
// called last: its random numbers are drawn after all others, so that older cases stay as they are.
func (d *drawer) changeEstimateToSampled(s *query.Settings) {
	if (s.Method == query.MethodTruncated || s.Method == query.MethodRegions) && d.Chance(0.4) {
		s.Method = query.MethodSampled
	}
}

// changeExactToCircuit changes the method to circuits in 40 % of cases whose method is exact, at times with a budget that is too small for
// a circuit. It must be called after the model is drawn, so that the models of older cases stay as they are.
func (d *drawer) changeExactToCircuit(s *query.Settings) {
	if s.Method != query.MethodExact || !d.Chance(0.4) {
		return
	}
	s.Method, s.Memory = query.MethodCircuit, modeltest.Pick(d.Rand, 0, 0, s.Memory)
	s.Budget = modeltest.Pick[float64](d.Rand, 0, 0, oneStepBudget, 40*oneStepBudget)
}

// oneStepBudget is the budget in flops in which the search of a circuit takes one step.
const oneStepBudget = policy.CircuitFlops

// queries draws one to three queries: a first one, at times a second one, and at times an event whose probability is asked given the
// evidence of the first one.
func (d *drawer) queries(m *factorgraph.Model, s query.Settings) []query.Query {
	first := query.Query{Evidence: d.evidence(m), Marginals: d.Chance(0.5)}
	n := len(m.Domains)
	mayHaveJoint := n > 0 && d.Chance(0.15)
	if isExact := s.Method == query.MethodAuto || s.Method == query.MethodExact; mayHaveJoint && isExact && !s.NoExact {
		first.Joint = d.Shuffled(modeltest.UpTo(n))[:min(n, 1+d.Rand.IntN(3))]
	}
	queries := []query.Query{first}

	if d.Chance(0.2) {
		queries = append(queries, query.Query{Evidence: d.evidence(m), Marginals: d.Chance(0.3)})
	}

	// Over 1 asks for the ratio of this query's Z to that of the first.
	if d.Chance(0.4) {
		queries = append(queries, query.Query{
			Evidence:  d.event(m, first.Evidence),
			Over:      1,
			Marginals: d.Chance(0.2),
		})
	}
	return queries
}

// evidence draws observations (hard evidence) and likelihoods (soft evidence) of some variables; a variable may have both.
func (d *drawer) evidence(m *factorgraph.Model) factorgraph.Evidence {
	var ev factorgraph.Evidence
	hardShare, softShare := modeltest.Pick(d.Rand, 0, 0, 0.2, 0.5), modeltest.Pick(d.Rand, 0, 0, 0.2, 0.5)
	for v, n := range m.Domains {
		if d.Chance(hardShare) {
			ev.Hard = append(ev.Hard, factorgraph.Observation{Var: v, Value: d.Rand.IntN(n)})
		}
		if d.Chance(softShare) {
			ev.Soft = append(ev.Soft, factorgraph.Likelihood{Var: v, Weights: d.Numbers(n)})
		}
	}
	return ev
}

// event draws an event as evidence: the given evidence, and observations of some further variables. Both kinds are sorted by variable.
func (d *drawer) event(m *factorgraph.Model, given factorgraph.Evidence) factorgraph.Evidence {
	hard, soft := map[int]int{}, map[int][]float64{}
	for _, h := range given.Hard {
		hard[h.Var] = h.Value
	}
	for _, s := range given.Soft {
		soft[s.Var] = s.Weights
	}

	// Further observations.
	for v, n := range m.Domains {
		if _, isObserved := hard[v]; !isObserved && d.Chance(0.4) {
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

// caseFile is a case as it is written to a file.
type caseFile struct {
	*plainCase
	Model json.RawMessage `json:"model"` // in the native format
}

// plainCase is Case without its method MarshalJSON, which would call itself.
type plainCase Case

// MarshalJSON writes a case with its model in the native format.
func (c *Case) MarshalJSON() ([]byte, error) {
	var model bytes.Buffer
	if err := modeljson.Encode(&model, c.Model); err != nil {
		return nil, err
	}
	return json.Marshal(caseFile{(*plainCase)(c), model.Bytes()})
}

// Load reads a case from a file that Session wrote.
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
