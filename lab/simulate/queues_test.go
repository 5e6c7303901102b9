package simulate

import (
	"math"
	"math/rand/v2"
	"testing"
)

// queue runs n customers through stations in tandem, after a tenth of them that are not counted, and
// returns the mean time that they spent in each. Arrivals are Poisson with rate lambda.
func queue(
	t *testing.T, n int, lambda float64, seed uint64, stations []int,
	service func(r *rand.Rand, station int) float64,
) (sojourn []float64, utilisation []float64) {
	t.Helper()
	e, r := &engine{}, rand.New(rand.NewPCG(seed, 1))
	list := make([]*resource, len(stations))
	for i, c := range stations {
		list[i] = &resource{e: e, places: c}
	}
	sojourn = make([]float64, len(stations))
	begun, ended := 0, 0
	var visit func(customer, station int)
	visit = func(customer, station int) {
		if station == len(list) {
			ended++
			return
		}
		came := e.now
		list[station].use(service(r, station), func() {
			if customer >= n/10 {
				sojourn[station] += (e.now - came) / float64(n-n/10)
			}
			visit(customer, station+1)
		})
	}
	var arrive func()
	arrive = func() {
		if begun == n/10 {
			for _, s := range list {
				s.restart()
			}
		}
		visit(begun, 0)
		if begun++; begun < n {
			e.after(r.ExpFloat64()/lambda, arrive)
		}
	}
	e.after(0, arrive)
	e.run(func() bool { return ended < n })
	for i, s := range list {
		s.tally()
		over := e.now - s.begun
		utilisation = append(utilisation, s.busy/over/float64(s.places))
		// Little's law holds for every path whose begin and end are empty, and nearly for this one.
		in, rate := (s.busy+s.queue)/over, float64(n-n/10)/over
		if math.Abs(in-rate*sojourn[i]) > 0.02*in {
			t.Errorf("station %d: L = %v, λW = %v", i, in, rate*sojourn[i])
		}
	}
	return sojourn, utilisation
}

func exponential(mean float64) func(*rand.Rand, int) float64 {
	return func(r *rand.Rand, _ int) float64 { return mean * r.ExpFloat64() }
}

func near(t *testing.T, what string, got, want, relative float64) {
	t.Helper()
	if !(math.Abs(got-want) <= relative*want) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// erlangC is the probability of having to wait in M/M/c with load a = λ/μ.
func erlangC(c int, a float64) float64 {
	term, sum := 1.0, 0.0
	for k := range c {
		sum += term
		term *= a / float64(k+1)
	}
	last := term * float64(c) / (float64(c) - a)
	return last / (sum + last)
}

// sampled is the tolerance of means over 60,000 customers at the utilisations here: some four
// standard errors.
const sampled = 0.05

func TestMM1(t *testing.T) {
	for _, rho := range []float64{0.3, 0.7, 0.85} {
		w, u := queue(t, 60_000, rho, 1, []int{1}, exponential(1))
		near(t, "W of M/M/1", w[0], 1/(1-rho), sampled*2)
		near(t, "utilisation of M/M/1", u[0], rho, sampled)
	}
}

func TestMD1(t *testing.T) {
	for _, rho := range []float64{0.3, 0.7, 0.85} {
		w, _ := queue(t, 60_000, rho, 2, []int{1}, func(*rand.Rand, int) float64 { return 1 })
		near(t, "W of M/D/1", w[0], 1+rho/(2*(1-rho)), sampled) // Pollaczek–Khinchine
	}
}

func TestMMc(t *testing.T) {
	for _, c := range []int{2, 8, 50} {
		rho := 0.85
		a := rho * float64(c)
		w, u := queue(t, 60_000, a, 3, []int{c}, exponential(1))
		near(t, "W of M/M/c", w[0], 1+erlangC(c, a)/(float64(c)-a), sampled)
		near(t, "utilisation of M/M/c", u[0], rho, sampled)
	}
}

// Jackson: in tandem every queue is as if it were alone (Burke: departures of M/M/c are Poisson).
func TestTandem(t *testing.T) {
	means := []float64{1, 1.4, 0.6}
	w, _ := queue(t, 60_000, 0.6, 4, []int{1, 2, 1}, func(r *rand.Rand, s int) float64 {
		return means[s] * r.ExpFloat64()
	})
	near(t, "first", w[0], 1/(1-0.6), sampled)
	near(t, "second", w[1], 1.4*(1+erlangC(2, 0.84)/(2-0.84)), sampled)
	near(t, "third", w[2], 0.6/(1-0.36), sampled)
}
