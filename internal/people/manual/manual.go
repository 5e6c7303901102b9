// Package manual writes the help, the manual pages and the completions of a program from the model of its command line.
package manual

import (
	"fmt"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/basetensor/basetensor/internal/doors/config"
)

// Help prints the help of a command. It leaves out the flags that many commands share: they have pages of their own.
func Help(options kong.HelpOptions, ctx *kong.Context) error {
	// Hide the flags that have pages of their own.
	node := ctx.Selected()
	options.NoExpandSubcommands = true
	hasConnection := false
	if node != nil {
		for _, flags := range node.AllFlags(true) {
			for _, flag := range flags {
				if inGroup(flag, config.ConnectionGroup) {
					hasConnection, flag.Hidden = true, true
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

	// Tell where the hidden flags are explained.
	name := ctx.Model.Name
	footer := fmt.Sprintf("Flags of every command: %s --help.", name)
	if hasConnection {
		footer += fmt.Sprintf("\nFlags for connections to servers (users, keys, TLS): %s help connect.", name)
	}
	_, err := fmt.Fprintf(ctx.Stdout, "\n%s\n", footer)
	return err
}

// inGroup reports whether a flag is in the group with this key.
func inGroup(flag *kong.Flag, key string) bool { return flag.Group != nil && flag.Group.Key == key }

// commands returns the commands that can be run. One with subcommands cannot: its subcommands are in the list.
func commands(app *kong.Application) []*kong.Node { return app.Leaves(true) }

// visibleFlags returns the flags of a node that people see, without those that it inherits from the program.
func visibleFlags(node *kong.Node) (visible []*kong.Flag) {
	for _, flag := range node.Flags {
		if !flag.Hidden {
			visible = append(visible, flag)
		}
	}
	return visible
}

// spellings returns the ways to write a flag, for instance -o and --output.
func spellings(flag *kong.Flag) []string {
	if flag.Short != 0 {
		return []string{"-" + string(flag.Short), "--" + flag.Name}
	}
	return []string{"--" + flag.Name}
}

// choices returns the values that a flag or an argument allows; nil if it allows any.
func choices(v *kong.Value) []string {
	if v.Enum == "" {
		return nil
	}
	return slices.DeleteFunc(v.EnumSlice(), func(s string) bool { return s == "" })
}

// commandWords returns the words by which a command is called, without the program's name: for instance "model rm".
func commandWords(node *kong.Node) string {
	words := node.Name
	for ancestor := node.Parent; ancestor != nil && ancestor.Type == kong.CommandNode; ancestor = ancestor.Parent {
		words = ancestor.Name + " " + words
	}
	return words
}

// firstSentence returns the first sentence of a text.
func firstSentence(text string) string {
	if before, _, ok := strings.Cut(text, ". "); ok {
		return before + "."
	}
	return text
}
