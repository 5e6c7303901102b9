package named

// Literals of formulas: 3 says that variable 3 is true, −7 that variable 7 is false.

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// literal is a number other than 0.
var literal = regexp.MustCompile(`^-?[1-9][0-9]{0,17}$`)

// isLiterals reports whether a text is a list of literals, with commas where there are several: the
// observations of a .uai.evid file have none, and begin with their number.
func isLiterals(text string) bool {
	for part := range strings.SplitSeq(text, ",") {
		if !literal.MatchString(strings.TrimSpace(part)) {
			return false
		}
	}
	return true
}

// literals is the evidence of a list of them.
func literals(list []string) (v Values) {
	for _, l := range list {
		of, negative := strings.CutPrefix(strings.TrimSpace(l), "-")
		one := value{of: of, at: "1", literal: true}
		if negative {
			one.at = "0"
		}
		v = append(v, one)
	}
	return v
}

// literals reads a JSON list of literals.
func (v *Values) literals(b []byte) error {
	var list []json.Number
	if err := json.Unmarshal(b, &list); err != nil {
		return errors.New("an object of variables and values, or a list of literals is needed: [3, -7]")
	}
	var words []string
	for _, n := range list {
		if !literal.MatchString(string(n)) {
			return fmt.Errorf("%.80q is no literal", string(n))
		}
		words = append(words, string(n))
	}
	if *v = literals(words); *v == nil {
		*v = Values{}
	}
	return nil
}
