package truth

// Making a case smaller that still breaks the same promise.

import (
	"slices"

	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/query"
)

// Shrink returns a smaller case for which keep still returns true. It drops a query, a factor, evidence, a variable or a setting at a time,
// until nothing can be dropped, or until keep has been called tries times.
func Shrink(c *Case, tries int, keep func(*Case) bool) *Case {
	for {
		isSmaller := false
		for _, next := range reductions(c) {
			if tries--; tries < 0 {
				return c
			}
			if keep(next) {
				c, isSmaller = next, true
				break
			}
		}
		if !isSmaller {
			return c
		}
	}
}

// reductions lists the cases that are one step smaller: without one query, factor, unused variable or piece of evidence, with one question
// less, or with one setting less.
func reductions(c *Case) []*Case {
	var out []*Case
	change := func(f func(n *Case)) {
		n := clone(c)
		f(n)
		out = append(out, n)
	}

	// Queries to which no other one is relative. Over is the number of a query, from 1 on.
	for q := range c.Queries {
		isReferred := slices.ContainsFunc(c.Queries, func(o query.Query) bool { return o.Over == q+1 })
		if len(c.Queries) > 1 && !isReferred {
			change(func(n *Case) { n.dropQuery(q) })
		}
	}

	// Factors and variables.
	for j := range c.Model.Factors {
		change(func(n *Case) { n.Model.Factors = slices.Delete(n.Model.Factors, j, j+1) })
	}
	for v := range c.Model.Domains {
		if !c.usesVariable(v) {
			change(func(n *Case) { n.dropVariable(v) })
		}
	}

	// Evidence and questions.
	for q := range c.Queries {
		for i := range c.Queries[q].Evidence.Hard {
			change(func(n *Case) {
				n.Queries[q].Evidence.Hard = slices.Delete(n.Queries[q].Evidence.Hard, i, i+1)
			})
		}
		for i := range c.Queries[q].Evidence.Soft {
			change(func(n *Case) {
				n.Queries[q].Evidence.Soft = slices.Delete(n.Queries[q].Evidence.Soft, i, i+1)
			})
		}
		if c.Queries[q].Marginals {
			change(func(n *Case) { n.Queries[q].Marginals = false })
		}
		if c.Queries[q].Joint != nil {
			change(func(n *Case) { n.Queries[q].Joint = nil })
		}
		if c.Queries[q].Over != 0 {
			change(func(n *Case) { n.Queries[q].Over = 0 })
		}
	}

	return append(out, settingReductions(c)...)
}

// settingReductions lists the cases with one setting at its default that is not there in c.
func settingReductions(c *Case) []*Case {
	var out []*Case
	// reset appends the case after f, if f reports that c had another value.
	reset := func(f func(n *Case) bool) {
		n := clone(c)
		if f(n) {
			out = append(out, n)
		}
	}
	reset(func(n *Case) bool { n.Route = RoutePlain; return c.Route != RoutePlain })
	reset(func(n *Case) bool { n.Settings.Memory = 0; return c.Settings.Memory != 0 })
	reset(func(n *Case) bool { n.Settings.Seed = 0; return c.Settings.Seed != 0 })
	reset(func(n *Case) bool {
		n.Settings.Maps = query.MapIdentity
		return c.Settings.Maps != query.MapIdentity
	})
	reset(func(n *Case) bool {
		n.Settings.Cores = query.CoresAreFactors
		return c.Settings.Cores != query.CoresAreFactors
	})
	reset(func(n *Case) bool { n.Settings.Accuracy = 0; return c.Settings.Accuracy != 0 })
	return out
}

// clone returns a copy of a case that shares nothing with it which reductions change.
func clone(c *Case) *Case {
	n := *c
	m := *c.Model
	m.Domains = slices.Clone(m.Domains)
	m.Factors = slices.Clone(m.Factors)
	for j := range m.Factors {
		m.Factors[j].Scope = slices.Clone(m.Factors[j].Scope)
	}
	n.Model = &m
	n.Queries = slices.Clone(c.Queries)
	for q := range n.Queries {
		ev := &n.Queries[q].Evidence
		ev.Hard, ev.Soft = slices.Clone(ev.Hard), slices.Clone(ev.Soft)
		n.Queries[q].Joint = slices.Clone(n.Queries[q].Joint)
	}
	return &n
}

// dropQuery removes query q, which no other query is relative to. Over, the number from 1 on of another query, changes with it.
func (c *Case) dropQuery(q int) {
	c.Queries = slices.Delete(c.Queries, q, q+1)
	for i := range c.Queries {
		if c.Queries[i].Over > q+1 {
			c.Queries[i].Over--
		}
	}
}

// usesVariable reports whether a factor or a query names variable v.
func (c *Case) usesVariable(v int) bool {
	for _, f := range c.Model.Factors {
		if slices.Contains(f.Scope, v) {
			return true
		}
	}
	return slices.ContainsFunc(c.Queries, func(q query.Query) bool {
		return slices.Contains(q.Joint, v) ||
			slices.ContainsFunc(q.Evidence.Hard, func(h factorgraph.Observation) bool { return h.Var == v }) ||
			slices.ContainsFunc(q.Evidence.Soft, func(s factorgraph.Likelihood) bool { return s.Var == v })
	})
}

// dropVariable removes variable v, which nothing names, and renumbers the variables after it in all factors and queries.
func (c *Case) dropVariable(v int) {
	c.Model.Domains = slices.Delete(c.Model.Domains, v, v+1)
	renumber := func(u *int) {
		if *u > v {
			*u--
		}
	}
	for j := range c.Model.Factors {
		for i := range c.Model.Factors[j].Scope {
			renumber(&c.Model.Factors[j].Scope[i])
		}
	}

	for q := range c.Queries {
		for i := range c.Queries[q].Evidence.Hard {
			renumber(&c.Queries[q].Evidence.Hard[i].Var)
		}
		for i := range c.Queries[q].Evidence.Soft {
			renumber(&c.Queries[q].Evidence.Soft[i].Var)
		}
		for i := range c.Queries[q].Joint {
			renumber(&c.Queries[q].Joint[i])
		}
	}
}
