// Weighted formulas, and their counts.

package bench

import (
	"bufio"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// countsFile has the published counts of the formulas beside it: a head, then NAME,LOG10_Z.
const countsFile = "counts.csv"

// unknownCount stands where nobody knew the count.
const unknownCount = "-1"

// countTolerance of log10 Z is half a unit of the last decimal that was published: eight of them, or fewer.
func countTolerance(text string) float64 {
	_, decimals, _ := strings.Cut(text, ".")
	return math.Pow(10, -float64(len(decimals))) / 2 * (1 + 1e-6)
}

// readCount is the reference of a formula.
func readCount(model string) (r reference) {
	name := filepath.Join(filepath.Dir(model), countsFile)
	f, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return r
	}
	if err != nil {
		return reference{Err: err}
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		return reference{Err: fmt.Errorf("%s: %w", name, err)}
	}
	base, _ := cutEnding(filepath.Base(model), formulaEndings)
	for _, row := range rows {
		if len(row) < 2 || row[0] != base || row[1] == unknownCount {
			continue
		}
		v, err := strconv.ParseFloat(row[1], 64)
		if err != nil {
			return reference{Err: fmt.Errorf("%s: %w", name, err)}
		}
		return reference{Log10Z: &v, Tolerance: countTolerance(row[1])}
	}
	return r
}

// header reads the number of variables of a formula, and no more than its comments and "p cnf N"; 0 where it has none.
func header(file string) int {
	f, text, err := open(file)
	if err != nil {
		return 0
	}
	defer f.Close()
	lines := bufio.NewScanner(io.LimitReader(text, 1<<16))
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		if len(words) >= 3 && words[0] == "p" {
			n, err := strconv.Atoi(words[2])
			if err != nil {
				return 0
			}
			return max(n, 0)
		}
	}
	return 0
}

// countSolvedWithin counts the models that were solved in at most so many seconds of CPU time each.
func countSolvedWithin(rows []Row, seconds float64) (n int) {
	for _, r := range rows {
		if r.Status.Solved() && r.CPU <= seconds {
			n++
		}
	}
	return n
}
