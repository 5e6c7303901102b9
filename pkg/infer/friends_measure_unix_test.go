//go:build unix

package infer_test

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"os"
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/basetensor/basetensor/internal/generate"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/infer"
	"github.com/basetensor/basetensor/pkg/modeljson"
	"github.com/basetensor/basetensor/pkg/query"
)

// TestMeasureFriends prints the table of friends and smokers: CPU time of reading the native file, of ln Z and
// of ln Z with all marginals, and the peak of memory so far. BTN_SCALING is the largest number of people. A tenth
// of the people is known.
func TestMeasureFriends(t *testing.T) {
	most, err := strconv.Atoi(os.Getenv("BTN_SCALING"))
	if err != nil {
		t.Skip("BTN_SCALING is no number of people")
	}
	usage := func() (time.Duration, float64) {
		var u syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
			t.Fatal(err)
		}
		return time.Duration(u.Utime.Nano() + u.Stime.Nano()), float64(u.Maxrss) / (1 << 10)
	}
	timed := func(do func()) float64 {
		runtime.GC()
		before, _ := usage()
		do()
		after, _ := usage()
		return (after - before).Seconds()
	}

	fmt.Println("| people | file, MB | read, CPU s | ln Z, CPU s | with all marginals, CPU s | peak, MiB | ln Z |")
	fmt.Println("|--:|--:|--:|--:|--:|--:|--:|")
	for n := 1000; n <= most; n *= 10 {
		o := generate.DefaultFriends(n)
		m, err := o.Model()
		if err != nil {
			t.Fatal(err)
		}
		e, err := o.Know(0.1, 0)
		if err != nil {
			t.Fatal(err)
		}
		var file bytes.Buffer
		if err := modeljson.Encode(&file, m); err != nil {
			t.Fatal(err)
		}
		read := timed(func() {
			if m, err = modeljson.Decode(bytes.NewReader(file.Bytes()), modeljson.Limits{}); err != nil {
				t.Fatal(err)
			}
		})
		size := float64(file.Len()) / 1e6
		file = bytes.Buffer{}
		var z, again float64
		plain := timed(func() { z = friendsRun(t, m, e, false) })
		all := timed(func() { again = friendsRun(t, m, e, true) })
		_, peak := usage()
		if math.Abs(z-again) > 1e-9*math.Abs(z) {
			t.Errorf("%d people: ln Z %v, with marginals %v", n, z, again)
		}
		fmt.Printf("| %d | %.1f | %.2f | %.2f | %.2f | %.0f | %.9f |\n", n, size, read, plain, all, peak, z)
	}
}

// friendsRun returns ln Z of an exact answer.
func friendsRun(t *testing.T, m *factorgraph.Model, e factorgraph.Evidence, marginals bool) float64 {
	t.Helper()
	r, err := infer.Run(context.Background(), infer.Request{
		Job: "t", Model: m, Queries: []query.Query{{Evidence: e, Marginals: marginals}},
	}, nil)
	if err != nil || r[0].Status != query.StatusOK || !r[0].Exact {
		t.Fatalf("%v %+v", err, r)
	}
	return *r[0].LogZ
}
