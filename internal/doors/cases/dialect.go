package cases

// The form of a table of cases: separators, comments, and the columns that programs add.

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/basetensor/basetensor/internal/base/decimal"
	"github.com/basetensor/basetensor/pkg/fault"
)

const (
	numCases = "NumCases" // Netica's column of weights
	idNum    = "IDnum"    // and of the cases' numbers
)

// unnamed is the name that pandas gives a column without a name when it reads one.
var unnamed = regexp.MustCompile(`^Unnamed: \d+$`)

// dialect is the form of a table.
type dialect struct {
	separator   rune
	hasComments bool // lines that begin with // are passed over, as in Netica's files
}

// separators are those that a header is tried with, the usual one first. A blank stands for any white space.
var separators = []rune{',', ';', '\t', ' '}

// find finds the dialect that divides the header into the most names that are known. If no name is known, it is the one with the most
// cells, white space apart.
func find(in *bufio.Reader, isKnown func(name string) bool) dialect {
	begin := beginning(in)
	hasComments := bytes.HasPrefix(bytes.TrimLeft(begin, " \t\r\n"), []byte("//"))
	var best dialect
	highest := -1
	for _, separator := range separators {
		tried := dialect{separator, hasComments}
		in := tried.reader(bytes.NewReader(begin))
		in.LazyQuotes = true // the buffer may end within a cell
		header, _ := in.Read()
		names := 0
		for _, cell := range header {
			if isKnown(strings.TrimSpace(cell)) {
				names++
			}
		}
		score := names * len(begin) // more than any number of cells
		if separator != ' ' {
			score += len(header)
		}
		if score > highest {
			highest, best = score, tried
		}
	}
	return best
}

// beginning returns the text up to the header's end or further, or all that the buffer holds.
func beginning(in *bufio.Reader) []byte {
	for {
		begin, _ := in.Peek(in.Buffered())
		if hasHeader(begin) {
			return begin
		}
		if _, err := in.Peek(len(begin) + 1); err != nil {
			return begin
		}
	}
}

// hasHeader reports whether a text has a complete row after comments and empty lines.
func hasHeader(text []byte) bool {
	quotes := 0
	for line := range bytes.Lines(text) {
		if start := bytes.TrimSpace(line); quotes%2 == 0 && (len(start) == 0 || bytes.HasPrefix(start, []byte("//"))) {
			continue
		}
		quotes += bytes.Count(line, []byte(`"`))
		if quotes%2 == 0 && bytes.HasSuffix(line, []byte("\n")) {
			return true
		}
	}
	return false
}

// reader returns a reader of rows, which lines without any text are not.
func (d dialect) reader(r io.Reader) *csv.Reader {
	if d.separator == ' ' {
		r = blanks{r}
	}
	if d.hasComments {
		r = &comments{in: bufio.NewReader(r)}
	}
	in := csv.NewReader(&blankLines{in: bufio.NewReader(r), tabSeparates: d.separator == '\t'})
	in.Comma = d.separator
	in.FieldsPerRecord = -1
	in.TrimLeadingSpace = d.separator != '\t' // an empty cell is a blank there
	if d.hasComments {
		in.Comment = commentMark
	}
	return in
}

// cells returns the cells of a row: after white space at its end there is none.
func (d dialect) cells(record []string) []string {
	if n := len(record); d.separator == ' ' && n > 1 && record[n-1] == "" {
		return record[:n-1]
	}
	return record
}

// thousands is a number whose comma may group its digits.
var thousands = regexp.MustCompile(`^[+-]?[1-9]\d{0,2},\d{3}$`)

// number reads a number: a comma is a decimal one if it separates no cells. Between tabs and blanks 1,000 may be one or a thousand, and is
// an error.
func (d dialect) number(text string) (float64, error) {
	if d.separator == ',' {
		return decimal.Parse(text)
	}
	if d.separator != ';' && thousands.MatchString(text) {
		return 0, errors.New("its comma may be a decimal one or one of thousands")
	}
	return decimal.Parse(strings.Replace(text, ",", ".", 1))
}

// weight reads a number of at least 0.
func (d dialect) weight(text string) (float64, error) {
	w, err := d.number(text)
	if err == nil && w < 0 {
		err = errors.New("is negative")
	}
	if err != nil {
		return 0, fault.New(fault.BadInput, "%.40q is no weight, a number of at least 0: %w", text, err)
	}
	return w, nil
}

// isAdded reports whether a column that is no variable's is one that programs add by themselves.
func isAdded(name string) bool { return name == idNum || unnamed.MatchString(name) }

// blanks reads tabs as blanks.
type blanks struct{ io.Reader }

// Read reads.
func (b blanks) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	for i, c := range p[:n] {
		if c == '\t' {
			p[i] = ' '
		}
	}
	return n, err
}

// commentMark stands for the first character of a comment: encoding/csv has comments of one, and /path is none.
const commentMark = '\x01'

// comments reads // at the beginning of a line as commentMark and /.
type comments struct {
	in     *bufio.Reader
	inLine bool // the next byte does not begin a line
}

// Read reads up to the end of a line.
func (c *comments) Read(p []byte) (n int, err error) {
	if len(p) == 0 {
		return 0, nil
	}
	if begin, _ := c.in.Peek(2); !c.inLine && string(begin) == "//" {
		_, _ = c.in.Discard(1)
		p[0], n, c.inLine = commentMark, 1, true
	}
	for n < len(p) {
		b, err := c.in.ReadByte()
		if err != nil {
			if n > 0 {
				return n, nil // the error comes again
			}
			return 0, err
		}
		p[n] = b
		n++
		if c.inLine = b != '\n'; !c.inLine {
			break
		}
	}
	return n, nil
}

// blankLines empties lines of white space alone, outside of quotes: encoding/csv passes empty lines over, and counts them. A tab that
// separates cells is no white space.
type blankLines struct {
	in           *bufio.Reader
	tabSeparates bool
	line         []byte // what is left of a line, or of the piece of it that the buffer holds
	inLine       bool   // the next piece does not begin a line
	inQuotes     bool
}

// Read reads up to the end of a line.
func (b *blankLines) Read(p []byte) (n int, err error) {
	for len(b.line) == 0 {
		if b.line, err = b.next(); err != nil && len(b.line) == 0 {
			return 0, err
		}
	}
	n = copy(p, b.line)
	b.line = b.line[n:]
	return n, nil
}

// next returns the next line, or a piece of a long one.
func (b *blankLines) next() ([]byte, error) {
	line, err := b.in.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		err = nil
	}
	begins, ends := !b.inLine, bytes.HasSuffix(line, []byte("\n"))
	b.inLine = !ends
	switch {
	case begins && len(line) > 0 && line[0] == commentMark:
	case begins && !b.inQuotes && (ends || err == io.EOF) && b.isBlank(line):
		return line[len(bytes.TrimSuffix(line, []byte("\n"))):], err
	case bytes.Count(line, []byte(`"`))%2 == 1:
		b.inQuotes = !b.inQuotes
	}
	return line, err
}

// isBlank reports whether a line has white space alone.
func (b *blankLines) isBlank(line []byte) bool {
	if b.tabSeparates && bytes.IndexByte(line, '\t') >= 0 {
		return false
	}
	return len(bytes.TrimSpace(line)) == 0
}

// words is a set of words, whatever their case.
type words []string

// has reports whether a text is one of the words.
func (w words) has(text string) bool {
	return slices.ContainsFunc(w, func(word string) bool { return strings.EqualFold(word, text) })
}
