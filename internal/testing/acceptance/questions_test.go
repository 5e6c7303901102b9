package acceptance

// The clients in examples/ on registered models by name: sensitivities, the next best question and conflicts of evidence, against
// enumeration.

import (
	"context"
	"fmt"
	"math"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/pkg/client"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/pipeline"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/tensor"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/nats-io/nats.go"
)

func TestGoExampleQuestions(t *testing.T)   { testExampleQuestions(t, goClient) }
func TestNodeExampleQuestions(t *testing.T) { testExampleQuestions(t, nodeClient) }

// The tables of the burglar alarm: burglary, alarm given it, call given the alarm. Nobody calls without an alarm.
var (
	burglary = []float64{0.9, 0.1}
	alarmed  = []float64{0.95, 0.05, 0.2, 0.8}
	called   = []float64{1, 0, 0.4, 0.6}
)

// burglar returns the weights of all assignments of the three variables, the last fastest.
func burglar(burglary, alarmed, called []float64) (w [8]float64) {
	for i := range w {
		b, a, c := i>>2, i>>1&1, i&1
		w[i] = burglary[b] * alarmed[2*b+a] * called[2*a+c]
	}
	return w
}

// given is P(burglary = yes), and the entropy of it in nats, where variables are at values.
func given(w [8]float64, at map[int]int) (p, entropy, z float64) {
	yes := 0.0
	for i, w := range w {
		x, ok := [3]int{i >> 2, i >> 1 & 1, i & 1}, true
		for v, value := range at {
			ok = ok && x[v] == value
		}
		if ok {
			z += w
			yes += w * float64(x[0])
		}
	}
	p = yes / z
	return p, -p*math.Log(p) - (1-p)*math.Log(1-p), z
}

func testExampleQuestions(t *testing.T, prepare func(*testing.T) program) {
	t.Parallel()
	s := serve(t, pipeline.Stages()...)
	p := prepare(t)
	c, err := client.Connect(s.url, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	dense := func(scope []int, p []float64) factorgraph.Factor {
		shape := []int{2, 2}[:len(scope)]
		return factorgraph.Factor{Scope: scope, Table: &tensor.Dense{Shape: shape, Data: p}}
	}
	no := []string{"no", "yes"}
	graph, err := wire.NewGraph(&factorgraph.Model{
		Domains: []int{2, 2, 2}, Names: []string{"burglary", "alarm", "call"}, States: [][]string{no, no, no}, Bayes: true,
		Factors: []factorgraph.Factor{dense([]int{0}, burglary), dense([]int{0, 1}, alarmed), dense([]int{1, 2}, called)},
	})
	if err != nil {
		t.Fatal(err)
	}
	coin, err := c.PutModel(t.Context(), &wire.Graph{Text: "MARKOV\n1\n2\n1\n1 0\n2\n1 3\n"})
	if err != nil {
		t.Fatal(err)
	}
	digest, err := c.PutModel(t.Context(), graph)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{coin, digest} {
		if _, err := c.NameModel(t.Context(), "house", d, ""); err != nil {
			t.Fatal(err)
		}
	}

	text := []string{"--evid", "alarm=yes", "--sensitivity", "burglary=yes", "--range", "0.5", "--top", "3", "--ask", "burglary"}
	t.Run("by name, version and digest", func(t *testing.T) {
		for i, ref := range []string{"house", "house@2", digest[:12], "digest:" + digest} {
			stdout, stderr, code := p.run(t, s, nil, append([]string{"--job", fmt.Sprint("ref-", i), "--model", ref}, text[:2]...)...)
			if code != 0 {
				t.Fatalf("%s: exit code %d\n%s%s", ref, code, stdout, stderr)
			}
			want, _, _ := given(burglar(burglary, alarmed, called), map[int]int{1: 1})
			if got := results(t, stdout)[1].Marginals[0].P[1]; math.Abs(got-want) > 1e-12 {
				t.Errorf("%s: %v, want %v", ref, got, want)
			}
			if m, _ := s.request(t, fmt.Sprint("ref-", i)); m.ModelDigest != digest {
				t.Errorf("%s: the request names %q", ref, m.ModelDigest)
			}
		}
		stdout, _, _ := p.run(t, s, nil, "--job", "coin", "--model", "house@1", "--sensitivity", "0=1")
		if r := results(t, stdout); len(r) != 1 || r[0].Marginals[0].P[1] != 0.75 || r[0].Sensitivity.P != 0.75 {
			t.Errorf("house@1: %s", stdout)
		}
		for ref, says := range map[string]string{
			"nobody": "no registered model is called", "house@3": "versions 1 to 2", "000000": "no digest begins so",
		} {
			if _, stderr, code := p.run(t, s, nil, "--model", ref); code != 2 || !strings.Contains(stderr, says) {
				t.Errorf("%s: exit code %d: %s", ref, code, stderr)
			}
		}
	})
	t.Run("sensitivity and what to ask", func(t *testing.T) {
		stdout, stderr, code := p.run(t, s, nil, append([]string{"--job", "ask", "--model", "house"}, text...)...)
		r := results(t, stdout)
		if code != 0 || len(r) != 2 {
			t.Fatalf("exit code %d\n%s%s", code, stdout, stderr)
		}
		checkQuestions(t, &r[0], nil)
		checkQuestions(t, &r[1], map[int]int{1: 1})
	})
	t.Run("conflict", func(t *testing.T) {
		stdout, _, _ := p.run(t, s, nil, "--job", "conflict", "--model", "house", "--conflict", "--evid", "burglary=no,alarm=no,call=yes")
		r := results(t, stdout)
		if len(r) != 2 || r[0].Conflict != nil || !r[1].Zero || r[1].Conflict == nil || !r[1].Conflict.Smallest {
			t.Fatalf("%s", stdout)
		}
		said := ""
		for _, o := range r[1].Conflict.Observations {
			said += fmt.Sprint(o.Variable, "=", *o.Value, " ")
		}
		if said != "1=0 2=1 " {
			t.Errorf("contradict each other: %s", said)
		}
	})
	t.Run("for people", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		argv := append(p.argv[1:len(p.argv):len(p.argv)], "--nats", s.url, "--model", "house", "--evid", "alarm=no,call=yes", "--conflict")
		out, err := exec.CommandContext(ctx, p.argv[0], append(argv, text[2:]...)...).CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		low, _, _ := given(burglar([]float64{0.95, 0.05}, alarmed, called), nil)
		high, _, _ := given(burglar([]float64{0.85, 0.15}, alarmed, called), nil)
		for _, want := range []string{
			"  contradict each other  alarm=no call=yes\n", " nats about burglary\n",
			fmt.Sprintf("  P(burglary=yes) from %.6f to %.6f by 0.100000 at burglary=yes\n", low, high),
		} {
			if !strings.Contains(string(out), want) {
				t.Errorf("it does not say %q:\n%s", want, out)
			}
		}
	})
}

// checkQuestions compares a result about burglary with enumeration under the same observations.
func checkQuestions(t *testing.T, r *query.Result, at map[int]int) {
	t.Helper()
	near := func(what string, got, want float64) {
		if math.Abs(got-want) > 1e-12*max(1, math.Abs(want)) {
			t.Errorf("%v: %s is %v, enumeration says %v", at, what, got, want)
		}
	}
	w := burglar(burglary, alarmed, called)
	p, entropy, z := given(w, at)
	near("P", r.Sensitivity.P, p)
	near("the entropy", r.Information.Entropy, entropy)
	if len(r.Information.Candidates) != 2-len(at) || len(r.Sensitivity.Tornado) == 0 || len(r.Sensitivity.Tornado) > 3 {
		t.Errorf("%v: %+v, %+v", at, r.Information, r.Sensitivity)
	}
	for _, c := range r.Information.Candidates {
		left := 0.0
		for x := range 2 {
			seen := map[int]int{c.Variable: x}
			for v, value := range at {
				seen[v] = value
			}
			if p, h, part := given(w, seen); part > 0 && p > 0 && p < 1 {
				left += part / z * h
			}
		}
		near("the information", c.MutualInfo, entropy-left)
	}
	// Z and the part of it with a burglary are linear in every number: a step of 1 has their derivatives.
	tables := [][]float64{burglary, alarmed, called}
	for f := range tables {
		for k := range tables[f] {
			other := slices.Clone(tables)
			other[f] = slices.Clone(tables[f])
			other[f][k]++
			q, _, y := given(burglar(other[0], other[1], other[2]), at)
			near(fmt.Sprintf("the derivative by number %d of factor %d", k, f), r.Sensitivity.Derivatives.By[f][k], (q*y-p*z-p*(y-z))/z)
		}
	}
	for _, n := range r.Sensitivity.Tornado {
		ends := [2]float64{}
		for i, to := range []float64{n.Theta * 0.5, min(1, n.Theta*1.5)} {
			other := slices.Clone(tables)
			other[n.Factor] = slices.Clone(tables[n.Factor])
			other[n.Factor][n.Number], other[n.Factor][n.Number^1] = to, 1-to // rows are pairs
			ends[i], _, _ = given(burglar(other[0], other[1], other[2]), at)
		}
		near("the low end", n.Low, min(ends[0], ends[1]))
		near("the high end", n.High, max(ends[0], ends[1]))
	}
}

// The client in Node.js prefers a tenant's own names where its jobs are the tenant's.
func TestNodeExampleTenantNames(t *testing.T) {
	t.Parallel()
	s := serve(t, pipeline.Stages()...)
	p := nodeClient(t)
	nc, err := nats.Connect(s.url)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	for owner, weights := range map[string]string{"": "1 3", "acme": "1 4"} {
		data, digest, err := wire.EncodeGraph(&wire.Graph{Text: "MARKOV\n1\n2\n1\n1 0\n2\n" + weights + "\n"})
		if err != nil {
			t.Fatal(err)
		}
		for name, data := range map[string][]byte{digest: data, "coin": fmt.Appendf(nil, `{"versions":[{"digest":%q}]}`, digest)} {
			if _, err := s.bus.Conn.JS.Publish(t.Context(), message.GraphSubject(owner, name), data); err != nil {
				t.Fatal(err)
			}
		}
	}
	for job, want := range map[string]float64{"mine": 0.75, "acme.mine": 0.8} {
		stdout, stderr, code := p.run(t, s, nil, "--job", job, "--tenant", "acme", "--model", "coin", "--sensitivity", "0=1")
		if code != 0 {
			t.Fatalf("%s: exit code %d\n%s%s", job, code, stdout, stderr)
		}
		if got := results(t, stdout)[0].Sensitivity.P; math.Abs(got-want) > 1e-12 {
			t.Errorf("%s: %v, want %v", job, got, want)
		}
	}
}
