// Package manual writes the help, the manual pages and the completions of a program from the model of its command line.
package manual

import (
	"fmt"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/basetensor/basetensor/internal/doors/config"
)

// Help is a printer of help that leaves the flags that many commands share to pages of their own.
func Help(options kong.HelpOptions, ctx *kong.Context) error {
	node := ctx.Selected()
	options.NoExpandSubcommands = true
	connects := false
	if node != nil {
		for _, flags := range node.AllFlags(true) {
			for _, flag := range flags {
				if inGroup(flag, config.ConnectionGroup) {
					connects, flag.Hidden = true, true
				}
				if inGroup(flag, config.CommonGroup) {
					flag.Hidden = true
				}
			}
		}
	}
	if err := kong.DefaultHelpPrinter(options, ctx); err != nil || node == nil {
		return err
	}

	name := ctx.Model.Name
	footer := fmt.Sprintf("Flags of every command: %s --help.", name)
	if connects {
		footer += fmt.Sprintf("\nFlags for connections to servers (users, keys, TLS): %s help connect.", name)
	}
	_, err := fmt.Fprintf(ctx.Stdout, "\n%s\n", footer)
	return err
}

// inGroup reports whether a flag is in the group with this key.
func inGroup(flag *kong.Flag, key string) bool { return flag.Group != nil && flag.Group.Key == key }

// commands returns the commands that can be run, with those that have commands of their own replaced by these.
func commands(app *kong.Application) []*kong.Node { return app.Leaves(true) }

// flagsOf returns the flags of a node that people see, without the flags of the program.
func flagsOf(node *kong.Node) (list []*kong.Flag) {
	for _, flag := range node.Flags {
		if !flag.Hidden {
			list = append(list, flag)
		}
	}
	return list
}

// spellings returns the ways to write a flag: -o and --output.
func spellings(flag *kong.Flag) []string {
	if flag.Short != 0 {
		return []string{"-" + string(flag.Short), "--" + flag.Name}
	}
	return []string{"--" + flag.Name}
}

// choices returns the values of a flag or an argument where they are a list; nil where they are not.
func choices(v *kong.Value) []string {
	if v.Enum == "" {
		return nil
	}
	return slices.DeleteFunc(v.EnumSlice(), func(s string) bool { return s == "" })
}

// wordsOf returns the words by which a command is called behind the program's name.
func wordsOf(node *kong.Node) string {
	path := node.Name
	for n := node.Parent; n != nil && n.Type == kong.CommandNode; n = n.Parent {
		path = n.Name + " " + path
	}
	return path
}

// firstSentence returns a text up to its first end of a sentence.
func firstSentence(text string) string {
	if before, _, ok := strings.Cut(text, ". "); ok {
		return before + "."
	}
	return text
}
