package generate_test

import (
	"errors"
	"math"
	"testing"

	"github.com/basetensor/basetensor/internal/models/generate"
	"github.com/basetensor/basetensor/internal/testing/oracle"
	"github.com/basetensor/basetensor/pkg/factorgraph"
)

// TestFriendsAgainstAllWorlds: Z is the sum over all worlds, friendships included, of the weights of the formulas.
func TestFriendsAgainstAllWorlds(t *testing.T) {
	for _, n := range []int{2, 3, 4} {
		o := generate.DefaultFriends(n)
		o.Mean = 0.8
		m, err := o.Model()
		if err != nil {
			t.Fatal(err)
		}
		if err := m.Validate(); err != nil {
			t.Fatal(err)
		}

		odds := o.Mean / (float64(n) - 1 - o.Mean)
		var pairs [][2]int
		for x := range n {
			for y := range n {
				if x != y {
					pairs = append(pairs, [2]int{x, y})
				}
			}
		}
		want := 0.0
		for world := range 1 << (2 * n) {
			smokes := func(x int) bool { return world>>x&1 == 1 }
			cancer := func(x int) bool { return world>>(n+x)&1 == 1 }
			ln := 0.0
			for x := range n {
				if smokes(x) {
					ln += o.Smoking
				}
				if cancer(x) {
					ln += o.Cancer
				}
				if smokes(x) && !cancer(x) {
					ln -= o.Causes
				}
			}
			for friends := range 1 << len(pairs) {
				w := ln
				for i, p := range pairs {
					if friends>>i&1 == 0 {
						continue
					}
					w += math.Log(odds)
					if smokes(p[0]) && !smokes(p[1]) {
						w -= o.Peers
					}
				}
				want += math.Exp(w)
			}
		}
		z, _ := oracle.Z(m, factorgraph.Evidence{}).Float64()
		if math.Abs(z/want-1) > 1e-10 { // a million terms in float64
			t.Errorf("%d people: Z = %v, all worlds %v", n, z, want)
		}
	}
}

func TestFriendsErrors(t *testing.T) {
	for _, change := range []func(*generate.Friends){
		func(o *generate.Friends) { o.People = 1 },
		func(o *generate.Friends) { o.Peers = math.NaN() },
		func(o *generate.Friends) { o.Mean = 9 },
	} {
		o := generate.DefaultFriends(10)
		change(&o)
		if _, err := o.Model(); !errors.Is(err, generate.ErrOptions) {
			t.Errorf("%+v: %v", o, err)
		}
	}
	if _, err := generate.DefaultFriends(10).DrawEvidence(2, 1); !errors.Is(err, generate.ErrOptions) {
		t.Errorf("a share of 2: %v", err)
	}
	ev, err := generate.DefaultFriends(100).DrawEvidence(0.1, 1)
	if err != nil || len(ev.Hard) != 10 {
		t.Errorf("%d observations, %v", len(ev.Hard), err)
	}
}
