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
		return bash(app), nil
	case "zsh":
		return "#compdef " + app.Name + "\nautoload -U +X bashcompinit && bashcompinit\n" + bash(app), nil
	case "fish":
		return fish(app), nil
	}
	return "", fault.New(fault.BadInput, "no completion for %q: there is %s", shell, strings.Join(Shells, ", "))
}

// bash is the script for bash: a function that looks at the words before the cursor.
func bash(app *kong.Application) string {
	var first, nested, flags, values strings.Builder
	for _, node := range app.Children {
		if node.Hidden {
			continue
		}
		fmt.Fprintf(&first, " %s", node.Name)
		var names []string
		for _, child := range node.Children {
			names = append(names, child.Name)
		}
		if names != nil {
			fmt.Fprintf(&nested, "    %s) words=\"%s\" ;;\n", quoted(node.Name), strings.Join(names, " "))
		}
	}
	for _, command := range commands(app) {
		path := wordsOf(command)
		var all []string
		for _, flag := range slices.Concat(app.Flags, flagsOf(command)) {
			all = append(all, spellings(flag)...)
			if c := choices(flag.Value); c != nil {
				fmt.Fprintf(&values, "    %s) values=\"%s\" ;;\n", quoted(path+" --"+flag.Name), strings.Join(c, " "))
			} else if !flag.IsBool() {
				for _, spelling := range spellings(flag) {
					fmt.Fprintf(&values, "    %s) files=1 ;;\n", quoted(path+" "+spelling))
				}
			}
		}
		fmt.Fprintf(&flags, "    %s) flags=\"%s\" ;;\n", quoted(path), strings.Join(all, " "))
		if len(command.Positional) > 0 {
			if c := choices(command.Positional[0]); c != nil {
				fmt.Fprintf(&nested, "    %s) words=\"%s\" ;;\n", quoted(path), strings.Join(c, " "))
			}
		}
	}

	return strings.NewReplacer(
		"NAME", app.Name, "FIRST", strings.TrimSpace(first.String()), "NESTED", nested.String(), "FLAGS", flags.String(),
		"VALUES", values.String(),
	).Replace(`# Completion of NAME for bash.
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
`)
}

// fish is the script for fish: a line for every command and flag.
func fish(app *kong.Application) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Completion of %s for fish.\n", app.Name)
	for _, node := range app.Children {
		if node.Hidden {
			continue
		}
		fmt.Fprintf(&b, "complete -c %s -f -n __fish_use_subcommand -a %s -d %s\n", app.Name, node.Name, quoted(firstSentence(node.Help)))
		var names []string
		for _, child := range node.Children {
			names = append(names, child.Name)
		}
		for _, child := range node.Children {
			fmt.Fprintf(&b, "complete -c %s -f -n '__fish_seen_subcommand_from %s; and not __fish_seen_subcommand_from %s' -a %s -d %s\n",
				app.Name, node.Name, strings.Join(names, " "), child.Name, quoted(firstSentence(child.Help)))
		}
	}
	for _, command := range commands(app) {
		var conditions []string
		for word := range strings.FieldsSeq(wordsOf(command)) {
			conditions = append(conditions, "__fish_seen_subcommand_from "+word)
		}
		for _, flag := range slices.Concat(app.Flags, flagsOf(command)) {
			fmt.Fprintf(&b, "complete -c %s -n %s -l %s", app.Name, quoted(strings.Join(conditions, "; and ")), flag.Name)
			if flag.Short != 0 {
				fmt.Fprintf(&b, " -s %c", flag.Short)
			}
			if c := choices(flag.Value); c != nil {
				fmt.Fprintf(&b, " -x -a %s", quoted(strings.Join(c, " ")))
			} else if !flag.IsBool() {
				b.WriteString(" -r")
			}
			fmt.Fprintf(&b, " -d %s\n", quoted(firstSentence(flag.Help)))
		}
	}
	return b.String()
}

// quoted is a word of a shell that stands for the text.
func quoted(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
