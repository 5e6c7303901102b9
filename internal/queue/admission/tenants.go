package admission

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/basetensor/basetensor/internal/base/jsontext"
)

// DefaultClass is the class of tenants to which the file gives no other. Its limits are the defaults of the other
// classes.
const DefaultClass = "default"

// Tenants are the classes and their members. A nil one has the built-in class only.
type Tenants struct {
	classes map[string]Limits
	classOf map[string]string // class by tenant
}

// Parse parses the file of tenants: {"classes": {NAME: {LIMIT: NUMBER, …}, …}, "tenants": {TENANT: CLASS, …}}. An
// unknown key, and a tenant of a class that is not defined, are errors.
func Parse(b []byte) (*Tenants, error) {
	var file struct {
		Classes map[string]json.RawMessage `json:"classes"`
		Tenants map[string]string          `json:"tenants"`
	}
	if err := jsontext.Strict(b, &file); err != nil {
		return nil, fmt.Errorf("tenants: %w", err)
	}

	// The default class is the built-in one with the limits of the file. The other classes begin with its limits.
	base := Default()
	if raw, ok := file.Classes[DefaultClass]; ok {
		var err error
		if base, err = parseClass(DefaultClass, raw, base); err != nil {
			return nil, err
		}
	}
	t := &Tenants{classes: map[string]Limits{}, classOf: file.Tenants}
	for name, raw := range file.Classes {
		if name == "" || len(name) > 64 || strings.ContainsAny(name, "\"\n\\") { // metrics have names as labels
			return nil, fmt.Errorf("tenants: %.80q is no name of a class", name)
		}
		var err error
		if t.classes[name], err = parseClass(name, raw, base); err != nil {
			return nil, err
		}
	}
	t.classes[DefaultClass] = base

	for tenant, class := range t.classOf {
		if _, ok := t.classes[class]; !ok {
			return nil, fmt.Errorf("tenants: tenant %q is of class %q, which is not there", tenant, class)
		}
	}
	return t, nil
}

// parseClass returns the limits of a class: those in raw, and for the others those of base.
func parseClass(name string, raw json.RawMessage, base Limits) (Limits, error) {
	limits := base
	err := jsontext.Strict(raw, &limits)
	if err == nil {
		err = limits.check()
	}
	if err != nil {
		return Limits{}, fmt.Errorf("tenants: class %q: %w", name, err)
	}
	return limits, nil
}

// Class returns the name of a tenant's class. Unlike tenants, classes are few, so that metrics may have them as labels.
func (t *Tenants) Class(tenant string) string {
	if t != nil {
		if class, ok := t.classOf[tenant]; ok {
			return class
		}
	}
	return DefaultClass
}

// Limits returns the name and the limits of a tenant's class.
func (t *Tenants) Limits(tenant string) (class string, l Limits) {
	if t == nil {
		return DefaultClass, Default()
	}
	class = t.Class(tenant)
	return class, t.classes[class]
}
