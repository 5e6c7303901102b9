package service_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/basetensor/basetensor/pkg/embedded"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/infer"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/uai"
)

// Random evidence on one known model, in jobs of fifty after a first query: everything but that one hits
// the cache, and every answer has the bits of one without a cache. BTN_QUERIES is the number of queries; 500 without.
func TestRandomEvidenceOnAKnownModel(t *testing.T) {
	t.Parallel()
	total := 500
	if text := os.Getenv("BTN_QUERIES"); text != "" {
		var err error
		if total, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	f, err := os.Open("../../../examples/alarm.uai")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	m, err := uai.Read(f, uai.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(10, 1))
	random := func() factorgraph.Evidence {
		var ev factorgraph.Evidence
		for _, v := range slices.Sorted(
			slices.Values(rng.Perm(len(m.Domains))[:rng.IntN(len(m.Domains)+1)]),
		) {
			ev.Hard = append(
				ev.Hard, factorgraph.Observation{Var: v, Value: rng.IntN(m.Domains[v])},
			)
		}
		return ev
	}
	r := newRig(t, embedded.Options{}, calm)
	var c config
	c.SweepAfter = -1
	r.run(c, allStages()...)
	hits, asked, zeros := 0, 0, 0
	for job := 0; asked < total; job++ {
		n := min(50, total-asked)
		if job == 0 {
			n = 1
		}
		evidence := make([]factorgraph.Evidence, n)
		for q := range evidence {
			evidence[q] = random()
		}
		w, p := request(t, fmt.Sprintf("q%d", job), m, query.Settings{}, evidence...)
		for q := range p.Queries {
			p.Queries[q].Marginals = (job+q)%4 == 0
			w.Queries[q].Marginals = p.Queries[q].Marginals
			if (job+q)%8 == 3 {
				p.Queries[q].Information = unobserved(rng, m, evidence[q])
				w.Queries[q].Information = p.Queries[q].Information
			}
			if (job+q)%4 == 1 {
				p.Queries[q].Targets = rng.Perm(len(m.Domains))[:1+rng.IntN(3)]
				w.Queries[q].Targets = p.Queries[q].Targets
			}
		}
		want, err := infer.Run(r.ctx, p)
		r.must(err)
		r.submit(w)
		got := r.wait(w.Job).Results
		if text, uncached := plain(t, got), plain(t, want); text != uncached {
			t.Fatalf("job %d: got\n%s\nwant\n%s", job, text, uncached)
		}
		for _, a := range got {
			if a.Cache == "hit" {
				hits++
			}
			if a.Zero {
				zeros++
			}
		}
		asked += n
	}
	if hits != total-1 {
		t.Errorf("%d of %d queries hit the cache", hits, total)
	}
	t.Logf("%d queries, %d hits, %d of probability 0", total, hits, zeros)
}

// unobserved asks for information about a variable that is not observed; nil where all are.
func unobserved(rng *rand.Rand, m *factorgraph.Model, ev factorgraph.Evidence) *query.Ask {
	for _, v := range rng.Perm(len(m.Domains)) {
		if !slices.ContainsFunc(ev.Hard, func(o factorgraph.Observation) bool { return o.Var == v }) {
			return &query.Ask{Target: v}
		}
	}
	return nil
}
