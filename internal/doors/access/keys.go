package access

import (
	"cmp"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/basetensor/basetensor/internal/form"
	"github.com/basetensor/basetensor/internal/queue/seal"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/nats-io/nkeys"
)

// Files in the folder of WriteKeys, beside a seed and settings for every user. Files of keys have one key per line; the
// first one is used.
const (
	ConfigFile  = "accounts.conf" // for `include` in nats-server's configuration
	MessageKeys = "message.keys"  // signs the messages between workers
	AnswersSeed = "answers.nk"    // signs answers: for the aggregators alone
	AnswersKey  = "answers.pub"   // verifies answers: for everybody
	seedSuffix  = ".nk"
	tenantsDir  = "tenants"
)

// User is a user's name and its public nkeys: one, or two during a change of keys.
type User struct {
	Name   string
	Public []string
}

// Settings are the settings of one user's commands, for --config.
type Settings struct {
	NKey        string `json:"nats-nkey"`
	Inbox       string `json:"nats-inbox,omitempty"`
	Tenant      string `json:"nats-tenant,omitempty"`
	MessageKeys string `json:"message-keys,omitempty"`
	AnswersKey  string `json:"answers-key,omitempty"`
	AnswersSeed string `json:"answers-seed,omitempty"`
}

// WriteKeys makes the missing keys of a folder: an nkey seed for every role and tenant, and the keys that sign messages and
// answers. It returns the names of the new users. Existing keys stay, so that more tenants can be added. It rewrites
// all users' settings, the public keys of answers, and the server's accounts.
//
// The settings name files in target, the folder's place on the machines where they are used; "" is dir. Only their
// owner can read seeds and secret keys: a file that everybody may read is an error, and so are two tenants whose names
// differ in upper and lower case only.
func WriteKeys(dir, target string, tenants []string, limits Limits) (newUsers []string, err error) {
	// check the arguments
	if err := checkArguments(tenants, &limits); err != nil {
		return nil, err
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return nil, fault.Wrap(fault.BadInput, err)
	}
	if target == "" {
		target = dir
	}
	if err := os.MkdirAll(filepath.Join(dir, tenantsDir), 0o700); err != nil {
		return nil, fault.Wrap(fault.BadInput, err)
	}

	// keys of messages and answers; from its first error on, the writer does nothing
	files := writer{dir: dir, target: target}
	files.makeKey(MessageKeys, "# The first key signs, all verify.\n", seal.NewKey)
	files.makeKey(AnswersSeed, "", seal.NewAnswersSeed)
	if files.err == nil {
		_, files.err = keysOf(filepath.Join(dir, MessageKeys)) // only to see that the file can be read
	}
	answers := files.publicKeys(AnswersSeed, nkeys.IsValidPublicAccountKey)
	files.replace(AnswersKey, []byte(strings.Join(answers, "\n")+"\n"), 0o644)

	// users of roles
	var users []User
	for _, role := range Roles() {
		settings := roleSettings(role.Name, target, answers)
		users = append(users, User{role.Name, files.writeUser(role.Name, settings)})
	}

	// users of tenants, those that there are and the new ones
	existing, err := Tenants(dir)
	if err != nil {
		return nil, err
	}
	allTenants := slices.Compact(slices.Sorted(slices.Values(append(existing, tenants...))))
	if err := checkDistinct(allTenants); err != nil {
		return nil, err
	}
	var tenantUsers []User
	for _, tenant := range allTenants {
		settings := Settings{Tenant: tenant, AnswersKey: strings.Join(answers, ",")}
		tenantUsers = append(tenantUsers, User{tenant, files.writeUser(filepath.Join(tenantsDir, tenant), settings)})
	}
	files.replace(ConfigFile, []byte(ServerConfig(users, tenantUsers, limits)), 0o644)
	return files.fresh, files.err
}

// checkArguments sets limits that are 0 to their defaults, and returns an error if a tenant may not have its name, or a limit is too low.
func checkArguments(tenants []string, limits *Limits) error {
	for _, tenant := range tenants {
		if !form.IsOwner(tenant) || IsReservedName(tenant) {
			return fault.New(fault.BadInput, "access: tenant %.80q is not [A-Za-z0-9_-]{1,64}, or a name with another meaning", tenant)
		}
	}
	*limits = limits.withDefaults()
	if limits.Connections < 1 || limits.Subscriptions < 1 || limits.Payload < leastPayload {
		return fault.New(fault.BadInput,
			"access: limits of tenants %+v: at least one connection, one subscription and %d bytes of payload", *limits, leastPayload)
	}
	return nil
}

// roleSettings returns the settings of a role's user, without its nkey. The client's have the public keys of answers themselves, and
// sign no messages. The others name the files of keys in target.
func roleSettings(role, target string, answers []string) Settings {
	if role == Client {
		return Settings{Inbox: InboxPrefix(role), AnswersKey: strings.Join(answers, ",")}
	}
	settings := Settings{
		Inbox: InboxPrefix(role), AnswersKey: filepath.Join(target, AnswersKey), MessageKeys: filepath.Join(target, MessageKeys),
	}
	if role == query.StageAggregate { // it signs the answers
		settings.AnswersSeed = filepath.Join(target, AnswersSeed)
	}
	return settings
}

// checkDistinct returns an error if two names differ in upper and lower case only, since some disks have one file for
// both.
func checkDistinct(tenants []string) error {
	byFolded := map[string]string{}
	for _, t := range tenants {
		folded := strings.ToLower(t)
		if namesake, ok := byFolded[folded]; ok {
			return fault.New(fault.BadInput, "access: tenants %s and %s differ in upper and lower case only", namesake, t)
		}
		if IsReservedName(folded) {
			return fault.New(fault.BadInput, "access: tenant %s is %s in other case, a name with another meaning", t, folded)
		}
		byFolded[folded] = t
	}
	return nil
}

// Tenants returns the names of the tenants that have a seed in a folder.
func Tenants(dir string) ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(dir, tenantsDir))
	if err != nil {
		return nil, fault.Wrap(fault.BadInput, err)
	}
	var tenants []string
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), seedSuffix); ok && form.IsOwner(name) {
			tenants = append(tenants, name)
		}
	}
	return tenants, nil
}

// writer writes files into a folder until one fails.
type writer struct {
	dir    string   // the folder
	target string   // the folder's path on the machines where the settings are used
	fresh  []string // users whose seed was made
	err    error    // the first error
}

// writeUser makes a user's seed if there is none, writes its settings, and returns its public keys.
func (w *writer) writeUser(name string, s Settings) []string {
	if w.makeKey(name+seedSuffix, "", newUserSeed) {
		w.fresh = append(w.fresh, filepath.Base(name))
	}
	s.NKey = filepath.Join(w.target, name+seedSuffix)
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		w.err = cmp.Or(w.err, fault.Wrap(fault.Internal, err)) // the first error stays
		return nil
	}
	w.replace(name+".json", append(text, '\n'), 0o644)
	return w.publicKeys(name+seedSuffix, nkeys.IsValidPublicUserKey)
}

// makeKey writes a file with a new key below a heading if there is no such file, and reports whether it did.
func (w *writer) makeKey(name, heading string, newKey func() (string, error)) bool {
	if w.err != nil {
		return false
	}
	key, err := newKey()
	if err != nil {
		w.err = fault.Wrap(fault.Internal, err)
		return false
	}
	return w.writeOnce(name, []byte(heading+key+"\n"), 0o600)
}

// publicKeys returns the public keys of a file of seeds. A key that is not valid is an error.
func (w *writer) publicKeys(name string, isValid func(string) bool) []string {
	if w.err != nil {
		return nil
	}
	keys, err := keysOf(filepath.Join(w.dir, name))
	if err != nil {
		w.err = err
		return nil
	}
	var publicKeys []string
	for _, seed := range keys {
		pair, err := nkeys.FromSeed([]byte(seed))
		var public string
		if err == nil {
			public, err = pair.PublicKey()
		}
		if err != nil || !isValid(public) {
			w.err = fault.New(fault.BadInput, "access: %s has something other than seeds of its kind", filepath.Join(w.dir, name))
			return nil
		}
		publicKeys = append(publicKeys, public)
	}
	return publicKeys
}

// writeOnce writes a file if there is none of the name, and reports whether it did.
func (w *writer) writeOnce(name string, text []byte, mode os.FileMode) bool {
	if w.err != nil {
		return false
	}
	f, err := os.OpenFile(filepath.Join(w.dir, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if errors.Is(err, os.ErrExist) {
		return false
	}
	if err == nil {
		_, err = f.Write(text)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		w.err = fault.New(fault.BadInput, "access: %w", err)
	}
	return err == nil
}

// replace writes a file in the place of the one that is there, such that nobody sees half of it.
func (w *writer) replace(name string, text []byte, mode os.FileMode) {
	if w.err != nil {
		return
	}
	path := filepath.Join(w.dir, name)
	err := os.WriteFile(path+".new", text, mode)
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		w.err = fault.New(fault.BadInput, "access: %w", err)
	}
}
