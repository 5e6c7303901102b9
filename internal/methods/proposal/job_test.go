package proposal

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/big"
	"slices"
	"testing"

	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/contractionorder"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
)

// TestTheKeyOfPlansStays: they are cached under it.
func TestTheKeyOfPlansStays(t *testing.T) {
	j := &Job{Settings: query.Settings{Memory: 1 << 31}, Facts: &Facts{digest: [32]byte{1, 2, 3}}}
	shape := contractionorder.Hypergraph{Dims: []int{2, 3, 300}, Edges: [][]int{{0, 1}, {}, {2, 0}}}
	if got := j.Key("exact seed=7", shape); got != "btn:v1:decomposition:"+AlgorithmVersion+":"+
		"fd1a5fd69de075360a42a3b180294004d4c3362fa582e8eb9efbaf65ac168bb1" {
		t.Errorf("the key of a decomposition is %s", got)
	}
}

// TestTable: methods are asked in sequence until one has a proposal or an error; the next ones are asked by that one alone.
func TestTable(t *testing.T) {
	asked := ""
	family := func(name string, found bool, err error) Row {
		return Row{Name: name, Propose: func(context.Context, *Job, Ask) (*btn.Assignment, error) {
			asked += name
			if !found {
				return nil, err
			}
			return &btn.Assignment{Cache: name, Plan: &btn.Plan{Estimates: make([]btn.Estimate, 1)}}, err
		}}
	}
	next := Row{Name: "n", Propose: func(ctx context.Context, _ *Job, ask Ask) (*btn.Assignment, error) {
		asked += "n"
		a, err := ask.Next(ctx)
		a.Cache += " after all"
		return a, err
	}}
	var offers Offers
	ctx, j := WithOffers(t.Context(), &offers), new(Job)
	failed := errors.New("failed")
	for _, c := range []struct {
		families    Table
		asked, from string
		err         error
	}{
		{Table{family("a", false, nil), family("b", true, nil), family("c", true, nil)}, "ab", "b", nil},
		{Table{next, family("b", false, nil), family("c", true, nil)}, "nbc", "c after all", nil},
		{Table{family("a", false, failed), family("b", true, nil)}, "a", "", failed},
	} {
		asked = ""
		a, err := c.families.Propose(ctx, j, Ask{})
		from := ""
		if a != nil {
			from = a.Cache
		}
		if asked != c.asked || from != c.from || !errors.Is(err, c.err) {
			t.Errorf("asked %s, the proposal is of %q, %v: want %s, %q, %v", asked, from, err, c.asked, c.from, c.err)
		}
	}
	if _, err := (Table{family("a", false, nil)}).Propose(t.Context(), new(Job), Ask{}); fault.CodeOf(err) != fault.OverBudget {
		t.Errorf("nobody has a proposal: %v", err)
	}
	const none, free = "no: not for this model and query", "one estimate, 0 flops, 0 bytes at a time"
	want := []Offer{{"a", none}, {"b", free}, {"b", none}, {"c", free}, {"n", free}, {"a", "no: failed"}}
	if got := offers.List(); !slices.Equal(got, want) {
		t.Errorf("offers %v, want %v", got, want)
	}
}

// TestFactsAreMadeOnce, and again after an error; those of all networks are the same.
func TestFactsAreMadeOnce(t *testing.T) {
	net := &btn.Network{}
	f := NewFacts(net, new(Facts))
	type slot struct{ n int }
	made := 0
	of := func(f *Facts, n int, err error) int {
		x, _ := Fact(t.Context(), f, slot{n}, func() (int, error) {
			made++
			return 10 * n, err
		})
		return x
	}
	of(f, 1, errors.New("failed"))
	for range 2 {
		if a, b := of(f, 1, nil), of(f, 2, nil); a != 10 || b != 20 {
			t.Errorf("slots have %d and %d", a, b)
		}
	}
	if made != 3 {
		t.Errorf("made %d times, want 3", made)
	}
	of(f.Common, 3, nil)
	if of(NewFacts(net, f.Common).Common, 3, nil); made != 4 {
		t.Errorf("made %d times, want 4", made)
	}
}

// TestWaitForAFactEndsWithItsContext, though the caller that makes the fact goes on.
func TestWaitForAFactEndsWithItsContext(t *testing.T) {
	f := NewFacts(&btn.Network{}, new(Facts))
	hasBegun, mayEnd, hasEnded := make(chan struct{}), make(chan struct{}), make(chan int)
	go func() {
		x, _ := Fact(context.Background(), f, "slot", func() (int, error) {
			close(hasBegun)
			<-mayEnd
			return 7, nil
		})
		hasEnded <- x
	}()
	<-hasBegun
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := Fact(ended, f, "slot", func() (int, error) { return 8, nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("the wait ends with %v", err)
	}
	close(mayEnd)
	if x := <-hasEnded; x != 7 {
		t.Errorf("the fact is %d", x)
	}
}

func TestChunksOfSlicesLeaveNoGap(t *testing.T) {
	for _, count := range []int64{1, 2, 7, 1000, 1 << 40, math.MaxInt64} {
		for _, chunks := range []int64{1, 2, 3, 1024} {
			if chunks > count {
				continue
			}
			if ChunkStart(count, chunks, 0) != 0 || ChunkStart(count, chunks, chunks) != count {
				t.Errorf("%d slices in %d chunks do not begin at 0 and end at the last", count, chunks)
			}
			for k := range chunks {
				want := new(big.Int).Mul(big.NewInt(count), big.NewInt(k))
				if want.Div(want, big.NewInt(chunks)); ChunkStart(count, chunks, k) != want.Int64() {
					t.Errorf("%d slices, chunk %d of %d begins at %d, want %v", count, k, chunks, ChunkStart(count, chunks, k), want)
				}
				if ChunkStart(count, chunks, k) >= ChunkStart(count, chunks, k+1) {
					t.Errorf("%d slices: chunk %d of %d is empty", count, k, chunks)
				}
			}
		}
	}
}

// TestTheEndOfAClockIsOverBudget unless nobody waits any more.
func TestTheEndOfAClockIsOverBudget(t *testing.T) {
	over, cancel := context.WithCancel(t.Context())
	cancel()
	for _, c := range []struct {
		ctx  context.Context
		err  error
		want fault.Code
	}{
		{t.Context(), context.DeadlineExceeded, fault.OverBudget},
		{t.Context(), fmt.Errorf("a search: %w", context.DeadlineExceeded), fault.OverBudget},
		{over, context.DeadlineExceeded, fault.Deadline},
		{t.Context(), context.Canceled, fault.Cancelled},
		{t.Context(), fault.New(fault.Unsupported, "no"), fault.Unsupported},
	} {
		if got := NameLateStep(c.ctx, "a search", c.err); fault.CodeOf(got) != c.want {
			t.Errorf("%v: %v", c.err, got)
		}
		if got := RunInTimeShare(c.ctx, 1, "a search", func(context.Context) error { return c.err }); fault.CodeOf(got) != c.want {
			t.Errorf("within, %v: %v", c.err, got)
		}
	}
	if err := NameLateStep(t.Context(), "a search", nil); err != nil {
		t.Error(err)
	}
}

// TestSettingsAreCopies: what is made under other settings is known to the job, whose own settings stay.
func TestSettingsAreCopies(t *testing.T) {
	j := &Job{Settings: query.Settings{Budget: 1}, Facts: NewFacts(&btn.Network{}, nil)}
	made := &btn.Plan{}
	compute := func(context.Context) (*btn.Plan, error) { return made, nil }
	err := RunInTimeShare(t.Context(), 1, "a plan", func(ctx context.Context) error {
		_, _, err := j.WithSettings(query.Settings{Budget: 2}).RememberByKey(ctx, "key", compute)
		return err
	})
	if err != nil || j.Settings.Budget != 1 || !j.IsKnown("key") {
		t.Errorf("budget %v, known %t: %v", j.Settings.Budget, j.IsKnown("key"), err)
	}
	short := func(context.Context) (*btn.Plan, bool, error) { return made, false, nil }
	other := j.WithSettings(j.Settings)
	if _, _, err := other.RememberComplete(t.Context(), "short", contractionorder.Hypergraph{}, short); err != nil || j.CountCutShort() != 1 {
		t.Errorf("%d plans are cut short: %v", j.CountCutShort(), err)
	}
}
