// Round trips, the schema, and one case per refusal with its text.

package modeljson

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/basetensor/basetensor/internal/testing/modeltest"
	"github.com/basetensor/basetensor/internal/testing/oracle"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
)

func schema(t testing.TB) *jsonschema.Schema {
	t.Helper()
	s, err := jsonschema.NewCompiler().Compile("../../schemas/model.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func validates(s *jsonschema.Schema, text string) error {
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		return err
	}
	return s.Validate(v)
}

func TestEncodeDecodeIsTheIdentity(t *testing.T) {
	s := schema(t)
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 4))
		m := modeltest.Small(rng, modeltest.SmallOptions{
			MinDomain: 1,
			MaxDomain: 4,
			MaxArity:  4,
			Zeros:     0.1,
			Negative:  seed%2 == 1,
			Constant:  true,
		})
		m.Bayes = seed%2 == 0
		if seed%3 == 0 {
			m.Names = make([]string, len(m.Domains))
			for i := range m.Names {
				m.Names[i] = fmt.Sprintf("x%d \"é\"", i)
			}
		}
		if seed%4 == 0 && len(m.Domains) > 0 {
			m.States = make([][]string, len(m.Domains))
			for i, d := range m.Domains {
				for x := 0; i%3 != 1 && x < d; x++ {
					m.States[i] = append(m.States[i], fmt.Sprintf("<%d & ü", x))
				}
			}
		}
		normalise(m)
		var first, second bytes.Buffer
		if err := errors.Join(Encode(&first, m), Encode(&second, m)); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(first.Bytes(), second.Bytes()) {
			t.Fatalf("seed %d: two encodings differ", seed)
		}
		if err := validates(s, first.String()); err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, first.String())
		}
		back, err := Decode(iotest.HalfReader(&first), Limits{})
		if err == nil {
			back.Lines = nil
		}
		if err != nil || !reflect.DeepEqual(back, m) {
			t.Fatalf("seed %d: %v: wrote %s", seed, err, second.String())
		}
	}
}

// normalise gives values the form in which Encode writes them: mantissas in [1, 2), and absent R as nil.
func normalise(m *factorgraph.Model) {
	for _, f := range m.Factors {
		t, ok := f.Table.(*tensor.SymmetryCP)
		if !ok {
			continue
		}
		for i := range t.Terms {
			for k, e := range t.Terms[i].S.Exp {
				n := scaled.Make(t.Terms[i].S.Mant[k], e)
				t.Terms[i].S.Mant[k], t.Terms[i].S.Exp[k] = n.Mant, n.Exp
			}
		}
	}
}

// One example of everything; the constructors and the file must mean the same function.
const everything = `{
  "basetensor_model": 1,
  "description": "all forms",
  "variables": [{"name": "a", "domain": 2}, {"domain": 2}, {"name": "c", "states": ["low", "mid", "high"]}],
  "factors": [
    {"scope": [], "dense": {"values": [2.5]}},
    {"scope": [2, 0], "dense": {"values": [1, 2, 3, 4, 5, 6]}},
    {"scope": [0, 1], "cp": {"weights": [2, 3], "vectors": [null, [[1, 5], [7, 11]]]}},
    {"scope": [0, 1, 2], "symmetric": {"levels": "two", "values": [1, 0, 2, 3]}},
    {"scope": [1, 0], "symmetric": {"levels": "identity", "log_values": [0, null, 5000.5]}},
    {"scope": [0, 2], "symmetric": {"levels": {"count": 3, "of": [[0, 1], [0, 1, 2]]}, "values": [1, 2, 3, 4, 5, 6]}},
    {"scope": [0, 2], "symmetry_cp": {"levels": "two", "terms": [
      {"alpha": 1, "values": [1, 2, 3]},
      {"alpha": -0.5, "scaled": {"mantissas": [1, -1.5, 0], "exponents": [-2000, 3, 0]}, "vectors": [null, [1, 2, 3]]}]}},
    {"scope": [2, 1], "low_rank": {"weight": 0.5, "vectors": [[0, 1, -2], [3, -1]]}}
  ]
}`

func TestDecodeMeaning(t *testing.T) {
	if err := validates(schema(t), everything); err != nil {
		t.Fatal(err)
	}
	m, err := Decode(strings.NewReader(everything), Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(m.Names, []string{"a", "", "c"}) || !reflect.DeepEqual(m.Domains, []int{2, 2, 3}) {
		t.Errorf("names %q, domains %v", m.Names, m.Domains)
	}
	if !reflect.DeepEqual(m.States, [][]string{nil, nil, {"low", "mid", "high"}}) {
		t.Errorf("states %q", m.States)
	}
	for _, c := range []struct {
		factor int
		x      []int
		want   float64
	}{
		{0, nil, 2.5},
		{1, []int{2, 0}, 5},
		{2, []int{1, 0}, 21},
		{3, []int{1, 0, 2}, 2},
		{5, []int{1, 2}, 4},      // one leg at level 1 (of two that can be), one at level 2 (of one): index 1·2 + 1
		{6, []int{0, 2}, 2 + 18}, // −0.5 · (−1.5·8) · 3
		{6, []int{1, 2}, 3},
	} {
		if got, _ := oracle.Entry(m.Factors[c.factor].Table, c.x).Float64(); got != c.want {
			t.Errorf("factor %d at %v is %v, want %v", c.factor, c.x, got, c.want)
		}
	}
	if got := oracle.Ln(oracle.Entry(m.Factors[7].Table, []int{2, 1})); math.Abs(got-0.25*9) > 1e-14 {
		t.Errorf("ln of the factor of low rank is %v", got)
	}
	if got := oracle.Ln(oracle.Entry(m.Factors[4].Table, []int{1, 1})); math.Abs(got-5000.5) > 1e-11 {
		t.Errorf("ln of the value given as log_values 5000.5 is %v", got)
	}
}

// placed puts the places of the factors and variables of a text of one line into an error.
func placed(text string) *strings.Replacer {
	list := []string{"invalid model: variable 0:", "invalid model: variable 0:"} // by position alone
	for key, item := range map[string]string{"factors": "factor", "variables": "variable"} {
		_, items, found := strings.Cut(text, `"`+key+`":[`)
		if !found {
			continue
		}
		first := len(text) - len(items) + 1
		second := first + 1 + strings.Index(items, "]}},{") + len("]}}")
		for k, column := range []int{first, second} {
			list = append(list, fmt.Sprintf("%s %d:", item, k), fmt.Sprintf("%s %d (line 1, column %d):", item, k, column))
		}
	}
	return strings.NewReplacer(list...)
}

func TestDecodeRefuses(t *testing.T) {
	with := func(variables, factors string) string {
		return `{"basetensor_model":1,"variables":[` + variables + `],"factors":[` + factors + `]}`
	}
	two := `{"domain":2},{"domain":2}`
	factor := func(f string) string { return with(two, f) }
	many := strings.Repeat(`{"domain":2},`, 1299) + `{"domain":2}` // a factor of low rank over them has 2^22.2 numbers
	scope := "0"
	for i := 1; i < 1300; i++ {
		scope += "," + strconv.Itoa(i)
	}
	wide := `{"scope":[` + scope + `],"low_rank":{"weight":1,"vectors":[` + strings.Repeat("[0,1],", 1299) + `[0,1]]}}`
	s := schema(t)
	for _, c := range []struct {
		text   string
		schema bool // the schema sees it as well
		is     error
		want   string
	}{
		{``, true, ErrSyntax, "not a model file: line 1, column 1: unexpected EOF"},
		{`{"basetensor_model":1`, true, ErrSyntax, "not a model file: line 1, column 22: unexpected EOF"},
		{`[]`, true, ErrSyntax, "not a model file: line 1, column 1: a list, where an object is needed"},
		{with(two, "") + ` {}`, true, ErrModel, "invalid model: line 1, column 77: a second model begins here, and a file has one"},
		{`{"variables":[],"factors":[]}`, true, ErrSyntax, "not a model file: the field basetensor_model is missing"},
		{
			`{"basetensor_model":2,"variables":[],"factors":[]}`, true, ErrVersion,
			"version of the format: 2, this program reads 1",
		},
		{`{"basetensor_model":1,"factors":[]}`, true, ErrSyntax, "not a model file: the field variables is missing"},
		{`{"basetensor_model":1,"variables":[]}`, true, ErrSyntax, "not a model file: the field factors is missing"},
		{`{"basetensor_model":1,"variables":[],"factors":null}`, true, ErrSyntax,
			"not a model file: line 1, column 51: null, which only lists of vectors and of log_values may hold"},
		{
			`{"basetensor_model":1,"Variables":[],"factors":[]}`, true, ErrSyntax,
			`not a model file: line 1, column 23: unknown field "Variables": there are "basetensor_model", "description", ` +
				`"bayes", "variables" and "factors"`,
		},
		{`{"basetensor_model":1,"variables":[],"factors":[],"factors":[]}`, false, ErrSyntax,
			`not a model file: line 1, column 51: field "factors" twice in one object`},
		{with(`{"domain":2,"alpha":1}`, ""), true, ErrSyntax,
			`not a model file: line 1, column 48: unknown field "alpha": there are "name", "domain", "states", "display" and "place"`},
		{with(`{"domain":0}`, ""), true, ErrModel, "variable 0: invalid model: domain of size 0, at least 1 is needed"},
		{
			with(`{"domain":1000000000}`, ""), false, ErrLimit,
			"variable 0: over the limit: domain of size 1000000000, at most 1048576 is read",
		},
		{with(`{"name":"a"}`, ""), true, ErrModel, "variable \"a\" (line 1, column 36): invalid model: neither a domain nor states"},
		{with(`{"states":[]}`, ""), true, ErrModel, "variable 0: invalid model: domain of size 0, at least 1 is needed"},
		{with(`{"states":["x","y"],"domain":3}`, ""), false, ErrModel, "variable 0: invalid model: 2 states, the domain is of size 3"},
		{with(`{"states":["x","x"]}`, ""), false, ErrModel,
			`variable 0 (line 1, column 36): invalid model: variable 0: values 0 and 1 are both called "x"`},
		{with(`{"name":"a","domain":2},{"name":"a","domain":2}`, ""), false, ErrModel,
			`variable 1 (line 1, column 60): invalid model: variables 0 and 1 are both called "a", first at line 1, column 36`},
		{with(`{"states":["x",null]}`, ""), true, ErrSyntax,
			"not a model file: line 1, column 54: null, which only lists of vectors and of log_values may hold"},
		{with(`{"domain":1.5}`, ""), true, ErrSyntax,
			"not a model file: line 1, column 48: field variables.domain: 1.5, where an integer in range is needed"},
		{factor(`{"dense":{"values":[1]}}`), true, ErrSyntax, "factor 0: not a model file: the field scope is missing"},
		{factor(`{"scope":[2],"dense":{"values":[1]}}`), false, ErrModel,
			"factor 0: invalid model: scope position 0: variable 2, the model has 2"},
		{
			factor(`{"scope":[0,0],"dense":{"values":[1,1,1,1]}}`), true, ErrModel,
			"invalid model: factor 0 (line 1): variable 0 is twice in the scope",
		},
		{
			factor(`{"scope":[0]}`), true, ErrSyntax,
			"factor 0: not a model file: 0 of the forms dense, cp, symmetric, symmetry_cp, low_rank, one is needed",
		},
		{factor(`{"scope":[0],"dense":{"values":[1,1]},"cp":{"weights":[],"vectors":[null]}}`), true, ErrSyntax,
			"factor 0: not a model file: 2 of the forms dense, cp, symmetric, symmetry_cp, low_rank, one is needed"},
		{factor(`{"scope":[0],"dense":{}}`), true, ErrSyntax, "factor 0: not a model file: the field values is missing"},
		{factor(`{"scope":[0],"dense":{"values":[1,null]}}`), true, ErrSyntax,
			"not a model file: line 1, column 111: null, which only lists of vectors and of log_values may hold"},
		{factor(`{"scope":[0],"dense":{"values":[1,1e999]}}`), false, ErrModel,
			"invalid model: line 1, column 108: 1e999 is beyond the range of float64: the largest is 1.8e+308"},
		{factor(`{"scope":[0],"dense":{"values":[1,1e-400]}}`), false, ErrModel,
			"invalid model: line 1, column 108: 1e-400 is beyond the range of float64: the smallest with all digits is 2.23e-308"},
		{factor(`{"scope":[0],"dense":{"values":[1,0.` + strings.Repeat("0", 250) + `1e-99]}}`), false, ErrModel,
			"invalid model: line 1, column 108: …"},
		{factor(`{"scope":[0],"dense":{"values":[1]}}`), false, ErrModel, "factor 0: invalid model: values are 1 number, needed are 2 (2 of " +
			"variable 0), in one list, in rows over the last variable, or nested in the scope's order"},
		{
			factor(`{"scope":[0],"cp":{"weights":[1]}}`), true, ErrSyntax,
			"factor 0: not a model file: a cp factor needs weights and vectors",
		},
		{factor(`{"scope":[0],"low_rank":{"vectors":[[0,1]]}}`), true, ErrSyntax,
			"factor 0: not a model file: a low_rank factor needs a weight and vectors"},
		{factor(`{"scope":[0],"low_rank":{"weight":1,"vectors":[[0]]}}`), false, ErrModel,
			"factor 0: invalid model: scope position 0: a vector of 1 entries, not the variable's domain"},
		{factor(`{"scope":[0,1],"low_rank":{"weight":1,"vectors":[[0,1]]}}`), false, ErrModel,
			"factor 0: invalid model: 1 vectors for 2 variables"},
		{factor(`{"scope":[0],"low_rank":{"weight":-1,"vectors":[[0,1]]}}`), true, ErrModel,
			"factor 0: invalid model: tensor: a low-rank factor over 1 variables with weight -1, 0 or above is needed"},
		{factor(`{"scope":[0],"low_rank":{"weight":1,"vectors":[[0,1e9]]}}`), false, ErrLimit,
			"factor 0: over the limit: tensor: a low-rank factor of 1.39e+09 terms over 2 values, 8388608 numbers at most"},
		{factor(`{"scope":[0],"low_rank":{"weight":1,"vectors":[[0,2e6]]}}`), false, ErrModel,
			"factor 0: invalid model: tensor: position 0 of a low-rank factor has numbers beyond float64"},
		{with(many, wide+","+wide), false,
			ErrLimit, "factor 1: over the limit: factors of low rank have more than 8388608 numbers together"},
		{factor(`{"scope":[0],"cp":{"weights":[1],"vectors":[[[1]]]}}`), false, ErrModel,
			"factor 0: invalid model: scope position 0: vector 0 has 1 entries, not the variable's domain"},
		{
			factor(`{"scope":[0],"cp":{"weights":[1],"vectors":[[[1,2]],null]}}`), false, ErrModel,
			"invalid model: factor 0 (line 1): …",
		},
		{factor(`{"scope":[0],"cp":{"weights":[1],"vectors":[[null]]}}`), true, ErrSyntax,
			"not a model file: line 1, column 122: null, which only lists of vectors and of log_values may hold"},
		{factor(`{"scope":[0],"symmetric":{"values":[1,1]}}`), true, ErrSyntax,
			`factor 0: not a model file: levels are "", known are "two", "identity" or an object with count and of`},
		{factor(`{"scope":[0],"symmetric":{"levels":"two"}}`), true, ErrSyntax,
			"factor 0: not a model file: 0 of the fields values, log_values, scaled, one is needed"},
		{factor(`{"scope":[0],"symmetric":{"levels":"two","values":[1,2],"log_values":[0,0]}}`), true, ErrSyntax,
			"factor 0: not a model file: 2 of the fields values, log_values, scaled, one is needed"},
		{factor(`{"scope":[0],"symmetric":{"levels":"two","scaled":{"mantissas":[1,1]}}}`), true, ErrSyntax,
			"factor 0: not a model file: scaled needs mantissas and exponents"},
		{factor(`{"scope":[0],"symmetric":{"levels":"two","log_values":[0,1e300]}}`), false, ErrModel,
			"factor 0: invalid model: log_values: 1e+300 at position 1, at most ±6.8719476736e+10"},
		{factor(`{"scope":[0],"symmetric":{"levels":"two","values":[1]}}`), false, ErrModel, "invalid model: factor 0 (line 1): …"},
		{factor(`{"scope":[0],"symmetric":{"levels":{"count":300,"of":[[0,1]]},"values":[1]}}`), true, ErrModel,
			"factor 0: invalid model: 300 levels, 1 to 255 are possible"},
		{factor(`{"scope":[0],"symmetric":{"levels":{"count":2,"of":[[0,2]]},"values":[1]}}`), false, ErrModel,
			"factor 0: invalid model: scope position 0: value 1 at level 2 of 2"},
		{factor(`{"scope":[0],"symmetric":{"levels":{"count":2,"of":[[0,1]],"d":1},"values":[1]}}`), true, ErrSyntax,
			`not a model file: line 1, column 133: unknown field "d": there are "count" and "of"`},
		{
			factor(`{"scope":[0],"symmetry_cp":{"levels":"two"}}`), true, ErrSyntax,
			"factor 0: not a model file: the field terms is missing",
		},
		{factor(`{"scope":[0],"symmetry_cp":{"levels":"two","terms":[{"alpha":1}]}}`), true, ErrSyntax,
			"factor 0: term 0: not a model file: 0 of the fields values, log_values, scaled, one is needed"},
		{strings.Repeat("[", 40), true, ErrSyntax, "not a model file: line 1, column 16: nested more than 16 deep"},
	} {
		m, err := Decode(strings.NewReader(c.text), Limits{})
		head, open := strings.CutSuffix("modeljson: "+placed(c.text).Replace(c.want), "…")
		if m != nil || err == nil || err.Error() != head && !(open && strings.HasPrefix(err.Error(), head)) {
			t.Errorf("%s:\n got %v\nwant %s", c.text, err, head)
			continue
		}
		code := fault.BadInput
		if c.is == ErrVersion {
			code = fault.Unsupported
		}
		if !errors.Is(err, c.is) || fault.CodeOf(err) != code {
			t.Errorf("%q: code %s, want %s and %q", err, fault.CodeOf(err), code, c.is)
		}
		if refused := validates(s, c.text) != nil; refused != c.schema {
			t.Errorf("%s: refused by the schema: %v, want %v", c.text, refused, c.schema)
		}
	}
}

// A short file must not make the reader allocate levels by the gigabyte.
func TestDecodeBoundsLevels(t *testing.T) {
	var variables, scope []string
	for i := range 100 {
		variables = append(variables, fmt.Sprintf(`{"domain":%d}`, 1<<20-i))
		scope = append(scope, fmt.Sprint(i))
	}
	text := `{"basetensor_model":1,"variables":[` + strings.Join(variables, ",") + `],"factors":[{"scope":[` +
		strings.Join(scope, ",") + `],"symmetric":{"levels":"two","values":[1]}}]}`
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := Decode(strings.NewReader(text), Limits{})
	runtime.ReadMemStats(&after)
	if !errors.Is(err, ErrLimit) || after.TotalAlloc-before.TotalAlloc > 1<<20 {
		t.Errorf("%d bytes allocated, %v", after.TotalAlloc-before.TotalAlloc, err)
	}
	_, err = Decode(strings.NewReader(everything), Limits{Bytes: 100})
	if want := "modeljson: over the limit: more than 100 bytes"; fmt.Sprint(err) != want {
		t.Errorf("got %v", err)
	}
	broken := errors.New("broken pipe")
	if _, err := Decode(iotest.ErrReader(broken), Limits{}); !errors.Is(err, broken) ||
		fault.CodeOf(err) == fault.BadInput {
		t.Errorf("got %v", err)
	}
}

func TestEncodeRefusesWhatIsNotAModel(t *testing.T) {
	var b bytes.Buffer
	err := Encode(&b, &factorgraph.Model{Domains: []int{0}})
	if want := "modeljson: invalid model: variable 0: domain of size 0, at least 1 is needed"; fmt.Sprint(err) != want || b.Len() > 0 {
		t.Errorf("got %v and %d bytes", err, b.Len())
	}
}

func FuzzDecode(f *testing.F) {
	for _, seed := range []string{everything, "", "{}", "[]", `{"basetensor_model":1,"variables":[],"factors":[]}`,
		`{"basetensor_model":1,"variables":[{"domain":1}],"factors":[{"scope":[0],"cp":{"weights":[],"vectors":[[]]}}]}`,
		`{"basetensor_model":1,"variables":[{"domain":3}],"factors":[{"scope":[0],
		"symmetric":{"levels":"identity","log_values":[null,-1,1e10]}}]}`} {
		f.Add([]byte(seed))
	}
	s := schema(f)
	limits := Limits{Bytes: 1 << 14, Domain: 1 << 10, Levels: 1 << 14}
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := Decode(bytes.NewReader(data), limits)
		if err != nil {
			if c := fault.CodeOf(err); c != fault.BadInput && c != fault.Unsupported {
				t.Fatal(err)
			}
			return
		}
		if err := validates(s, string(data)); err != nil {
			t.Fatalf("the reader accepts what the schema refuses: %v", err)
		}
		var first, second bytes.Buffer
		if err := Encode(&first, m); err != nil {
			t.Fatal(err)
		}
		back, err := Decode(bytes.NewReader(first.Bytes()), Limits{})
		if err != nil {
			t.Fatalf("%v in %s", err, first.String())
		}
		if err := Encode(&second, back); err != nil || !bytes.Equal(first.Bytes(), second.Bytes()) {
			t.Fatalf("%v: %s became %s", err, first.String(), second.String())
		}
	})
}

// A short document cannot declare more values than its bytes pay for.
func TestValuesFollowTheBytes(t *testing.T) {
	variables := strings.Repeat(`{"domain":1048576},`, 20)
	text := `{"basetensor_model":1,"variables":[` + variables[:len(variables)-1] + `],"factors":[]}`
	if _, err := Decode(strings.NewReader(text), Limits{}); !errors.Is(err, ErrLimit) || !strings.Contains(err.Error(), "20971520 values") {
		t.Error(err)
	}
}
