package families

import (
	"bytes"
	"math"
	"testing"

	"github.com/basetensor/basetensor/pkg/uai"
)

func text(t *testing.T, m Member) string {
	t.Helper()
	model, err := m.Model()
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := uai.Write(&b, model); err != nil {
		t.Fatalf("%s: %v", m, err)
	}
	return b.String()
}

// TestMembersFollowFromTheirSeeds: every member is a valid model, the same each time, and no two are equal.
func TestMembersFollowFromTheirSeeds(t *testing.T) {
	if len(Names()) != 49 {
		t.Errorf("%d families", len(Names()))
	}
	seen := map[string]string{}
	for _, name := range Names() {
		list, err := Members(name, 10)
		if err != nil || len(list) != 10 {
			t.Fatalf("%s: %v", name, err)
		}
		for _, m := range list {
			s := text(t, m)
			if s != text(t, m) {
				t.Errorf("%s differs from itself", m)
			}
			if seen[s] != "" {
				t.Errorf("%s is %s", m, seen[s])
			}
			seen[s] = m.String()
		}
		sizes := map[int]bool{}
		for _, m := range list[:9] {
			sizes[m.Size*1000+int(100*m.Strength)] = true
		}
		if len(sizes) != 9 {
			t.Errorf("%s: %d settings", name, len(sizes))
		}
	}
	if _, err := Members("nothing", 1); err == nil {
		t.Error("a family of no name")
	}
	if large := Large(2); len(large) != 14 || large[1].Seed != 1 {
		t.Errorf("%v", large)
	}
}

// TestGrownMembers: every family has models of twice the size, of twice the variables (a switch or two stay).
func TestGrownMembers(t *testing.T) {
	for _, name := range Names() {
		list, err := Members(name, 1)
		if err != nil {
			t.Fatal(err)
		}
		grown, err := list[0].Grown(2)
		if err != nil || grown.String() == list[0].String() {
			t.Fatalf("%s: %v", grown, err)
		}
		small, err := list[0].Model()
		if err != nil {
			t.Fatal(err)
		}
		model, err := grown.Model()
		if err != nil {
			t.Fatalf("%s: %v", grown, err)
		}
		if len(model.Domains) < 2*len(small.Domains)-2 {
			t.Errorf("%s: %d variables of %d", grown, len(model.Domains), len(small.Domains))
		}
	}
	for _, times := range []int{-1, 0, math.MaxInt32} {
		if _, err := (Member{Family: "grid-mixed", Size: 12}).Grown(times); err == nil {
			t.Errorf("%d times", times)
		}
	}
}

// TestOptima: the models whose most probable assignment is asked for can be drawn.
func TestOptima(t *testing.T) {
	for _, m := range Optima(1) {
		model, err := m.Model()
		if err != nil {
			t.Fatal(err)
		}
		if err := model.Validate(); err != nil {
			t.Errorf("%s: %v", m, err)
		}
	}
	if _, err := (Member{Family: "warehouses", Size: 1, Strength: 1}).Model(); err == nil {
		t.Error("a shop without a warehouse is drawn")
	}
}
