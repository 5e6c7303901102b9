package exchangeable

// The form of a network under evidence: classes, groups, and the lists of their counts.

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/problem"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/tensor"
)

const (
	// deviation bounds how far ln of any entry of the product is off, nats: the certified error of an exact ln Z.
	deviation = 1e-10
	// mostRounds bounds how often variables are taken out of their classes.
	mostRounds = 4
	// mostIndividuals bounds the variables that are taken out of their classes.
	mostIndividuals = 20
)

// errForm says why a network is no function of few counts.
func errForm(format string, args ...any) error {
	return fault.New(fault.OverBudget, "exchangeable: "+format, args...)
}

// form is a network under evidence as a function of counts.
type form struct {
	interactions *interactions
	partition    *partition
	kinds        *kinds
	fields       *fields
	weights      [][]float64
	maximal      bool
	off          float64 // bounds |ln B̃ − ln B| of every entry, nats
}

// question is what a form has to know of a query beside its evidence.
type question struct {
	individuals string // variables that are asked about together
	maximal     bool
}

// slots of forms.
type (
	formSlot    struct{ question }
	factorsSlot struct{}
	plainSlot   struct {
		classes *Classes
		maximal bool
	}
)

// plain is the interactions of a network without evidence, and their terms by the part's partition.
type plain struct {
	*interactions
	kinds *kinds
}

// weightsOf lists the weights of a network's variables.
func weightsOf(net *btn.Network) ([][]float64, error) {
	weights := make([][]float64, len(net.Variables))
	for v, place := range net.Variables {
		cp, ok := net.Links[place.Link].T.(*tensor.CP)
		if !ok {
			return nil, fault.New(fault.Internal, "exchangeable: the link of variable %d is no list of weights", v)
		}
		weights[v] = cp.Weights
	}
	return weights, nil
}

// formOf returns the form of a problem: individuals are classes of their own. Errors: over budget if there is none.
func formOf(ctx context.Context, p *problem.Problem, part *Sum, individuals []int, maximal bool) (*form, error) {
	slot := formSlot{question{fmt.Sprint(individuals), maximal}}
	return problem.Form(ctx, p, slot, part.Classes, func() (*form, error) {
		return newForm(ctx, p, part.Classes, individuals, maximal)
	})
}

// newForm is formOf without memory.
func newForm(ctx context.Context, p *problem.Problem, c *Classes, individuals []int, maximal bool) (*form, error) {
	f, err := problem.FormOfBase(ctx, p, factorsSlot{}, func() (*factors, error) { return factorsOf(ctx, p.Net, p.Memory) })
	if err != nil {
		return nil, err
	}
	if f == nil {
		return nil, errForm("the tables are not plain ones of numbers of at least 0")
	}
	weights, err := weightsOf(p.Net)
	if err != nil {
		return nil, err
	}
	form := &form{weights: weights, maximal: maximal, partition: c.partition(f)}
	if form.partition == nil {
		return nil, fault.Wrap(fault.BadInput, btn.Misfit("classes of variables with other domains"))
	}
	var list []int32
	for _, v := range individuals {
		if f.leaf[v] != nil {
			return nil, errForm("variable %d, which is summed out, is asked about together with others", v)
		}
		list = append(list, int32(v))
	}
	if err := form.find(ctx, p, c, f, list); err != nil {
		return nil, err
	}
	form.fields, err = fieldsOf(ctx, form.interactions, form.partition, weights, maximal)
	if err != nil {
		return nil, err
	}
	if form.fields == nil {
		return nil, fault.New(fault.Unsupported, "exchangeable: weights of at least 0 are needed")
	}
	if form.off = form.kinds.off + form.fields.off; form.off > deviation {
		return nil, errForm("interactions differ by %.1g nats together", form.off)
	}
	return form, nil
}

// find makes the interactions and their terms: those without evidence if no leaf has any.
func (f *form) find(ctx context.Context, p *problem.Problem, c *Classes, of *factors, individuals []int32) (err error) {
	base := p.Base
	if base == nil {
		base = p.Net
	}
	given, err := weightsOf(base)
	if err != nil {
		return err
	}
	ordinary := true
	for _, l := range of.leaf {
		ordinary = ordinary && (l == nil || len(l.others) != 2 || slices.Equal(given[l.variable], f.weights[l.variable]))
	}
	make := func() (*plain, error) {
		m, err := interactionsOf(ctx, of, f.weights, f.maximal)
		if err == nil && m == nil {
			err = fault.New(fault.Unsupported, "exchangeable: weights of at least 0 are needed")
		}
		if err != nil {
			return nil, err
		}
		k, _, err := kindsOf(ctx, m, c.partition(of))
		return &plain{m, k}, err
	}
	var known *plain
	if ordinary {
		known, err = problem.FormOfBase(ctx, p, plainSlot{c, f.maximal}, make)
	} else {
		known, err = make()
	}
	if err != nil {
		return err
	}
	f.interactions = known.interactions
	if known.kinds != nil && len(individuals) == 0 {
		f.kinds = known.kinds
		return nil
	}
	own := f.partition
	for range mostRounds {
		if len(individuals) > mostIndividuals {
			break
		}
		f.partition = own.withIndividuals(individuals)
		k, deviating, err := kindsOf(ctx, f.interactions, f.partition)
		if err != nil {
			return err
		}
		if k != nil {
			f.kinds = k
			return nil
		}
		before := len(individuals)
		individuals = slices.Concat(individuals, deviating)
		slices.Sort(individuals)
		if individuals = slices.Compact(individuals); len(individuals) == before {
			break
		}
	}
	return errForm("tables of the variables of a class differ")
}

// size is the number of count vectors, with the counts of all groups apart or, where that is possible and fewer, not.
func (f *form) size(split bool) float64 {
	size := 1.0
	for c, groups := range f.fields.groups {
		own := splitSize(groups)
		if !split && len(groups) > 1 {
			own = min(own, boxSize(groups, f.values(c)))
		}
		size *= own
	}
	return size
}

// values is the number of values of a class's variables.
func (f *form) values(class int) int { return len(f.fields.groups[class][0].field) }

// work is the flops of a sum, with marginals or without.
func (f *form) work(split bool) float64 {
	lists := 0.0
	for c, groups := range f.fields.groups {
		if own, merged := splitSize(groups), boxSize(groups, f.values(c)); split || len(groups) == 1 || own <= merged {
			lists += own * float64(8*f.values(c)*len(groups))
		} else {
			for _, g := range groups {
				lists += 10 * merged * compositions(len(g.variables), len(g.support))
			}
		}
	}
	return 10*lists + f.size(split)*(40+12*float64(len(f.kinds.terms)+len(f.kinds.forbidden)))
}

// fits refuses a sum over too many count vectors.
func (f *form) fits(split bool, memory int64) error {
	if n := f.size(split); n > mostVectors || n*2*vectorBytes > float64(memory) {
		return errForm("%.3g count vectors take %.3g bytes, at most %d vectors and %d bytes are taken", n, n*2*vectorBytes, mostVectors, memory)
	}
	return nil
}

// lists returns the lists of all classes.
func (f *form) lists(ctx context.Context, split bool) ([]*list, error) {
	most := 1
	for _, groups := range f.fields.groups {
		for _, g := range groups {
			most = max(most, len(g.variables))
		}
	}
	table := factorialsUpTo(most)
	var lists []*list
	for c, groups := range f.fields.groups {
		makeList := splitList
		if !split && len(groups) > 1 && splitSize(groups) > boxSize(groups, f.values(c)) {
			makeList = mergedList
		}
		l, err := makeList(ctx, groups, f.values(c), table)
		if err != nil {
			return nil, err
		}
		lists = append(lists, l)
	}
	return lists, nil
}

// sum adds up all count vectors.
func (f *form) sum(ctx context.Context, split bool, threads int, memory int64) (*total, error) {
	if err := f.fits(split, memory); err != nil {
		return nil, err
	}
	lists, err := f.lists(ctx, split)
	if err != nil {
		return nil, err
	}
	return sumOver(ctx, f.kinds, lists, f.fields.constant, f.maximal, threads)
}

// doubt says why a sum is not exact: the certified error of ln Z is more than 1e-10 and 2^-50 of it. No term is below 0.
func (f *form) doubt(t *total) string {
	if e := f.off + math.Ldexp(t.steps, -53); e > deviation+math.Ldexp(math.Abs(t.lnZ().float()), -50) {
		return fmt.Sprintf("ln Z may be off by %.1g", e)
	}
	return ""
}
