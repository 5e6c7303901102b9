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
	users   []string            // in the syntax of the configuration
	limits  *Limits             // of its users; nil: none
	exports map[Import][]string // by subject, the names of the accounts that may import it
	imports map[Import][]string // by subject, the names of the accounts from which it comes
}

// accounts are all accounts of a server, by name.
type accounts map[string]*account

// findOrAdd returns the account of this name, a new one if there is none.
func (all accounts) findOrAdd(name string) *account {
	if all[name] == nil {
		all[name] = &account{name: name, exports: map[Import][]string{}, imports: map[Import][]string{}}
	}
	return all[name]
}

// link lets an account import a subject from another one, and the other one export it.
func (all accounts) link(from, to string, i Import) {
	all.findOrAdd(from).exports[i] = append(all.findOrAdd(from).exports[i], to)
	all.findOrAdd(to).imports[i] = append(all.findOrAdd(to).imports[i], from)
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

// ServerConfig returns the part of a nats-server's configuration that has the accounts: users by name with their public nkeys, for all
// roles that have one, and tenants by name with theirs, within limits.
func ServerConfig(users, tenants []User, limits Limits) string {
	byName := accounts{}
	byName.addRoles(users)
	for _, t := range tenants {
		byName.addTenant(t, &limits)
	}

	var out strings.Builder
	out.WriteString("# Who may do what. Written by `btn keys`, which keeps the keys that there are: run it again rather than edit this.\n" +
		"accounts {\n")
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		byName[name].write(&out)
	}
	out.WriteString("}\n")
	return out.String()
}

// addRoles adds the accounts of all roles, with the users that have a role's name, and links each to Account, which has the streams.
func (all accounts) addRoles(users []User) {
	keys := map[string][]string{} // by user, its public keys
	for _, u := range users {
		keys[u.Name] = u.Public
	}
	for _, r := range Roles() {
		account := all.findOrAdd(r.account())
		for _, public := range keys[r.Name] {
			account.users = append(account.users, r.userText(public))
		}
		if account.name != Account {
			for _, i := range r.imports() {
				all.importAll(account.name, i)
			}
			for _, i := range r.exports() {
				all.link(account.name, Account, i)
			}
		}
	}
}

// addTenant adds the account of a tenant, with a user for each of its public keys and with limits.
func (all accounts) addTenant(tenant User, limits *Limits) {
	account := all.findOrAdd(tenantAccount(tenant.Name))
	account.limits = limits
	for _, public := range tenant.Public {
		account.users = append(account.users, fmt.Sprintf("{nkey: %s}  # %s", public, tenant.Name))
	}
	for _, i := range TenantImports(tenant.Name) {
		all.importAll(account.name, i)
	}
}

// importAll imports a subject into an account from every account that has it. The messages of a stream come from the accounts of the
// roles that announce them, and not from Account, which imports them too: the server passes on no message that an account has imported.
// Everything else comes from Account.
func (all accounts) importAll(to string, i Import) {
	isLinked := false
	for _, r := range Roles() {
		if i.Stream && slices.ContainsFunc(r.Announces, func(s string) bool { return isWithin(i.Subject, s) }) {
			all.link(r.account(), to, i)
			isLinked = true
		}
	}
	if !isLinked {
		all.link(Account, to, i)
	}
}

// isWithin reports whether all subjects of a pattern are subjects of another one. * stands for a token, and > for one
// or more at the end.
func isWithin(subject, pattern string) bool {
	tokens := strings.Split(subject, ".")
	for i, p := range strings.Split(pattern, ".") {
		switch {
		case i >= len(tokens):
			return false
		case p == ">":
			return true
		case p != tokens[i] && (p != "*" || tokens[i] == ">"): // * has any token, but not several
			return false
		case i == len(tokens)-1: // the subject ends: so must the pattern
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

// write writes an account in the syntax of the configuration.
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
	for _, i := range slices.SortedFunc(maps.Keys(a.exports), compareImports) {
		fmt.Fprintf(out, "      {%s: %q, accounts: [%s]%s}\n", i.kind(), i.Subject, strings.Join(a.exports[i], ", "), i.responseOption())
	}
	out.WriteString("    ]\n    imports: [\n")
	for _, i := range slices.SortedFunc(maps.Keys(a.imports), compareImports) {
		local := ""
		if i.Local != "" {
			local = fmt.Sprintf(", to: %q", i.Local)
		}
		for _, exporter := range a.imports[i] {
			fmt.Fprintf(out, "      {%s: {account: %s, subject: %q}%s}\n", i.kind(), exporter, i.Subject, local)
		}
	}
	out.WriteString("    ]\n  }\n")
}

// compareImports compares imports by their kinds, then by their subjects.
func compareImports(a, b Import) int { return strings.Compare(a.kind()+a.Subject, b.kind()+b.Subject) }

// kind returns the kind of an import in the configuration: stream if messages come, service if requests go.
func (i Import) kind() string {
	if i.Stream {
		return "stream"
	}
	return "service"
}

// responseOption returns the option that a request has several replies; "" if it has only one.
func (i Import) responseOption() string {
	for _, several := range []string{"$JS.API.CONSUMER.MSG.NEXT.", "$JS.API.DIRECT.GET.>", "$SRV."} {
		if !i.Stream && strings.HasPrefix(i.Subject, several) {
			return ", response: stream"
		}
	}
	return ""
}

// userText returns a user in the syntax of the server's configuration: its public key, and the subjects that it may publish on and
// subscribe to by its role. It publishes also what a worker stores for it (StoredFor), and subscribes also to the requests that it answers
// (Answers). What it announces (Announces), it publishes, and hears from others.
func (r Role) userText(public string) string {
	list := func(subjects []string) string {
		var out strings.Builder
		for _, s := range subjects {
			fmt.Fprintf(&out, "          %q\n", s)
		}
		return out.String()
	}
	replies := ""
	if len(r.Answers) > 0 {
		replies = "        allow_responses: {max: 4, expires: \"2m\"}\n" // at most 4 messages per request, within 2 minutes; chosen
	}
	publish := slices.Concat(r.Publish, r.StoredFor, r.Announces)
	subscribe := slices.Concat([]string{InboxPrefix(r.Name) + ".>"}, r.Subscribe, r.Answers, r.Announces)
	return fmt.Sprintf("{nkey: %s, permissions: {  # %s\n"+
		"        publish: {allow: [\n%s        ]}\n"+
		"        subscribe: {allow: [\n%s        ]}\n%s      }}",
		public, r.Name, list(publish), list(subscribe), replies)
}

// imports returns what a role takes from other accounts: subjects on which it publishes, and messages that it hears.
func (r Role) imports() []Import {
	imports := importsOf(r.Publish, r.Subscribe)
	for _, s := range r.StoredFor {
		imports = append(imports, keepImport("", s))
	}
	return imports
}

// exports returns what a role gives to other accounts: requests that it serves, and messages that it says.
func (r Role) exports() []Import { return importsOf(r.Answers, r.Announces) }

// importsOf returns subjects as imports: those of requests, then those of messages.
func importsOf(services, streams []string) (imports []Import) {
	for _, s := range services {
		imports = append(imports, Import{Subject: s})
	}
	for _, s := range streams {
		imports = append(imports, Import{Subject: s, Stream: true})
	}
	return imports
}
