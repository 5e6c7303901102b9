package manual

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/alecthomas/kong"
)

// Pages returns the manual pages of a program, by their file names: NAME.1, and one for every command.
func Pages(app *kong.Application, version string) map[string]string {
	pages := map[string]string{app.Name + ".1": programPage(app, version)}
	for _, command := range commands(app) {
		name := app.Name + "-" + strings.ReplaceAll(wordsOf(command), " ", "-")
		pages[name+".1"] = commandPage(app, command, name, version)
	}
	return pages
}

// programPage is the page of the program: its commands, and the flags of all of them.
func programPage(app *kong.Application, version string) string {
	var b strings.Builder
	begin(&b, app.Name, firstLine(app.Help), version)
	fmt.Fprintf(&b, ".SH SYNOPSIS\n.B %s\nCOMMAND [FLAGS]\n", escaped(app.Name))
	b.WriteString(".SH DESCRIPTION\n")
	paragraphs(&b, app.Help)
	group := ""
	for _, command := range commands(app) {
		title := "Commands:"
		if g := command.ClosestGroup(); g != nil {
			title = g.Title
		}
		if title != group {
			section(&b, title)
			group = title
		}
		item(&b, fmt.Sprintf("\\fB%s\\fR", escaped(wordsOf(command))), command.Help)
	}
	writeFlags(&b, app.Node)
	return b.String()
}

// commandPage is the page of one command.
func commandPage(app *kong.Application, command *kong.Node, name, version string) string {
	var b strings.Builder
	begin(&b, name, firstSentence(command.Help), version)
	fmt.Fprintf(&b, ".SH SYNOPSIS\n.B %s\n%s\n", escaped(app.Name), escaped(command.Summary()))
	b.WriteString(".SH DESCRIPTION\n")
	paragraphs(&b, command.Help)
	if len(command.Positional) > 0 {
		section(&b, "Arguments:")
		for _, argument := range command.Positional {
			item(&b, escaped(argument.Summary()), argument.Help)
		}
	}
	writeFlags(&b, command)
	fmt.Fprintf(&b, ".SH SEE ALSO\n.BR %s (1)\n", escaped(app.Name))
	return b.String()
}

// begin writes the head of a page.
func begin(b *strings.Builder, name, about, version string) {
	about = escaped(strings.TrimSuffix(about, "."))
	fmt.Fprintf(b, ".TH %q 1 \"\" %q\n.SH NAME\n%s \\- %s\n", strings.ToUpper(name), version, escaped(name), about)
}

// writeFlags writes the flags of a node, group by group.
func writeFlags(b *strings.Builder, node *kong.Node) {
	var titles []string
	flags := map[string][]*kong.Flag{}
	for _, flag := range flagsOf(node) {
		title := "Flags:"
		if flag.Group != nil {
			title = flag.Group.Title
		}
		if flags[title] == nil {
			titles = append(titles, title)
		}
		flags[title] = append(flags[title], flag)
	}
	for _, title := range titles {
		section(b, title)
		for _, flag := range flags[title] {
			head := "\\fB" + escaped(strings.Join(spellings(flag), ", ")) + "\\fR"
			if !flag.IsBool() {
				head += "=\\fI" + escaped(flag.FormatPlaceHolder()) + "\\fR"
			}
			item(b, head, kong.DefaultHelpValueFormatter(flag.Value))
		}
	}
}

// section begins a section of a page.
func section(b *strings.Builder, title string) {
	fmt.Fprintf(b, ".SH %s\n", escaped(strings.ToUpper(strings.TrimSuffix(title, ":"))))
}

// item writes an entry of a list: a head, which is escaped already, and its text.
func item(b *strings.Builder, head, text string) {
	fmt.Fprintf(b, ".TP\n%s\n%s\n", head, escaped(text))
}

// paragraphs writes a text; its indented lines are shown as they are.
func paragraphs(b *strings.Builder, text string) {
	for part := range strings.SplitSeq(text, "\n\n") {
		if strings.HasPrefix(part, "  ") {
			fmt.Fprintf(b, ".PP\n.nf\n%s\n.fi\n", escaped(part))
		} else {
			fmt.Fprintf(b, ".PP\n%s\n", escaped(part))
		}
	}
}

// firstLine returns a text's first paragraph.
func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

// escaped returns a text as the formatter of manual pages prints it: no line of it is a request.
func escaped(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(text)
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			lines[i] = `\&` + line
		}
	}
	var b strings.Builder
	for _, r := range strings.Join(lines, "\n") {
		if r > unicode.MaxASCII {
			fmt.Fprintf(&b, `\[u%04X]`, r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}
