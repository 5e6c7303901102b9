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

// findDialect returns the dialect that divides the header into the most names that are known. If no name is known, it
// is the one with the most cells, where white space is tried last.
func findDialect(input *bufio.Reader, isKnown func(name string) bool) dialect {
	beginning := peekHeader(input)
	hasComments := bytes.HasPrefix(bytes.TrimLeft(beginning, " \t\r\n"), []byte("//"))
	var best dialect
	highest := -1
	for _, separator := range separators {
		// the header's cells, and how many of them are known
		tried := dialect{separator, hasComments}
		input := tried.newReader(bytes.NewReader(beginning))
		input.LazyQuotes = true // the buffer may end within a cell
		header, _ := input.Read()
		names := 0
		for _, cell := range header {
			if isKnown(strings.TrimSpace(cell)) {
				names++
			}
		}

		// known names decide, then the number of cells, which is less than that of bytes
		score := names * len(beginning)
		if separator != ' ' {
			score += len(header)
		}
		if score > highest {
			highest, best = score, tried
		}
	}
	return best
}

// peekHeader returns the text up to the end of the header or further, or all that the buffer can hold, without reading
// it.
func peekHeader(in *bufio.Reader) []byte {
	for {
		begin, _ := in.Peek(in.Buffered()) // no error: these bytes are there
		if hasHeader(begin) {
			return begin
		}
		if _, err := in.Peek(len(begin) + 1); err != nil { // the end, or the buffer is full
			return begin
		}
	}
}

// hasHeader reports whether a text has a complete row after comments and empty lines.
func hasHeader(text []byte) bool {
	quotes := 0 // an odd number: a cell in quotes goes on in the next line
	for line := range bytes.Lines(text) {
		trimmed := bytes.TrimSpace(line)
		isEmptyOrComment := len(trimmed) == 0 || bytes.HasPrefix(trimmed, []byte("//"))
		if quotes%2 == 0 && isEmptyOrComment {
			continue
		}
		quotes += bytes.Count(line, []byte(`"`))
		if quotes%2 == 0 && bytes.HasSuffix(line, []byte("\n")) {
			return true
		}
	}
	return false
}

// newReader returns a reader of rows in this dialect. It skips lines without text.
func (d dialect) newReader(r io.Reader) *csv.Reader {
	if d.separator == ' ' {
		r = tabsAsBlanks{r}
	}
	if d.hasComments {
		r = &commentMarker{input: bufio.NewReader(r)}
	}
	reader := csv.NewReader(&blankLines{input: bufio.NewReader(r), tabSeparates: d.separator == '\t'})
	reader.Comma = d.separator
	reader.FieldsPerRecord = -1                   // rows may differ in their numbers of cells
	reader.TrimLeadingSpace = d.separator != '\t' // an empty cell is a blank there
	if d.hasComments {                            // commentMarker has put commentMark in place of // at the beginning of a line
		reader.Comment = commentMark
	}
	return reader
}

// rowCells returns the cells of a row. White space at its end separates no further cell.
func (d dialect) rowCells(record []string) []string {
	if n := len(record); d.separator == ' ' && n > 1 && record[n-1] == "" {
		return record[:n-1]
	}
	return record
}

// thousands is a number whose comma may group its digits.
var thousands = regexp.MustCompile(`^[+-]?[1-9]\d{0,2},\d{3}$`)

// parseNumber reads a number. A comma is a decimal one, unless it separates cells. Between tabs and blanks 1,000 may be
// one or a thousand, and is an error.
func (d dialect) parseNumber(text string) (float64, error) {
	if d.separator == ',' {
		return decimal.Parse(text)
	}
	if d.separator != ';' && thousands.MatchString(text) {
		return 0, errors.New("its comma may be a decimal one or one of thousands")
	}
	return decimal.Parse(strings.Replace(text, ",", ".", 1))
}

// parseWeight reads a number of at least 0.
func (d dialect) parseWeight(text string) (float64, error) {
	w, err := d.parseNumber(text)
	if err == nil && w < 0 {
		err = errors.New("is negative")
	}
	if err != nil {
		return 0, fault.New(fault.BadInput, "%.40q is no weight, a number of at least 0: %w", text, err)
	}
	return w, nil
}

// isAdded reports whether a column has a name that programs give to columns that they add: IDnum, or the name of pandas
// for a column without one.
func isAdded(name string) bool { return name == idNum || unnamed.MatchString(name) }

// blanks reads tabs as blanks.
type tabsAsBlanks struct{ io.Reader }

// Read reads, with a blank in place of each tab.
func (b tabsAsBlanks) Read(p []byte) (int, error) {
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
type commentMarker struct {
	input    *bufio.Reader
	isInLine bool // whether the next byte is within a line
}

// Read reads at most up to the end of a line. If the line begins with //, it has commentMark in place of the first /.
func (c *commentMarker) Read(p []byte) (n int, err error) {
	if len(p) == 0 {
		return 0, nil
	}
	if begin, _ := c.input.Peek(2); !c.isInLine && string(begin) == "//" {
		_, _ = c.input.Discard(1)
		p[0], n, c.isInLine = commentMark, 1, true
	}
	for n < len(p) {
		b, err := c.input.ReadByte()
		if err != nil {
			if n > 0 {
				return n, nil // the error comes again
			}
			return 0, err
		}
		p[n] = b
		n++
		if c.isInLine = b != '\n'; !c.isInLine {
			break
		}
	}
	return n, nil
}

// blankLines empties lines of white space alone, outside of quotes: encoding/csv passes empty lines over, and counts them. A tab that
// separates cells is no white space.
type blankLines struct {
	input        *bufio.Reader
	tabSeparates bool
	pending      []byte // what is left of a line, or of the piece of it that the buffer holds
	isInLine     bool   // whether the next piece is within a line
	isInQuotes   bool   // whether a cell in quotes goes on
}

// Read reads at most up to the end of a line.
func (b *blankLines) Read(p []byte) (n int, err error) {
	for len(b.pending) == 0 {
		if b.pending, err = b.nextPiece(); err != nil && len(b.pending) == 0 {
			return 0, err
		}
	}
	n = copy(p, b.pending)
	b.pending = b.pending[n:]
	return n, nil
}

// nextPiece returns the next line, or a piece of a long one. Of a line of white space, outside of quotes, it returns
// the line's end alone.
func (b *blankLines) nextPiece() ([]byte, error) {
	line, err := b.input.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		err = nil
	}
	beginsLine, endsLine := !b.isInLine, bytes.HasSuffix(line, []byte("\n"))
	b.isInLine = !endsLine
	isWhole := beginsLine && (endsLine || err == io.EOF)
	switch {
	case beginsLine && len(line) > 0 && line[0] == commentMark: // its quotes do not count
	case isWhole && !b.isInQuotes && b.isBlank(line):
		return line[len(bytes.TrimSuffix(line, []byte("\n"))):], err // nothing but the end of the line
	case bytes.Count(line, []byte(`"`))%2 == 1:
		b.isInQuotes = !b.isInQuotes
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

// wordSet is a set of words, whatever their case.
type wordSet []string

// has reports whether a text is one of the words.
func (w wordSet) has(text string) bool {
	return slices.ContainsFunc(w, func(word string) bool { return strings.EqualFold(word, text) })
}
