package costs

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/tensor"
	"github.com/basetensor/basetensor/pkg/uai"
)

// mostWritten bounds the table that a factor of another form is written out as.
const mostWritten = 1 << 20

// mostDecimals is the number of decimals of a cost, fewer where the bound would have more than mostDigits digits: solvers count costs in
// units of the last decimal, in 64 bits.
const (
	mostDecimals = 9
	mostDigits   = 15
)

// WriteCFN writes a model as a CFN file, in plain JSON: entry p of a factor has the cost −ln p, to as many decimals as "mustbe" has. The
// bound is above the cost of every assignment that is not forbidden; an entry of 0 has a cost that reaches it whatever the other functions
// cost. Factors that are not tables are written as tables of at most 2^20 entries. Names that the format cannot hold are changed; Lost
// says so.
//
// A negative entry has no cost: fault.Unsupported.
func WriteCFN(to io.Writer, m *factorgraph.Model) error {
	if err := m.Validate(); err != nil {
		return fmt.Errorf("cfn: %w", err)
	}
	w := &written{Writer: bufio.NewWriterSize(to, 1<<16), m: m}
	if err := w.costs(); err != nil {
		return err
	}
	w.bound()
	fmt.Fprintf(w, "{\"problem\": {\"name\": \"model\", \"mustbe\": \"<%s\"},\n", strconv.FormatFloat(w.top, 'f', w.decimals, 64))
	w.variables()
	w.functions()
	return w.Flush()
}

// written is a network on its way into a file.
type written struct {
	*bufio.Writer
	m              *factorgraph.Model
	tables         []*tensor.Dense // of costs
	top, forbidden float64
	decimals       int
	names          []string // nil for none
}

// costs returns the tables of all factors.
func (w *written) costs() error {
	for j, f := range w.m.Factors {
		t, ok := f.Table.(*tensor.Dense)
		if !ok {
			var err error
			if t, err = tensor.ToDense(f.Table, mostWritten); err != nil {
				return fault.New(fault.Unsupported, "cfn: factor %d: the format holds tables only: %w", j, err)
			}
		}
		c := &tensor.Dense{Shape: t.Shape, Data: make([]float64, len(t.Data))}
		for i, p := range t.Data {
			if p < 0 {
				return fault.New(fault.Unsupported, "cfn: %w: factor %d: entry %d is %v, and has no cost", uai.ErrModel, j, i, p)
			}
			c.Data[i] = -math.Log(p)
		}
		w.tables = append(w.tables, c)
	}
	return nil
}

// bound chooses the bound, the cost of forbidden combinations and the number of decimals.
func (w *written) bound() {
	highest, negative := 0.0, 0.0
	for _, t := range w.tables {
		worst, least := math.Inf(-1), 0.0
		for _, c := range t.Data {
			if !math.IsInf(c, 1) {
				worst, least = max(worst, c), min(least, c)
			}
		}
		if negative += least; !math.IsInf(worst, -1) {
			highest += worst
		}
	}
	w.top = math.Ceil(highest) + 1
	w.forbidden = w.top + math.Ceil(-negative)
	digits := len(strconv.FormatFloat(max(math.Abs(w.top), w.forbidden), 'f', 0, 64))
	w.decimals = min(mostDecimals, max(1, mostDigits-digits))
}

// variables writes names and values.
func (w *written) variables() {
	var states [][]string
	w.names, states = legal(w.m)
	open, shut := "{", "}"
	if w.names == nil {
		open, shut = "[", "]"
	}
	fmt.Fprintf(w, "\"variables\": %s", open)
	for v, d := range w.m.Domains {
		w.WriteString([]string{"\n", ",\n"}[min(v, 1)])
		if w.names != nil {
			fmt.Fprintf(w, "  \"%s\": ", w.names[v])
		}
		if states[v] == nil {
			w.WriteString(strconv.Itoa(d))
		} else {
			fmt.Fprintf(w, "[\"%s\"]", strings.Join(states[v], "\", \""))
		}
	}
	fmt.Fprintf(w, "%s,\n", shut)
}

// functions writes the tables.
func (w *written) functions() {
	w.WriteString("\"functions\": {")
	for j, f := range w.m.Factors {
		fmt.Fprintf(w, "%s  \"f%d\": {\"scope\": [", []string{"\n", ",\n"}[min(j, 1)], j)
		for k, v := range f.Scope {
			w.WriteString([]string{"", ", "}[min(k, 1)])
			if w.names == nil {
				w.WriteString(strconv.Itoa(v))
			} else {
				fmt.Fprintf(w, "\"%s\"", w.names[v])
			}
		}
		w.WriteString("], \"costs\": [")
		for i, c := range w.tables[j].Data {
			w.WriteString([]string{"", ", "}[min(i, 1)])
			w.WriteString(w.cost(c))
		}
		w.WriteString("]}")
	}
	w.WriteString("}}\n")
}

// cost is the text of a cost.
func (w *written) cost(c float64) string {
	if math.IsInf(c, 1) {
		c = w.forbidden
	}
	text := strconv.FormatFloat(c, 'f', w.decimals, 64)
	if text = strings.TrimRight(strings.TrimRight(text, "0"), "."); text == "-0" || text == "" {
		return "0"
	}
	return text
}

// Lost lists the parts of a model that WriteCFN changes.
func Lost(m *factorgraph.Model) (list []string) {
	changed := 0
	names, states := legal(m)
	for v, d := range m.Domains {
		if names != nil && m.Names != nil && m.Names[v] != "" && names[v] != m.Names[v] {
			changed++
		}
		for x := range d {
			if states[v] != nil && m.States[v][x] != "" && states[v][x] != m.States[v][x] {
				changed++
			}
		}
	}
	if changed > 0 {
		list = append(list, fmt.Sprintf("names that were changed, since the format holds no blanks and no digit in front: %d", changed))
	}
	w := &written{m: m}
	if err := w.costs(); err != nil {
		return list
	}
	w.bound()
	for _, t := range w.tables {
		for _, c := range t.Data {
			back, err := strconv.ParseFloat(w.cost(c), 64)
			if err == nil && !math.IsInf(c, 0) && math.Abs(back-c) > 1e-13*max(1, math.Abs(c)) {
				return append(list, fmt.Sprintf("entries are costs of %d decimals, −ln of the entries", w.decimals))
			}
		}
	}
	return list
}

// legal returns names that the format holds: nil for none at all, and for values that are called by their positions.
func legal(m *factorgraph.Model) (names []string, states [][]string) {
	if strings.Join(m.Names, "") != "" {
		names = distinct(m.Names, "x_")
	}
	states = make([][]string, len(m.Domains))
	for v := range states {
		if m.States != nil && !positions(m.States[v]) {
			states[v] = distinct(m.States[v], "v_")
		}
	}
	return names, states
}

// positions reports whether values have no names beside their positions.
func positions(states []string) bool {
	for x, name := range states {
		if name != "" && name != strconv.Itoa(x) {
			return false
		}
	}
	return true
}

// distinct are names with characters that the format does not have replaced, all of them distinct; for none it is the prefix and the
// position.
func distinct(names []string, prefix string) []string {
	list, used := make([]string, len(names)), map[string]bool{}
	for i, name := range names {
		if list[i] = name; name == "" {
			list[i] = prefix + strconv.Itoa(i)
		}
		if word := word(list[i], prefix); word == list[i] && !used[word] {
			used[word] = true
		} else {
			list[i] = ""
		}
	}
	for i, name := range names {
		if list[i] != "" {
			continue
		}
		base := word(name, prefix)
		for n := 2; list[i] == "" || used[list[i]]; n++ {
			list[i] = fmt.Sprintf("%s_%d", base, n)
			if n == 2 && !used[base] {
				list[i] = base
			}
		}
		used[list[i]] = true
	}
	return list
}

// word is a name with _ for characters that names do not have, behind the prefix if it begins as numbers do. It is the name itself where
// the format holds that.
func word(name, prefix string) string {
	name = strings.Map(func(r rune) rune {
		if r <= ' ' || r == 0x7f || strings.ContainsRune("/#[]{}:,\"\\", r) {
			return '_'
		}
		return r
	}, name)
	if numeric(name) || strings.IndexByte("<>", name[0]) >= 0 {
		return prefix + name
	}
	return name
}
