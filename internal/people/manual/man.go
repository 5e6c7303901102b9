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
		name := app.Name + "-" + strings.ReplaceAll(commandWords(command), " ", "-")
		pages[name+".1"] = commandPage(app, command, name, version)
	}
	return pages
}

// programPage returns the page of the program: its commands, and the flags that all of them have.
func programPage(app *kong.Application, version string) string {
	var b strings.Builder
	writeHead(&b, app.Name, firstLine(app.Help), version)
	fmt.Fprintf(&b, ".SH SYNOPSIS\n.B %s\nCOMMAND [FLAGS]\n", escapeRoff(app.Name))
	b.WriteString(".SH DESCRIPTION\n")
	writeParagraphs(&b, app.Help)

	// Commands of one group follow each other: a new title begins a section.
	group := ""
	for _, command := range commands(app) {
		title := "Commands:"
		if closest := command.ClosestGroup(); closest != nil {
			title = closest.Title
		}
		if title != group {
			writeSection(&b, title)
			group = title
		}
		writeItem(&b, fmt.Sprintf("\\fB%s\\fR", escapeRoff(commandWords(command))), command.Help)
	}
	writeFlags(&b, app.Node)
	return b.String()
}

// commandPage returns the page of one command.
func commandPage(app *kong.Application, command *kong.Node, name, version string) string {
	var b strings.Builder
	writeHead(&b, name, firstSentence(command.Help), version)
	fmt.Fprintf(&b, ".SH SYNOPSIS\n.B %s\n%s\n", escapeRoff(app.Name), escapeRoff(command.Summary()))
	b.WriteString(".SH DESCRIPTION\n")
	writeParagraphs(&b, command.Help)
	if len(command.Positional) > 0 {
		writeSection(&b, "Arguments:")
		for _, argument := range command.Positional {
			writeItem(&b, escapeRoff(argument.Summary()), argument.Help)
		}
	}
	writeFlags(&b, command)
	fmt.Fprintf(&b, ".SH SEE ALSO\n.BR %s (1)\n", escapeRoff(app.Name))
	return b.String()
}

// writeHead writes the head of a page: its title, name and what it is about.
func writeHead(b *strings.Builder, name, about, version string) {
	about = escapeRoff(strings.TrimSuffix(about, "."))
	fmt.Fprintf(b, ".TH %q 1 \"\" %q\n.SH NAME\n%s \\- %s\n", strings.ToUpper(name), version, escapeRoff(name), about)
}

// writeFlags writes the flags of a node, group by group.
func writeFlags(b *strings.Builder, node *kong.Node) {
	// Group the flags by title, the groups in the order of their first flags.
	var titles []string
	flags := map[string][]*kong.Flag{}
	for _, flag := range visibleFlags(node) {
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
		writeSection(b, title)
		for _, flag := range flags[title] {
			head := "\\fB" + escapeRoff(strings.Join(spellings(flag), ", ")) + "\\fR"
			if !flag.IsBool() {
				head += "=\\fI" + escapeRoff(flag.FormatPlaceHolder()) + "\\fR"
			}
			writeItem(b, head, kong.DefaultHelpValueFormatter(flag.Value))
		}
	}
}

// writeSection writes the head of a section.
func writeSection(b *strings.Builder, title string) {
	fmt.Fprintf(b, ".SH %s\n", escapeRoff(strings.ToUpper(strings.TrimSuffix(title, ":"))))
}

// writeItem writes an entry of a list: a head, which the caller has escaped, and its text.
func writeItem(b *strings.Builder, head, text string) {
	fmt.Fprintf(b, ".TP\n%s\n%s\n", head, escapeRoff(text))
}

// writeParagraphs writes the paragraphs of a text. One that is indented is shown as it is, without filling its lines.
func writeParagraphs(b *strings.Builder, text string) {
	for part := range strings.SplitSeq(text, "\n\n") {
		if strings.HasPrefix(part, "  ") {
			fmt.Fprintf(b, ".PP\n.nf\n%s\n.fi\n", escapeRoff(part))
		} else {
			fmt.Fprintf(b, ".PP\n%s\n", escapeRoff(part))
		}
	}
}

// firstLine returns the first line of a text.
func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

// escapeRoff returns a text as the formatter of manual pages (roff) has to be given it so that it prints the text. It
// escapes backslashes and hyphens, lines that would be requests, and characters beyond ASCII.
func escapeRoff(text string) string {
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
