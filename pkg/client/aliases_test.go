package client_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/basetensor/basetensor/internal/people/backup"
	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/pkg/client"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/wire"
)

// TestModelsHaveNamesAndVersions: other bytes are another version, the same bytes the same; a version, a name and a digest's first digits
// find it; a copy of the streams has the names.
func TestModelsHaveNamesAndVersions(t *testing.T) {
	ctx, _, nc, c := open(t)
	put := func(k int) string {
		digest, err := c.PutModel(ctx, &wire.Graph{Text: strings.Replace(coin, "0.5 0.5", fmt.Sprintf("0.%d 0.5", k), 1)})
		if err != nil {
			t.Fatal(err)
		}
		return digest
	}
	digests := []string{put(1), put(2), put(3)}
	for _, k := range []int{0, 1, 0, 2, 1} {
		v, err := c.NameModel(ctx, "coin", digests[k], "me")
		if err != nil || v.Version != k+1 || v.String() != fmt.Sprintf("coin@%d", k+1) {
			t.Errorf("put %d: %+v, %v", k, v, err)
		}
	}
	for ref, want := range map[string]int{"coin": 2, "coin@1": 0, "coin@2": 1, digests[1]: 1, digests[0][:6]: 0, digests[2][:40]: 2} {
		v, err := c.FindModel(ctx, ref)
		if err != nil || v.Digest != digests[want] || (v.Name == "coin") != strings.HasPrefix(ref, "coin") {
			t.Errorf("%s: %+v, %v", ref, v, err)
		}
	}
	for ref, says := range map[string]string{
		"coin@4": "versions 1 to 3", "coin@0": "versions 1 to 3", "coin@x": "versions 1 to 3", "coins": "no registered model is called",
		digests[0][:5]: "no registered model is called", "000000": "no digest begins so", "a b": "no registered model", "": "no registered model",
	} {
		if v, err := c.FindModel(ctx, ref); !errors.Is(err, client.ErrNotFound) || fault.CodeOf(err) != fault.BadInput ||
			!strings.Contains(err.Error(), says) {
			t.Errorf("%q: %+v, %v, want %s", ref, v, err, says)
		}
	}
	for _, name := range []string{"", "a b", "a.b", "a@1", "*", strings.Repeat("x", 65), digests[0]} {
		if _, err := c.NameModel(ctx, name, digests[0], ""); fault.CodeOf(err) != fault.BadInput {
			t.Errorf("name %q: %v", name, err)
		}
	}
	if r, err := c.Registered(ctx); err != nil || len(r.Models) != 3 {
		t.Errorf("a name is listed as a model: %+v, %v", r, err)
	}

	b, err := bus.New(nc, bus.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var copied bytes.Buffer
	if _, err := backup.Write(ctx, b, &copied); err != nil {
		t.Fatal(err)
	}
	listed, err := c.Registered(ctx)
	before := listed.Versions
	if err != nil || len(before) != 3 || before[1].By != "me" || before[1].Time.IsZero() || before[1].Version != 2 {
		t.Errorf("%+v, %v", before, err)
	}
	if _, err := c.RemoveRegistered(ctx, "coin"); err != nil {
		t.Fatal(err)
	}
	if _, err := c.RemoveRegistered(ctx, "coin"); !errors.Is(err, client.ErrNotFound) {
		t.Errorf("removed twice: %v", err)
	}
	if v, err := c.FindModel(ctx, digests[2]); err != nil || v.Name != "" {
		t.Errorf("the model went with its name: %+v, %v", v, err)
	}
	if _, err := backup.Read(ctx, b, c, &copied); err != nil {
		t.Fatal(err)
	}
	if after, err := c.Registered(ctx); err != nil || fmt.Sprint(after.Versions) != fmt.Sprint(before) {
		t.Errorf("restored %+v, %v, want %+v", after, err, before)
	}
}

// TestTwoPutsMakeTwoVersions, however they meet.
func TestTwoPutsMakeTwoVersions(t *testing.T) {
	ctx, _, _, c := open(t)
	const puts = 12
	versions := make([]int, puts)
	var all sync.WaitGroup
	for k := range puts {
		all.Go(func() {
			v, err := c.NameModel(ctx, "many", wire.Digest([]byte{byte(k)}), "")
			if err != nil {
				t.Error(err)
			}
			versions[k] = v.Version
		})
	}
	all.Wait()
	seen := map[int]bool{}
	for k, n := range versions {
		if n < 1 || n > puts || seen[n] {
			t.Errorf("put %d is version %d of %v", k, n, versions)
		}
		seen[n] = true
		if v, err := c.FindModel(ctx, fmt.Sprintf("many@%d", n)); err != nil || v.Digest != wire.Digest([]byte{byte(k)}) {
			t.Errorf("version %d: %+v, %v", n, v, err)
		}
	}
}
