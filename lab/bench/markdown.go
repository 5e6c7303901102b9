// The results as a Markdown page.

package bench

import (
	"bufio"
	"fmt"
	"io"
	"slices"
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
	fmt.Fprintf(b, "The %d longest; all are in the data.\n\n", min(longest, len(rows)))
	writeRows(b, columns(p.Mar, p.Formulas), longestOf(rows))
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

// longest bounds the rows of the page.
const longest = 10

// longestOf returns the rows with most wall time, in their sequence.
func longestOf(rows []Row) []Row {
	if len(rows) <= longest {
		return rows
	}
	times := make([]float64, len(rows))
	for i, r := range rows {
		times[i] = r.Wall
	}
	slices.Sort(times)
	least := times[len(times)-longest]
	return slices.DeleteFunc(slices.Clone(rows), func(r Row) bool { return r.Wall < least })
}

const legend = `
Every model runs in a process of its own, one after the other. *flops* and *log2 table* (of the entries of the largest table)
are planned, *real flops* and *slices* what the run reports. *wall* and *CPU* are of the whole process, reading the model
included; *peak* is its largest resident set. *error* is the difference of log10 Z to the reference; a model is solved when it
is at most half a unit of the reference's last digit (six significant digits at least), or 1e-5. A dash: not known.
`

const countLegend = "Counts agree when they are equal in all decimals that were published, most often eight; a dash: nobody knew it.\n"

const marLegend = "*MAR error* is the largest difference of a marginal probability to the reference, at " +
	"most 1e-5 in a solved model.\n"

func writeRows(b *bufio.Writer, cols []column, rows []Row) {
	var head, rule strings.Builder
	for _, c := range cols {
		head.WriteString("| " + c.head + " ")
		if c.left {
			rule.WriteString("|---")
		} else {
			rule.WriteString("|--:")
		}
	}
	fmt.Fprintf(b, "%s|\n%s|\n", head.String(), rule.String())
	for _, r := range rows {
		for _, c := range cols {
			fmt.Fprintf(b, "| %s ", escapeCell(c.cell(r)))
		}
		b.WriteString("|\n")
	}
}

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
