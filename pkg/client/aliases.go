package client

// Names of registered models, and their versions.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/basetensor/basetensor/internal/form"
	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/pkg/fault"
)

// ModelVersion is a registered model under a name.
type ModelVersion struct {
	Owner   string // the tenant whose name it is; "": everybody's
	Name    string // empty: found by digest
	Version int    // from 1 on; 0 without a name
	Digest  string
	By      string // writer, by their own account
	Time    time.Time
}

// String returns alarm@3, alarm for all versions, or the digest of a model without a name.
func (v ModelVersion) String() string {
	switch {
	case v.Name == "":
		return v.Digest
	case v.Version == 0:
		return v.Name
	}
	return v.Name + "@" + strconv.Itoa(v.Version)
}

// NameModel puts a registered model under a name and returns its version: each new digest is a new one, the same digest has the same. by
// is the writer's name.
func (c *Client) NameModel(ctx context.Context, name, digest, by string) (ModelVersion, error) {
	if err := checkModel(digest); err != nil {
		return ModelVersion{}, err
	}
	n, err := c.bus.Models.PutVersion(ctx, name, digest, by)
	return ModelVersion{Owner: c.bus.Conn.Tenant(), Name: name, Version: n, Digest: digest, By: by}, err
}

// versionOf returns version n of a name; versions count from 1.
func versionOf(a bus.Alias, n int) ModelVersion {
	v := a.Versions[n-1]
	return ModelVersion{Owner: a.Owner, Name: a.Name, Version: n, Digest: v.Digest, By: v.By, Time: v.Time}
}

// fewestDigits is the least number of a digest's digits that name a model.
const fewestDigits = 6

// FindModel finds a registered model: by name, alarm (its last version) or alarm@3; by its digest; or by the digest's first digits, six
// at least, where only one begins like them. The error wraps ErrNotFound if there is none. A request for the found model names its
// digest: it means that version for ever.
func (c *Client) FindModel(ctx context.Context, ref string) (ModelVersion, error) {
	if form.IsDigest(ref) {
		return ModelVersion{Digest: ref}, nil
	}

	// by name
	name, number, hasNumber := strings.Cut(ref, "@")
	if bus.IsAlias(name) {
		a, err := c.bus.Models.Name(ctx, name)
		switch {
		case errors.Is(err, ErrNotFound): // the text may be digits of a digest
		case err != nil:
			return ModelVersion{}, err
		case !hasNumber:
			return versionOf(a, len(a.Versions)), nil
		default:
			n, err := strconv.Atoi(number)
			if err != nil || n < 1 || n > len(a.Versions) {
				return ModelVersion{}, fault.New(fault.BadInput, "client: %w: %.80s has the versions 1 to %d, and no %.20q",
					ErrNotFound, name, len(a.Versions), number)
			}
			return versionOf(a, n), nil
		}
	}

	// by the first digits of its digest
	isHexadecimal := strings.Trim(ref, "0123456789abcdef") == ""
	if !hasNumber && len(ref) >= fewestDigits && isHexadecimal {
		return c.findByDigits(ctx, ref)
	}
	return ModelVersion{}, fault.New(fault.BadInput, "client: %w: no registered model is called %.80q", ErrNotFound, name)
}

// findByDigits returns the one model whose digest begins with these digits.
func (c *Client) findByDigits(ctx context.Context, digits string) (ModelVersion, error) {
	registered, err := c.bus.Models.List(ctx)
	if err != nil {
		return ModelVersion{}, err
	}
	var digests []string
	for _, s := range registered.Models {
		if strings.HasPrefix(s.Digest, digits) && !slices.Contains(digests, s.Digest) {
			digests = append(digests, s.Digest)
		}
	}
	switch len(digests) {
	case 0:
		return ModelVersion{}, fmt.Errorf("client: no registered model is called %s, and no digest begins so: %w", digits,
			&fault.Error{Code: fault.BadInput, Err: ErrNotFound})
	case 1:
		return ModelVersion{Digest: digests[0]}, nil
	}
	return ModelVersion{}, fault.New(fault.BadInput, "client: the digests of %d registered models begin with %s: give more digits",
		len(digests), digits)
}
