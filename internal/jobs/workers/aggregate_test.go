package workers

import (
	"errors"
	"fmt"
	"testing"

	"github.com/basetensor/basetensor/internal/queue/message"
)

// When a deadline comes the partials of the youngest run count, if the job grows and they are of its request.
func TestGrowingPartials(t *testing.T) {
	partial := func(k, n int, sequence uint64, kind string) *message.Partial {
		return &message.Partial{Digest: "d", K: k, N: n, Sequence: sequence, NumericKind: kind, Ends: []int{1, n}}
	}
	foreign, exact := partial(0, 4, 9, "a"), partial(1, 4, 9, "a")
	foreign.Digest, exact.Ends = "another", nil
	for name, c := range map[string]struct {
		stored   []*message.Partial
		chunks   string
		progress taskProgress
	}{
		"none":               {nil, "[]", taskProgress{}},
		"gone meanwhile":     {[]*message.Partial{nil, nil}, "[]", taskProgress{}},
		"in their order":     {[]*message.Partial{partial(2, 4, 5, "a"), nil, partial(0, 4, 6, "a")}, "[0 2]", taskProgress{3, 4}},
		"the youngest kind":  {[]*message.Partial{partial(1, 4, 7, "b"), partial(0, 4, 6, "a")}, "[1]", taskProgress{2, 4}},
		"the youngest cut":   {[]*message.Partial{partial(1, 4, 5, "a"), partial(0, 2, 6, "a")}, "[0]", taskProgress{2, 2}},
		"another request":    {[]*message.Partial{partial(1, 4, 5, "a"), foreign}, "[]", taskProgress{}},
		"it does not grow":   {[]*message.Partial{exact, partial(2, 4, 5, "a")}, "[]", taskProgress{2, 4}},
		"one does not grow ": {[]*message.Partial{partial(2, 4, 5, "a"), exact}, "[]", taskProgress{2, 4}},
	} {
		partials, progress := growingPartials(c.stored, "d")
		chunks := []int{}
		for _, p := range partials {
			chunks = append(chunks, p.K)
		}
		if fmt.Sprint(chunks) != c.chunks || progress != c.progress {
			t.Errorf("%s: chunks %v and %v, want %s and %v", name, chunks, progress, c.chunks, c.progress)
		}
	}
}

// Partials of different requests, arithmetics or plans are not added up.
func TestPartialsOfOneRunOnly(t *testing.T) {
	first := message.Partial{Digest: "request", NumericKind: "kind", JobBlob: "plan"}
	for name, c := range map[string]struct {
		alter func(*message.Partial)
		want  error
	}{
		"another request":    {func(p *message.Partial) { p.Digest = "other" }, ErrDigests},
		"another arithmetic": {func(p *message.Partial) { p.NumericKind = "other" }, ErrNumericKinds},
		"another plan":       {func(p *message.Partial) { p.JobBlob = "other" }, ErrPlans},
	} {
		second := first
		c.alter(&second)
		noHost := &sums{} // no plan is read
		if _, err := noHost.commonPlan(t.Context(), []*message.Partial{&first, &second}); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}
