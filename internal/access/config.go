package access

import (
	"fmt"
	"strings"
)

// Account is the name of the account that has the streams.
const Account = "BASETENSOR"

// Config returns the part of a nats-server's configuration that has the accounts: users by name with their public nkeys, for all roles
// that have one, and tenants by name with theirs.
func Config(users, tenants []User) string {
	var out strings.Builder
	fmt.Fprintf(&out, "# Who may do what. Written by `btn keys`, which keeps the keys that there are: run it again rather than edit this.\n"+
		"accounts {\n  %s {\n    jetstream: enabled\n    users: [\n", Account)
	keys := map[string][]string{}
	for _, u := range users {
		keys[u.Name] = u.Public
	}
	for _, r := range Roles() {
		for _, public := range keys[r.Name] {
			r.write(&out, public)
		}
	}
	out.WriteString("    ]\n    exports: [\n")
	for _, t := range tenants {
		for _, i := range Imports(t.Name) {
			fmt.Fprintf(&out, "      {%s: %q, accounts: [%s]}\n", i.kind(), i.Subject, accountOf(t.Name))
		}
	}
	out.WriteString("    ]\n  }\n")

	for _, t := range tenants {
		fmt.Fprintf(&out, "  %s {  # %s\n    users: [", accountOf(t.Name), t.Name)
		for _, public := range t.Public {
			fmt.Fprintf(&out, " {nkey: %s}", public)
		}
		out.WriteString(" ]\n    imports: [\n")
		for _, i := range Imports(t.Name) {
			fmt.Fprintf(&out, "      {%s: {account: %s, subject: %q}}\n", i.kind(), Account, i.Subject)
		}
		out.WriteString("    ]\n  }\n")
	}
	out.WriteString("}\n")
	return out.String()
}

// accountOf returns the name of a tenant's account.
func accountOf(tenant string) string { return "TENANT-" + tenant }

func (i Import) kind() string {
	if i.Stream {
		return "stream"
	}
	return "service"
}

// write writes a user with its permissions.
func (r Role) write(out *strings.Builder, public string) {
	fmt.Fprintf(out, "      {nkey: %s, permissions: {  # %s\n        publish: {allow: [\n", public, r.Name)
	for _, s := range r.Publish {
		fmt.Fprintf(out, "          %q\n", s)
	}
	out.WriteString("        ]}\n        subscribe: {allow: [\n")
	for _, s := range append([]string{Inbox(r.Name) + ".>"}, r.Subscribe...) {
		fmt.Fprintf(out, "          %q\n", s)
	}
	out.WriteString("        ]}\n")
	if r.Replies {
		out.WriteString("        allow_responses: {max: 4, expires: \"2m\"}\n")
	}
	out.WriteString("      }}\n")
}
