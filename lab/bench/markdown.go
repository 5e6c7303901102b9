// The results as a Markdown page.

package bench

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"time"
)

// Page holds the text of a page of results beside its rows.
type Page struct {
	Title    string
	Machine  Machine
	Measured time.Time
	Command  string // as it is typed, with FOLDER for the folder of models
	Models   int    // found; more than rows when the run was interrupted
	Mar      bool
	Formulas bool     // of weighted formulas
	Within   []int    // seconds of CPU time, with a count of solved models for each
	Data     string   // file name of the CSV, beside the page
	Picture  string   // file name of the plot, beside the page
	Compared []Series // further sets in the plot
}

// WriteMarkdown writes the page.
func WriteMarkdown(w io.Writer, p Page, rows []Row) error {
	b := bufio.NewWriter(w)
	fmt.Fprintf(b, "# %s\n\n", p.Title)
	fmt.Fprintf(b, "**%s.**\n\n", Summary(rows))
	if len(p.Within) > 0 {
		b.WriteString("| seconds of CPU time, at most | solved |\n|--:|--:|\n")
		for _, s := range p.Within {
			fmt.Fprintf(b, "| %d | %d of %d |\n", s, countSolvedWithin(rows, float64(s)), len(rows))
		}
		b.WriteByte('\n')
	}
	if len(rows) < p.Models {
		fmt.Fprintf(b, "The run was interrupted: %d of %d models were measured.\n\n", len(rows), p.Models)
	}
	fmt.Fprintf(b, "- machine: %s\n", p.Machine)
	fmt.Fprintf(b, "- measured: %s\n", p.Measured.UTC().Format(time.DateOnly))
	fmt.Fprintf(b, "- command: `%s`\n", p.Command)
	fmt.Fprintf(b, "- data: [%s](%s)\n", p.Data, p.Data)
	for _, s := range p.Compared {
		fmt.Fprintf(b, "- compared with: %s, %d of %d solved\n", s.Name, len(s.Times), s.Total)
	}

	fmt.Fprintf(b, "\n![models solved against time](%s)\n\n", p.Picture)
	b.WriteString(legend)
	if p.Formulas {
		b.WriteString(countLegend)
	}
	if p.Mar {
		b.WriteString(marLegend)
	}
	writeNotes(b, rows)
	return b.Flush()
}

const legend = `Every model runs in a process of its own. A model is solved when log10 Z is within half a unit of the reference's last
digit (six significant digits at least), or within 1e-5.
`

const countLegend = "Counts agree when they are equal in all published decimals, most often eight.\n"

const marLegend = "Marginal probabilities of a solved model are within 1e-5 of the reference.\n"

// writeNotes lists why models are not solved.
func writeNotes(b *bufio.Writer, rows []Row) {
	head := "\n## Not solved\n\n"
	for _, r := range rows {
		if r.Status.Solved() {
			continue
		}
		line := fmt.Sprintf("%s- %s: %s", head, escapeText(r.Model), r.Status)
		if r.Note != "" {
			line += "; " + escapeText(r.Note)
		}
		fmt.Fprintln(b, line)
		head = ""
	}
}

// escapeText keeps Markdown from reading marks in names and messages.
var markdownMarks = strings.NewReplacer(`\`, `\\`, "`", "\\`", "*", `\*`, "_", `\_`, "<", `\<`, "[", `\[`)

func escapeText(s string) string { return markdownMarks.Replace(s) }

func escapeCell(s string) string { return strings.ReplaceAll(escapeText(s), "|", `\|`) }
