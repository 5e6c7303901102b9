package main

import (
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/basetensor/basetensor/internal/doors/config"
	"github.com/basetensor/basetensor/internal/methods/setting"
	"github.com/basetensor/basetensor/internal/people/console"
	"github.com/basetensor/basetensor/pkg/query"
)

// mostFlags bounds the flags of a command, and those of a group that commands share.
const mostFlags = 20

// commands returns all commands.
func commands(t *testing.T) []*kong.Node {
	t.Helper()
	all, err := newParser(&console.Terminal{Name: "btn", Options: []kong.Option{helpTexts}})
	if err != nil {
		t.Fatal(err)
	}
	return all.Model.Leaves(false)
}

// TestHelpNamesFlagsOfItsCommand: the help of flags and arguments advises no flag that the command does not have.
func TestHelpNamesFlagsOfItsCommand(t *testing.T) {
	named := regexp.MustCompile(`--([a-z][a-z-]*[a-z])`)
	for _, command := range commands(t) {
		has := map[string]bool{}
		texts := map[string]string{}
		for _, flags := range command.AllFlags(false) {
			for _, flag := range flags {
				has[flag.Name] = true
				texts["--"+flag.Name] = flag.Help
			}
		}
		for _, argument := range command.Positional {
			texts[argument.Name] = argument.Help
		}
		for of, text := range texts {
			for _, found := range named.FindAllStringSubmatch(text, -1) {
				if !has[found[1]] {
					t.Errorf("%s %s: the help names --%s, which is no flag of this command: %s", command.FullPath(), of, found[1], text)
				}
			}
		}
	}
}

// TestFlagsAreFew: no command has more flags of its own than people read, and no group.
func TestFlagsAreFew(t *testing.T) {
	for _, command := range commands(t) {
		of := map[string]int{}
		for _, flag := range command.Flags {
			group := ""
			if flag.Group != nil {
				group = flag.Group.Key
			}
			of[group]++
		}
		t.Logf("%s: %v", command.FullPath(), of)
		for group, n := range of {
			if n > mostFlags {
				t.Errorf("%s: %d flags in group %q", command.FullPath(), n, group)
			}
		}
	}
}

// TestFlagsHaveTheDefaultsOfSettings: commands that compute an answer begin with the accuracy and the memory of a request without settings.
func TestFlagsHaveTheDefaultsOfSettings(t *testing.T) {
	want := query.Settings{}.WithDefaults()
	var c cli
	for _, args := range [][]string{{"infer", "model.uai"}, {"fit", "model.uai", "cases.csv"}} {
		if _, err := config.Parse(&c, args, io.Discard, io.Discard, func(int) {}, helpTexts); err != nil {
			t.Fatal(err)
		}
	}
	if got := c.Infer.Accuracy; got != want.Accuracy {
		t.Errorf("--accuracy is %v, the settings have %v", got, want.Accuracy)
	}
	if infer, fit := int64(c.Infer.Memory), int64(c.Fit.Memory); infer != want.Memory || fit != want.Memory {
		t.Errorf("--memory is %d, of fit %d, the settings have %d", infer, fit, want.Memory)
	}
}

// TestMethodsListsAllSettings: with their defaults, and every method that a flag takes.
func TestMethodsListsAllSettings(t *testing.T) {
	code, stdout, stderr := command(t, "methods")
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	for _, s := range allSettings() {
		if !regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(s.Name) + ` +` + s.Default + ` `).MatchString(stdout) {
			t.Errorf("no %s in\n%s", s.Name, stdout)
		}
		for _, m := range s.Methods {
			if !slices.ContainsFunc(methodHelps, func(known method) bool { return known.name == m }) {
				t.Errorf("%s is read by %s, which is not listed", s.Name, m)
			}
		}
		if s.Default == "" {
			continue
		}
		// what is the default on the command line is the default of the pipeline
		of := query.MethodAuto
		if len(s.Methods) > 0 {
			of = s.Methods[0]
		}
		got := query.Settings{Method: of}
		if err := setting.Apply(allSettings(), &got, []string{s.Name + "=" + s.Default}); err != nil {
			t.Error(err)
		}
		if want := (query.Settings{Method: of}).WithDefaults(); got.WithDefaults() != want {
			t.Errorf("%s: %+v, want %+v", s.Name, got.WithDefaults(), want)
		}
	}
	for _, m := range methodHelps {
		code, _, stderr := command(t, "infer", asia, "--method", string(m.name), "--set", "x=1")
		if code != 2 || !strings.Contains(stderr, `no setting "x"`) {
			t.Errorf("%s: exit code %d, %s", m.name, code, stderr)
		}
	}
}

// TestSettingsOfTheCommand: by flags, with commas, from the environment and from a file; a wrong one is a usage error.
func TestSettingsOfTheCommand(t *testing.T) {
	model := write(t, t.TempDir(), "pair.uai", pair)
	args := []string{"infer", model, "--redis", "off", "--json", "--method", "symmetry-cp"}
	components := func(more ...string) int {
		t.Helper()
		code, stdout, stderr := command(t, append(args, more...)...)
		if code != 0 {
			t.Fatalf("%v: exit code %d: %s", more, code, stderr)
		}
		return decodeResults(t, stdout)[0].Components
	}
	if n := components("--set", "learned.components=2,learned.objective=frobenius", "--set", "learned.maps=identity"); n != 2 {
		t.Errorf("%d components", n)
	}
	file := write(t, t.TempDir(), "settings.json", `{"set": ["learned.components=1", "learned.objective=frobenius"]}`)
	if n := components("--config", file); n != 1 {
		t.Errorf("%d components from a file", n)
	}
	t.Setenv("BTN_SET", "learned.components=1,learned.objective=frobenius")
	if n := components(); n != 1 {
		t.Errorf("%d components from the environment", n)
	}
	t.Setenv("BTN_SET", "")
	for value, want := range map[string]string{
		"components=8":         "--set: no setting \"components\": did you mean learned.components?",
		"learned.componets=8":  `did you mean "learned.components"?`,
		"truncated.bond=8":     "truncated.bond is read by method auto or truncated, not by symmetry-cp",
		"learned.components=0": "learned.components must be between 1 and ",
	} {
		if code, _, stderr := command(t, append(args, "--set", value)...); code != 2 || !strings.Contains(stderr, want) {
			t.Errorf("%s: exit code %d, %s", value, code, stderr)
		}
	}
}
