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
// cost. Factors that are not tables are written as tables of at most 2^20 entries. Names that the format cannot hold are changed; Losses
// says so.
//
// A negative entry has no cost: fault.Unsupported.
func WriteCFN(to io.Writer, m *factorgraph.Model) error {
	if err := m.Validate(); err != nil {
		return fmt.Errorf("cfn: %w", err)
	}
	w := &written{Writer: bufio.NewWriterSize(to, 1<<16), m: m}
	if err := w.computeTables(); err != nil {
		return err
	}
	w.chooseBound()
	fmt.Fprintf(w, "{\"problem\": {\"name\": \"model\", \"mustbe\": \"<%s\"},\n", strconv.FormatFloat(w.top, 'f', w.decimals, 64))
	w.writeVariables()
	w.writeFunctions()
	return w.Flush()
}

// written is a network on its way into a file.
type written struct {
	*bufio.Writer
	m         *factorgraph.Model
	tables    []*tensor.Dense // the costs −ln p of each factor; +∞ for an entry of 0
	top       float64         // the bound of the file, above the cost of every assignment that is not forbidden
	forbidden float64         // the cost that is written for +∞: it reaches the bound whatever the other functions cost
	decimals  int             // of written costs
	names     []string        // as they are written; nil: variables are called by their positions
}

// computeTables sets the table of costs −ln p of every factor. A negative entry, and a factor that is no table of at
// most 2^20 entries, is an error.
func (w *written) computeTables() error {
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
			c.Data[i] = -math.Log(p) // +Inf for 0
		}
		w.tables = append(w.tables, c)
	}
	return nil
}

// chooseBound sets the bound (top), the cost of forbidden combinations and the number of decimals. The bound is above the cost of every
// assignment that is not forbidden. The cost of a forbidden combination reaches the bound even beside the least costs of all other
// functions. With decimals, the bound has at most 15 digits.
func (w *written) chooseBound() {
	highest, lowest := 0.0, 0.0 // every assignment that is not forbidden costs at most highest and at least lowest
	for _, t := range w.tables {
		highestEntry, lowestEntry := math.Inf(-1), 0.0
		for _, c := range t.Data {
			if !math.IsInf(c, 1) {
				highestEntry, lowestEntry = max(highestEntry, c), min(lowestEntry, c)
			}
		}
		if lowest += lowestEntry; !math.IsInf(highestEntry, -1) {
			highest += highestEntry
		}
	}
	w.top = math.Ceil(highest) + 1 // above every cost
	w.forbidden = w.top + math.Ceil(-lowest)
	digits := len(strconv.FormatFloat(max(math.Abs(w.top), w.forbidden), 'f', 0, 64))
	w.decimals = min(mostDecimals, max(1, mostDigits-digits))
}

// writeVariables writes the names of all variables, if they have any, and of their values, or the number of values.
func (w *written) writeVariables() {
	var states [][]string
	w.names, states = legalNames(w.m)
	open, shut := "{", "}" // an object by name
	if w.names == nil {
		open, shut = "[", "]" // a list
	}
	fmt.Fprintf(w, "\"variables\": %s", open)
	for v, d := range w.m.Domains {
		w.WriteString(separator(v, ",") + "\n")
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

// writeFunctions writes the scope and the costs of each function.
func (w *written) writeFunctions() {
	w.WriteString("\"functions\": {")
	for j, f := range w.m.Factors {
		fmt.Fprintf(w, "%s\n  \"f%d\": {\"scope\": [", separator(j, ","), j)
		for k, v := range f.Scope {
			w.WriteString(separator(k, ", "))
			if w.names == nil {
				w.WriteString(strconv.Itoa(v))
			} else {
				fmt.Fprintf(w, "\"%s\"", w.names[v])
			}
		}
		w.WriteString("], \"costs\": [")
		for i, c := range w.tables[j].Data {
			w.WriteString(separator(i, ", "))
			w.WriteString(w.costText(c))
		}
		w.WriteString("]}")
	}
	w.WriteString("}}\n")
}

// separator returns the text before item i of a list: comma, but nothing before the first item.
func separator(i int, comma string) string {
	if i == 0 {
		return ""
	}
	return comma
}

// costText returns a cost as decimal text without trailing zeros; +∞ is the cost of forbidden combinations.
func (w *written) costText(c float64) string {
	if math.IsInf(c, 1) {
		c = w.forbidden
	}
	text := strconv.FormatFloat(c, 'f', w.decimals, 64)
	if text = strings.TrimRight(strings.TrimRight(text, "0"), "."); text == "-0" || text == "" {
		return "0"
	}
	return text
}

// Losses describes, for people, what WriteCFN changes in a model: names that the format cannot hold, and digits of
// entries.
func Losses(m *factorgraph.Model) (list []string) {
	// names
	changed := 0
	names, states := legalNames(m)
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

	// digits
	w := &written{m: m}
	if err := w.computeTables(); err != nil { // WriteCFN will return it
		return list
	}
	w.chooseBound()
	for _, t := range w.tables {
		for _, c := range t.Data {
			back, err := strconv.ParseFloat(w.costText(c), 64)
			if err == nil && !math.IsInf(c, 0) && math.Abs(back-c) > 1e-13*max(1, math.Abs(c)) { // beyond rounding
				return append(list, fmt.Sprintf("entries are costs of %d decimals, −ln of the entries", w.decimals))
			}
		}
	}
	return list
}

// legalNames returns the names of variables and values as the format can hold them. names is nil if no variable has a
// name, and states[v] is nil if the values of variable v are called by their positions.
func legalNames(m *factorgraph.Model) (names []string, states [][]string) {
	if strings.Join(m.Names, "") != "" {
		names = distinctWords(m.Names, "x_")
	}
	states = make([][]string, len(m.Domains))
	for v := range states {
		if m.States != nil && !isPositions(m.States[v]) {
			states[v] = distinctWords(m.States[v], "v_")
		}
	}
	return names, states
}

// isPositions reports whether every value is called by its position, or has no name.
func isPositions(states []string) bool {
	for x, name := range states {
		if name != "" && name != strconv.Itoa(x) {
			return false
		}
	}
	return true
}

// distinctWords returns the names made legal and distinct: characters that the format does not have are replaced, and
// an empty name becomes the prefix and its position.
func distinctWords(names []string, prefix string) []string {
	list, used := make([]string, len(names)), map[string]bool{}

	// names that can stay as they are
	for i, name := range names {
		candidate := name
		if name == "" {
			candidate = prefix + strconv.Itoa(i)
		}
		if legalWord(candidate, prefix) == candidate && !used[candidate] {
			list[i], used[candidate] = candidate, true
		}
	}

	// the others, with a number behind them if they are used already: name, name_2, name_3, …
	for i, name := range names {
		if list[i] != "" {
			continue
		}
		base := legalWord(name, prefix)
		candidate := base
		for n := 2; used[candidate]; n++ {
			candidate = fmt.Sprintf("%s_%d", base, n)
		}
		list[i], used[candidate] = candidate, true
	}
	return list
}

// legalWord returns the name with _ in place of characters that the format does not have, and behind the prefix if it
// begins as numbers do. It returns a legal name unchanged.
func legalWord(name, prefix string) string {
	name = strings.Map(func(r rune) rune {
		isControl := r <= ' ' || r == 0x7f
		if isControl || strings.ContainsRune("/#[]{}:,\"\\", r) {
			return '_'
		}
		return r
	}, name)
	if looksNumeric(name) || strings.IndexByte("<>", name[0]) >= 0 { // < and > begin bounds
		return prefix + name
	}
	return name
}
