// Package config gives all commands one way to be configured: flags, then BTN_* environment variables, then a JSON
// file, then defaults. It is the only importer of the flag library beside the commands' own declarations.
package config

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"reflect"
	"sort"
	"strings"

	"github.com/alecthomas/kong"
	"github.com/basetensor/basetensor/internal/base/jsontext"
	"github.com/basetensor/basetensor/internal/queue/connect"
	"github.com/basetensor/basetensor/internal/queue/redact"
	"github.com/basetensor/basetensor/internal/queue/seal"
	"github.com/basetensor/basetensor/internal/queue/telemetry"
)

// EnvPrefix starts the environment variable of every flag: --log-level is BTN_LOG_LEVEL.
const EnvPrefix = "BTN"

// Groups of flags that the help of a command may leave to another page.
const (
	CommonGroup     = "common"
	ConnectionGroup = "connection"
)

// Common holds the flags of every command.
type Common struct {
	Config    string `help:"${config_help}" placeholder:"FILE" env:"BTN_CONFIG" group:"common"`
	LogLevel  string `help:"${log_level_help}" enum:"debug,info,warn,error" default:"${log_level}" env:"BTN_LOG_LEVEL" group:"common"`
	LogFormat string `help:"${log_format_help}" enum:"text,json" default:"${log_format}" env:"BTN_LOG_FORMAT" group:"common"`

	Version kong.VersionFlag `help:"Print the version, the revision and the Go version, and exit." env:"-" group:"common"`
}

// Servers holds the flags of commands that talk to running servers.
type Servers struct {
	NATS  string `name:"nats" help:"${nats_help}" default:"nats://127.0.0.1:4222" placeholder:"URL" env:"BTN_NATS"`
	Redis string `name:"redis" help:"${redis_help}" default:"redis://127.0.0.1:6379/0" placeholder:"URL" env:"BTN_REDIS"`

	AsNATS  connect.NATS  `embed:"" group:"connection"`
	AsRedis connect.Redis `embed:"" group:"connection"`
	Signing seal.Flags    `embed:"" group:"connection"`
}

// helpTexts are the help of flags whose tags would be long.
var helpTexts = kong.Vars{
	"config_help":     `JSON file of settings, with names of flags as keys: {"log-level": "debug"}. Flags and environment win over it.`,
	"log_level_help":  "Log messages of this level and above: debug, info, warn or error.",
	"log_format_help": "Format of log messages on standard error: text or json.",
	"nats_help":       "URL of the NATS server. Separate the servers of a cluster by commas.",
	"redis_help": "URL of the Redis server that is the cache, or 'off' for none. With sentinels it ends in " +
		"?master_name=NAME&addr=HOST:PORT, of a cluster in ?cluster=true.",
}

// groups have the titles of the groups of commands and flags.
var groups = []kong.Group{
	{Key: "ask", Title: "Ask a model:"},
	{Key: "models", Title: "Make and look at models:"},
	{Key: "jobs", Title: "Jobs on a running service:"},
	{Key: "serve", Title: "Run a service:"},
	{Key: "help", Title: "Help:"},

	{Key: CommonGroup, Title: "Flags of every command:"},
	{Key: "work", Title: "Method, time and memory:"},
	{Key: "output", Title: "Output:"},
	{Key: "place", Title: "Where it is computed:"},
	{Key: "gateway", Title: "HTTP:"},
	{Key: ConnectionGroup, Title: "Connections to servers:"},
}

// Parse fills cli from args, the environment and the file that --config or BTN_CONFIG names. It returns a *UsageError
// for anything the user wrote wrongly. --help and --version print and call exit(0).
func Parse(cli any, args []string, stdout, stderr io.Writer, exit func(int), options ...kong.Option) (*kong.Context, error) {
	// the settings file
	options = append(options, kong.Writers(stdout, stderr), kong.Exit(exit))
	file, err := readConfigFile(args)
	if err != nil {
		return nil, err
	}
	if file != nil {
		options = append(options, kong.Resolvers(file))
	}

	// the command line, by the parser of the one command that it names, or of all if there is a file: that may have
	// settings of other commands, which are to be told from misspelt ones
	parsed, copyBack := cli, func() {}
	if file == nil {
		parsed, copyBack = withOneCommand(cli, args)
	}
	parser, err := Parser(parsed, options...)
	if err != nil {
		return nil, err
	}
	kong.Vars{"version": parser.Model.Name + " " + telemetry.ThisBuild().String()}.Apply(parser)
	ctx, err := parser.Parse(args)
	copyBack()
	if err != nil {
		return nil, &UsageError{Err: withHint(err), Command: commandOf(parser, err)}
	}
	if arg := findPassword(args); arg != "" {
		fmt.Fprintf(stderr, "%s: whoever lists processes sees the password in %s: give it in the environment, in a settings file "+
			"or in a file of its own\n", parser.Model.Name, redact.Text(arg))
	}
	return ctx, nil
}

// Parser returns the parser of all of a program's commands and flags, with their texts.
func Parser(cli any, options ...kong.Option) (*kong.Kong, error) {
	return kong.New(cli, withTexts(append([]kong.Option{
		kong.DefaultEnvars(EnvPrefix),
		kong.Vars{"log_level": "info", "log_format": "text"},
		helpTexts,
		kong.Vars(seal.Help),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, FlagsLast: true}),
		kong.ExplicitGroups(groups),
	}, options...))...)
}

// withOneCommand returns a struct with some fields of cli: its flags, and of its commands the one with whose name args begin. copyBack
// copies what was parsed from that struct into cli. If args begin with no command, it returns cli. The reason is speed: kong takes
// longer to build all commands than a small model needs.
func withOneCommand(cli any, args []string) (narrowed any, copyBack func()) {
	// the fields of cli that are flags, or the command
	full := reflect.ValueOf(cli).Elem()
	var fields []reflect.StructField
	var origins []int // per field, its position in cli
	hasCommand := false
	for i := range full.NumField() {
		field := full.Type().Field(i)
		_, isCommand := field.Tag.Lookup("cmd")
		name := cmp.Or(field.Tag.Get("name"), strings.ToLower(field.Name))
		if isCommand && (len(args) == 0 || name != args[0]) {
			continue
		}
		hasCommand = hasCommand || isCommand && !field.Anonymous
		if field.Anonymous {
			field = reflect.StructField{Name: field.Name, Type: field.Type, Tag: `embed:""`}
		}
		fields, origins = append(fields, field), append(origins, i)
	}
	if !hasCommand {
		return cli, func() {}
	}

	// a struct of them
	narrow := reflect.New(reflect.StructOf(fields))
	return narrow.Interface(), func() {
		for i, origin := range origins {
			full.Field(origin).Set(narrow.Elem().Field(i))
		}
	}
}

// withTexts returns options that put the texts of all kong.Vars among them into the tags that name them. kong would go
// through every text for every flag of every command, which took most of the start of a program.
func withTexts(options []kong.Option) []kong.Option {
	texts := kong.Vars{}
	var plainOptions []kong.Option // without texts
	for _, option := range options {
		if vars, ok := option.(kong.Vars); ok {
			maps.Copy(texts, vars)
		} else {
			plainOptions = append(plainOptions, option)
		}
	}
	return append(plainOptions, kong.PostBuild(func(k *kong.Kong) error {
		return kong.Visit(k.Model.Node, func(node kong.Visitable, next kong.Next) error {
			switch node := node.(type) {
			case *kong.Node:
				node.Help = fillIn(node.Help, texts)
			case *kong.Value:
				node.Help, node.Default = fillIn(node.Help, texts), fillIn(node.Default, texts)
			}
			return next(nil)
		})
	}))
}

// fillIn replaces every ${name} in s that has a text by it. Others, like ${env}, are left to kong.
func fillIn(s string, texts kong.Vars) string {
	start := 0
	for {
		distance := strings.Index(s[start:], "${")
		if distance < 0 {
			return s
		}
		start += distance
		name, tail, isClosed := strings.Cut(s[start+2:], "}")
		if text, ok := texts[name]; isClosed && ok {
			s = s[:start] + text + tail
			start += len(text)
		} else {
			start += 2
		}
	}
}

// findPassword returns the first argument with a password or a token in a URL; "" if there is none.
func findPassword(args []string) string {
	for _, arg := range args {
		if redact.Text(arg) != arg {
			return arg
		}
	}
	return ""
}

// readConfigFile reads the settings file that --config among args names, or BTN_CONFIG. It returns nil if neither is
// there.
func readConfigFile(args []string) (kong.Resolver, error) {
	// its path
	path := os.Getenv(EnvPrefix + "_CONFIG")
	for i, arg := range args {
		if arg == "--" {
			break
		}
		if value, ok := strings.CutPrefix(arg, "--config="); ok {
			path = value
		} else if arg == "--config" && i+1 < len(args) {
			path = args[i+1]
		}
	}
	if path == "" {
		return nil, nil
	}

	// its settings
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, &UsageError{Err: fmt.Errorf("--config (BTN_CONFIG): %w", err)}
	}
	values := map[string]json.RawMessage{}
	if err := jsontext.Strict(raw, &values); err != nil {
		return nil, &UsageError{Err: fmt.Errorf("config file %s: %w", path, err)}
	}
	return &settingsFile{path: path, values: values}, nil
}

// settingsFile gives kong the values of flags from a settings file.
type settingsFile struct {
	path   string
	values map[string]json.RawMessage // by the names of flags
}

// Validate refuses keys that no flag of the program has: a misspelt setting must not pass in silence.
func (r *settingsFile) Validate(app *kong.Application) error {
	isSetting := map[string]bool{}
	var walk func(*kong.Node)
	walk = func(n *kong.Node) {
		for _, flag := range n.Flags {
			isSetting[flag.Name] = flag.Name != "help" && flag.Name != "version" // these are asked, not set
		}
		for _, child := range n.Children {
			walk(child)
		}
	}
	walk(app.Node)
	var unknown []string
	for key := range r.values {
		if !isSetting[key] {
			unknown = append(unknown, key)
		}
	}
	if len(unknown) > 0 {
		sort.Strings(unknown)
		return fmt.Errorf("config file %s: unknown setting %s", r.path, strings.Join(unknown, ", "))
	}
	return nil
}

// Resolve gives a flag its value from the file, unless the environment has one.
func (r *settingsFile) Resolve(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
	for _, env := range flag.Tag.Envs {
		if _, ok := os.LookupEnv(env); ok {
			return nil, nil
		}
	}
	text, ok := r.values[flag.Name]
	if !ok {
		return nil, nil
	}
	var number json.Number
	if text[0] != '"' && json.Unmarshal(text, &number) == nil && number != "" { // numbers reach flags as they are written, as if typed
		return number.String(), nil
	}
	var value any
	err := json.Unmarshal(text, &value)
	return value, err
}
