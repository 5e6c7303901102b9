package manual

import (
	"fmt"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/basetensor/basetensor/pkg/fault"
)

// Shells are the shells that there is a completion for.
var Shells = []string{"bash", "zsh", "fish"}

// Completion returns the script by which a shell completes the commands, flags and values of a program, and names of files elsewhere.
// Another shell than one of Shells is an error with the code bad_input.
func Completion(app *kong.Application, shell string) (string, error) {
	switch shell {
	case "bash":
		return bashScript(app), nil
	case "zsh":
		return "#compdef " + app.Name + "\nautoload -U +X bashcompinit && bashcompinit\n" + bashScript(app), nil
	case "fish":
		return fishScript(app), nil
	}
	return "", fault.New(fault.BadInput, "no completion for %q: there is %s", shell, strings.Join(Shells, ", "))
}

// bashScript returns the completion for bash: a function that looks at the words before the cursor. Its tables are branches of case
// statements, which bashTemplate has places for.
func bashScript(app *kong.Application) string {
	// The first words, and after each the words that may come second.
	var names, nextWords, commandFlags, flagValues strings.Builder
	for _, node := range app.Children {
		if node.Hidden {
			continue
		}
		fmt.Fprintf(&names, " %s", node.Name)
		var childNames []string
		for _, child := range node.Children {
			childNames = append(childNames, child.Name)
		}
		if childNames != nil {
			fmt.Fprintf(&nextWords, "    %s) words=\"%s\" ;;\n", shellQuote(node.Name), strings.Join(childNames, " "))
		}
	}

	for _, command := range commands(app) {
		words := commandWords(command)
		names, values := flagBranches(words, slices.Concat(app.Flags, visibleFlags(command)))
		flagValues.WriteString(values)
		fmt.Fprintf(&commandFlags, "    %s) flags=\"%s\" ;;\n", shellQuote(words), strings.Join(names, " "))

		// Its first argument may have a list of values.
		if len(command.Positional) > 0 {
			if allowed := choices(command.Positional[0]); allowed != nil {
				fmt.Fprintf(&nextWords, "    %s) words=\"%s\" ;;\n", shellQuote(words), strings.Join(allowed, " "))
			}
		}
	}

	return strings.NewReplacer(
		"NAME", app.Name, "FIRST", strings.TrimSpace(names.String()), "NESTED", nextWords.String(), "FLAGS", commandFlags.String(),
		"VALUES", flagValues.String(),
	).Replace(bashTemplate)
}

// flagBranches returns the names of flags of the command with these words, and a branch for each flag that takes a value: with the
// values that it allows, or else for files.
func flagBranches(words string, flags []*kong.Flag) (names []string, branches string) {
	var b strings.Builder
	for _, flag := range flags {
		names = append(names, spellings(flag)...)
		if allowed := choices(flag.Value); allowed != nil {
			fmt.Fprintf(&b, "    %s) values=\"%s\" ;;\n", shellQuote(words+" --"+flag.Name), strings.Join(allowed, " "))
		} else if !flag.IsBool() {
			for _, spelling := range spellings(flag) {
				fmt.Fprintf(&b, "    %s) files=1 ;;\n", shellQuote(words+" "+spelling))
			}
		}
	}
	return names, b.String()
}

// bashTemplate is the script for bash. Words in capitals stand for the program's name and for lists: FIRST for the first words of
// commands, NESTED, FLAGS and VALUES for cases of the "case" statements.
const bashTemplate = `# Completion of NAME for bash.
_NAME() {
  local current="${COMP_WORDS[COMP_CWORD]}" previous="" command="" words="FIRST" flags="--help" values="" files="" word
  (( COMP_CWORD > 0 )) && previous="${COMP_WORDS[COMP_CWORD-1]}"
  if [[ $current == "=" ]]; then # the shell cuts --flag=value into three words
    current=""
  elif [[ $previous == "=" ]]; then
    previous="${COMP_WORDS[COMP_CWORD-2]}"
  fi
  COMPREPLY=()
  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    [[ -n $words && " $words " == *" $word "* ]] || continue
    command="${command:+$command }$word"
    words=""
    case "$command" in
NESTED    esac
  done
  case "$command" in
FLAGS  esac
  case "$command $previous" in
VALUES  esac
  if [[ -n $values ]]; then
    COMPREPLY=($(compgen -W "$values" -- "$current"))
  elif [[ -n $files ]]; then
    COMPREPLY=($(compgen -f -- "$current"))
  elif [[ $current == -* ]]; then
    COMPREPLY=($(compgen -W "$flags" -- "$current"))
  elif [[ -n $words ]]; then
    COMPREPLY=($(compgen -W "$words" -- "$current"))
  else
    COMPREPLY=($(compgen -f -- "$current"))
  fi
}
complete -o filenames -F _NAME NAME
`

// fishScript returns the completion for fish: a line for every command and flag.
func fishScript(app *kong.Application) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Completion of %s for fish.\n", app.Name)

	// The commands; and after a command that has subcommands, these, until one of them is written.
	for _, node := range app.Children {
		if node.Hidden {
			continue
		}
		fmt.Fprintf(&b, "complete -c %s -f -n __fish_use_subcommand -a %s -d %s\n", app.Name, node.Name, shellQuote(firstSentence(node.Help)))
		var childNames []string
		for _, child := range node.Children {
			childNames = append(childNames, child.Name)
		}
		for _, child := range node.Children {
			fmt.Fprintf(&b, "complete -c %s -f -n '__fish_seen_subcommand_from %s; and not __fish_seen_subcommand_from %s' -a %s -d %s\n",
				app.Name, node.Name, strings.Join(childNames, " "), child.Name, shellQuote(firstSentence(child.Help)))
		}
	}

	// The flags of each command, once all its words are written: one or two.
	for _, command := range commands(app) {
		var conditions []string
		for word := range strings.FieldsSeq(commandWords(command)) {
			conditions = append(conditions, "__fish_seen_subcommand_from "+word)
		}
		for _, flag := range slices.Concat(app.Flags, visibleFlags(command)) {
			fmt.Fprintf(&b, "complete -c %s -n %s -l %s", app.Name, shellQuote(strings.Join(conditions, "; and ")), flag.Name)
			if flag.Short != 0 {
				fmt.Fprintf(&b, " -s %c", flag.Short)
			}
			if allowed := choices(flag.Value); allowed != nil {
				fmt.Fprintf(&b, " -x -a %s", shellQuote(strings.Join(allowed, " ")))
			} else if !flag.IsBool() {
				b.WriteString(" -r")
			}
			fmt.Fprintf(&b, " -d %s\n", shellQuote(firstSentence(flag.Help)))
		}
	}
	return b.String()
}

// shellQuote returns a text in single quotes, as one word of a shell.
func shellQuote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
