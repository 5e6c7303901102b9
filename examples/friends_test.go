// Friends and smokers: the committed files are the output of `btn generate friends`, and ln Z is a sum over the number of
// smokers, with 200 bits.

package examples

import (
	"bytes"
	"math"
	"math/big"
	"os"
	"testing"

	"github.com/basetensor/basetensor/internal/models/generate"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/modeljson"
	"github.com/basetensor/basetensor/pkg/uai"
)

// friendsPeople is the number of people in friends.json; friends-known.evid has observations of a fifth of them.
const (
	friendsPeople = 100
	friendsKnown  = 0.2
)

func TestFriendsFiles(t *testing.T) {
	o := generate.DefaultFriends(friendsPeople)
	m, err := o.Model()
	if err != nil {
		t.Fatal(err)
	}
	e, err := o.DrawEvidence(friendsKnown, 0)
	if err != nil {
		t.Fatal(err)
	}
	var model, known bytes.Buffer
	if err := modeljson.Encode(&model, m); err != nil {
		t.Fatal(err)
	}
	if err := uai.WriteEvidence(&known, e); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{"friends.json": model.Bytes(), "friends-known.evid": known.Bytes()} {
		got, err := os.ReadFile(name)
		if err != nil || !bytes.Equal(got, text) {
			t.Errorf("%s is not what btn generate friends writes: %v", name, err)
		}
	}
}

// friendsLog returns ln Z: of the people that are free, each a polynomial a + b z by smoking, the coefficient of z^k
// times the weight of all friendships among k smokers, from the formulas of the model.
func friendsLog(_ *factorgraph.Model, e factorgraph.Evidence) float64 {
	o := generate.DefaultFriends(friendsPeople)
	f := func(x float64) *big.Float { return new(big.Float).SetPrec(200).SetFloat64(x) }
	poly := []*big.Float{f(1)}
	for x := range friendsPeople {
		var weight [2]float64
		for s := range 2 {
			for c := range 2 {
				possible := true
				for _, h := range e.Hard {
					possible = possible && (h.Var != x || h.Value == s) && (h.Var != friendsPeople+x || h.Value == c)
				}
				if !possible {
					continue
				}
				ln := o.Smoking*float64(s) + o.Cancer*float64(c)
				if s == 1 && c == 0 {
					ln -= o.Causes
				}
				weight[s] += math.Exp(ln)
			}
		}
		next := make([]*big.Float, len(poly)+1)
		for k := range next {
			next[k] = f(0)
		}
		for k, p := range poly {
			next[k].Add(next[k], new(big.Float).Mul(p, f(weight[0])))
			next[k+1].Add(next[k+1], new(big.Float).Mul(p, f(weight[1])))
		}
		poly = next
	}

	odds := o.Mean / (friendsPeople - 1 - o.Mean)
	z := f(0)
	for k, p := range poly {
		mixed := k * (friendsPeople - k)
		for pair := range friendsPeople * (friendsPeople - 1) {
			if pair < mixed {
				p.Mul(p, f(1+odds*math.Exp(-o.Peers)))
			} else {
				p.Mul(p, f(1+odds))
			}
		}
		z.Add(z, p)
	}
	exponent := z.MantExp(z)
	mantissa, _ := z.Float64()
	return math.Log(mantissa) + float64(exponent)*math.Ln2
}
