package access

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Account is the name of the account with the streams and the operator.
const Account = "BASETENSOR"

// account is an account of the server: its exports to other accounts, its imports from them, and its users.
type account struct {
	name    string
	users   []string
	limits  *Limits             // nil: none
	exports map[Import][]string // to the names of accounts
	imports map[Import][]string // from accounts
}

// accounts are all accounts of a server, by name.
type accounts map[string]*account

func (all accounts) of(name string) *account {
	if all[name] == nil {
		all[name] = &account{name: name, exports: map[Import][]string{}, imports: map[Import][]string{}}
	}
	return all[name]
}

// link exports a subject of one account and imports it into another.
func (all accounts) link(from, to string, i Import) {
	all.of(from).exports[i] = append(all.of(from).exports[i], to)
	all.of(to).imports[i] = append(all.of(to).imports[i], from)
}

// Limits bound what the users of one tenant take of the server. The zero value are the usual ones. Its tags are the tags of the
// flags of `btn keys`.
type Limits struct {
	Connections   int `name:"connections" placeholder:"N" help:"Connections of a tenant at the same time, default 100."`
	Subscriptions int `name:"subscriptions" placeholder:"N" help:"Subscriptions of a tenant's connection, default 1000."`
	Payload       int `name:"payload" placeholder:"BYTES" help:"Bytes of a tenant's message, default 8 MiB, within max_payload."`
}

// withDefaults returns l with the usual limits in the place of zeros.
func (l Limits) withDefaults() Limits {
	return Limits{cmp.Or(l.Connections, 100), cmp.Or(l.Subscriptions, 1000), cmp.Or(l.Payload, 8<<20)}
}

// leastPayload is the least bound on a message that leaves room for its subject and headers.
const leastPayload = 64 << 10

// Config returns the part of a nats-server's configuration that has the accounts: users by name with their public nkeys, for all roles
// that have one, and tenants by name with theirs, within limits.
func Config(users, tenants []User, limits Limits) string {
	all := accounts{}
	keys := map[string][]string{}
	for _, u := range users {
		keys[u.Name] = u.Public
	}
	for _, r := range Roles() {
		own := all.of(r.account())
		for _, public := range keys[r.Name] {
			own.users = append(own.users, r.user(public))
		}
		if own.name != Account {
			for _, i := range r.imports() {
				all.join(own.name, i)
			}
			for _, i := range r.exports() {
				all.link(own.name, Account, i)
			}
		}
	}
	for _, t := range tenants {
		own := all.of(tenantAccount(t.Name))
		own.limits = &limits
		for _, public := range t.Public {
			own.users = append(own.users, fmt.Sprintf("{nkey: %s}  # %s", public, t.Name))
		}
		for _, i := range Imports(t.Name) {
			all.join(own.name, i)
		}
	}

	var out strings.Builder
	out.WriteString("# Who may do what. Written by `btn keys`, which keeps the keys that there are: run it again rather than edit this.\n" +
		"accounts {\n")
	for _, name := range slices.Sorted(maps.Keys(all)) {
		all[name].write(&out)
	}
	out.WriteString("}\n")
	return out.String()
}

// join imports a subject into an account from every account that has it. A stream comes from the accounts of the roles that Say it: the
// server passes on no message that came to the streams' account from another one.
func (all accounts) join(to string, i Import) {
	said := false
	for _, r := range Roles() {
		if i.Stream && slices.ContainsFunc(r.Says, func(s string) bool { return within(i.Subject, s) }) {
			all.link(r.account(), to, i)
			said = true
		}
	}
	if !said {
		all.link(Account, to, i)
	}
}

// within reports whether all subjects of one pattern are subjects of another.
func within(subject, pattern string) bool {
	tokens := strings.Split(subject, ".")
	for i, p := range strings.Split(pattern, ".") {
		switch {
		case i >= len(tokens):
			return false
		case p == ">":
			return true
		case p != tokens[i] && (p != "*" || tokens[i] == ">"):
			return false
		case i == len(tokens)-1:
			return i == strings.Count(pattern, ".")
		}
	}
	return false
}

// tenantAccount returns the name of a tenant's account.
func tenantAccount(tenant string) string { return "TENANT-" + tenant }

// account returns the name of a role's account.
func (r Role) account() string {
	if r.Name == Operator {
		return Account
	}
	return Account + "-" + r.Name
}

// write writes an account.
func (a *account) write(out *strings.Builder) {
	fmt.Fprintf(out, "  %s {\n", a.name)
	if a.name == Account {
		out.WriteString("    jetstream: enabled\n")
	}
	if l := a.limits; l != nil {
		fmt.Fprintf(out, "    limits: {max_connections: %d, max_subscriptions: %d, max_payload: %d}\n",
			l.Connections, l.Subscriptions, l.Payload)
	}
	out.WriteString("    users: [\n")
	for _, user := range a.users {
		fmt.Fprintf(out, "      %s\n", user)
	}
	out.WriteString("    ]\n    exports: [\n")
	for _, i := range slices.SortedFunc(maps.Keys(a.exports), order) {
		fmt.Fprintf(out, "      {%s: %q, accounts: [%s]%s}\n", i.kind(), i.Subject, strings.Join(a.exports[i], ", "), i.response())
	}
	out.WriteString("    ]\n    imports: [\n")
	for _, i := range slices.SortedFunc(maps.Keys(a.imports), order) {
		local := ""
		if i.Local != "" {
			local = fmt.Sprintf(", to: %q", i.Local)
		}
		for _, from := range a.imports[i] {
			fmt.Fprintf(out, "      {%s: {account: %s, subject: %q}%s}\n", i.kind(), from, i.Subject, local)
		}
	}
	out.WriteString("    ]\n  }\n")
}

func order(a, b Import) int { return strings.Compare(a.kind()+a.Subject, b.kind()+b.Subject) }

func (i Import) kind() string {
	if i.Stream {
		return "stream"
	}
	return "service"
}

// response returns the option for several replies to a request; "" where there is only one.
func (i Import) response() string {
	for _, several := range []string{"$JS.API.CONSUMER.MSG.NEXT.", "$JS.API.DIRECT.GET.>", "$SRV."} {
		if !i.Stream && strings.HasPrefix(i.Subject, several) {
			return ", response: stream"
		}
	}
	return ""
}

// user returns a user with its permissions.
func (r Role) user(public string) string {
	list := func(subjects []string) string {
		var out strings.Builder
		for _, s := range subjects {
			fmt.Fprintf(&out, "          %q\n", s)
		}
		return out.String()
	}
	replies := ""
	if len(r.Serves) > 0 {
		replies = "        allow_responses: {max: 4, expires: \"2m\"}\n"
	}
	publish := slices.Concat(r.Publish, r.Keeps, r.Says)
	subscribe := slices.Concat([]string{Inbox(r.Name) + ".>"}, r.Subscribe, r.Serves, r.Says)
	return fmt.Sprintf("{nkey: %s, permissions: {  # %s\n"+
		"        publish: {allow: [\n%s        ]}\n"+
		"        subscribe: {allow: [\n%s        ]}\n%s      }}",
		public, r.Name, list(publish), list(subscribe), replies)
}

// imports are the subjects that a role takes from other accounts: it publishes on the services, and hears the streams.
func (r Role) imports() []Import {
	all := subjects(r.Publish, r.Subscribe)
	for _, s := range r.Keeps {
		all = append(all, kept("", s))
	}
	return all
}

// exports are a role's subjects for the streams' account and all others: requests that it serves, and messages that it
// says.
func (r Role) exports() []Import { return subjects(r.Serves, r.Says) }

func subjects(services, streams []string) (all []Import) {
	for _, s := range services {
		all = append(all, Import{Subject: s})
	}
	for _, s := range streams {
		all = append(all, Import{Subject: s, Stream: true})
	}
	return all
}
