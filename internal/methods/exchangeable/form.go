package exchangeable

// The form of a network under evidence: classes, groups, and the lists of their counts.

import (
	"context"
	"fmt"
	"slices"

	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/problem"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/tensor"
)

const (
	// deviation bounds how far ln of any entry of the product is off, nats: the certified error of an exact ln Z.
	deviation = 1e-10
	// maxRounds bounds how often variables are taken out of their classes.
	maxRounds = 4
	// maxIndividuals bounds the variables that are taken out of their classes.
	maxIndividuals = 20
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
	weights      [][]float64 // by variable and value, with the evidence
	isMaximal    bool        // for the most probable assignment: the largest terms take the place of sums over leaves
	lnError      float64     // bounds |ln B̃ − ln B| of every entry, nats
}

// question is what a form has to know of a query beside its evidence.
type question struct {
	individuals string // variables that are asked about together
	maximal     bool
}

// slots of forms: of a problem, and of its network without evidence.
type (
	formSlot         struct{ question }
	factorsSlot      struct{ memory int64 }
	interactionsSlot struct {
		memory  int64
		maximal bool
	}
	kindsSlot struct {
		classes *Classes
		maximal bool
	}
)

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

// formOf returns the form of a problem, made once for each question. individuals are variables that become classes of their own. It is over
// budget if the network is no function of few counts.
func formOf(ctx context.Context, p *problem.Problem, part *Sum, individuals []int, maximal bool) (*form, error) {
	slot := formSlot{question{fmt.Sprint(individuals), maximal}}
	return problem.Form(ctx, p, slot, part.Classes, func() (*form, error) {
		return newForm(ctx, p, part.Classes, individuals, maximal)
	})
}

// newForm makes what formOf returns.
func newForm(ctx context.Context, p *problem.Problem, c *Classes, individuals []int, maximal bool) (*form, error) {
	tables, err := factorsIn(ctx, p)
	if err != nil {
		return nil, err
	}
	if tables == nil {
		return nil, errForm("the tables are not plain ones of numbers of at least 0")
	}
	weights, err := weightsOf(p.Net)
	if err != nil {
		return nil, err
	}
	f := &form{weights: weights, isMaximal: maximal, partition: c.partition(tables)}
	if f.partition == nil {
		return nil, fault.Wrap(fault.BadInput, btn.Misfit("other variables are summed out than in the network"))
	}
	var list []int32
	for _, v := range individuals {
		if tables.leafOf[v] != nil {
			return nil, errForm("variable %d, which is summed out, is asked about together with others", v)
		}
		list = append(list, int32(v))
	}
	if err := f.interact(ctx, p, tables, c, list); err != nil {
		return nil, err
	}
	f.fields, err = fieldsOf(ctx, f.interactions, f.partition, weights, maximal)
	if err != nil {
		return nil, err
	}
	if f.fields == nil {
		return nil, errNegative
	}
	if f.lnError = f.kinds.lnError + f.fields.lnError; f.lnError > deviation {
		return nil, errForm("interactions differ by %.1g nats together", f.lnError)
	}
	return f, nil
}

// errNegative says that a weight is below 0.
var errNegative = fault.New(fault.Unsupported, "exchangeable: weights of at least 0 are needed")

// factorsIn returns the tables of a problem's network, read once for all evidence. It returns nil if they are no plain tables.
func factorsIn(ctx context.Context, p *problem.Problem) (*factors, error) {
	return problem.FormOfBase(ctx, p, factorsSlot{p.Memory}, func() (*factors, error) { return factorsOf(ctx, baseOf(p), p.Memory) })
}

// interactionsIn returns the interactions of a problem's network without evidence, made once.
func interactionsIn(ctx context.Context, p *problem.Problem, f *factors, maximal bool) (*interactions, error) {
	return problem.FormOfBase(ctx, p, interactionsSlot{p.Memory, maximal}, func() (*interactions, error) {
		weights, err := weightsOf(baseOf(p))
		if err != nil {
			return nil, err
		}
		return interactionsOf(ctx, f, weights, maximal, p.Memory)
	})
}

// baseOf returns a problem's network without evidence.
func baseOf(p *problem.Problem) *btn.Network {
	if p.Base == nil {
		return p.Net
	}
	return p.Base
}

// interact finds the interactions and their terms. It takes those without evidence if no leaf of a pair has any. Variables whose tables
// deviate from those of their class become individuals, in addition to those given.
func (f *form) interact(ctx context.Context, p *problem.Problem, t *factors, c *Classes, individuals []int32) error {
	given, err := weightsOf(baseOf(p))
	if err != nil {
		return err
	}
	isGiven := !slices.ContainsFunc(t.leafOf, func(l *leaf) bool {
		return l != nil && len(l.neighbours) == 2 && !slices.Equal(given[l.variable], f.weights[l.variable])
	})
	if isGiven {
		f.interactions, err = interactionsIn(ctx, p, t, f.isMaximal)
	} else {
		f.interactions, err = interactionsOf(ctx, t, f.weights, f.isMaximal, p.Memory)
	}
	if err != nil {
		return err
	}
	if f.interactions == nil {
		return errNegative
	}
	classes := f.partition
	if isGiven && len(individuals) == 0 {
		f.kinds, err = problem.FormOfBase(ctx, p, kindsSlot{c, f.isMaximal}, func() (*kinds, error) {
			k, _, err := kindsOf(ctx, f.interactions, classes)
			return k, err
		})
		if err != nil || f.kinds != nil {
			return err
		}
	}
	for range maxRounds {
		if len(individuals) > maxIndividuals {
			break
		}
		f.partition = classes.withIndividuals(individuals)
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

// vectorCount returns the number of count vectors. With split the counts of all groups are apart; otherwise they are merged if that is
// fewer.
func (f *form) vectorCount(split bool) float64 {
	size := 1.0
	for class := range f.fields.groups {
		vectors, _ := f.listSize(class, split)
		size *= vectors
	}
	return size
}

// listSize returns the number of vectors of a class's list, and its bytes.
func (f *form) listSize(class int, split bool) (vectors, bytes float64) {
	groups, values := f.fields.groups[class], float64(f.values(class))
	if f.isMerged(class, split) {
		vectors = boxSize(groups, f.values(class))
		return vectors, vectors * (24*float64(len(groups)) + 8*values)
	}
	vectors = splitSize(groups)
	return vectors, vectors * (32 + 4*values*float64(1+len(groups)))
}

// isMerged reports whether the divisions of a class's counts among its groups are added up: if that is allowed and makes fewer vectors.
func (f *form) isMerged(class int, split bool) bool {
	groups := f.fields.groups[class]
	return !split && len(groups) > 1 && boxSize(groups, f.values(class)) < splitSize(groups)
}

// values returns the number of values of a class's variables.
func (f *form) values(class int) int { return len(f.fields.groups[class][0].field) }

// sumFlops returns the flops of a sum over all count vectors.
func (f *form) sumFlops(split bool) float64 {
	return f.listFlops(split) + f.vectorCount(split)*(40+12*float64(len(f.kinds.terms)+len(f.kinds.forbidden)))
}

// listFlops returns the flops of making all lists.
func (f *form) listFlops(split bool) (flops float64) {
	for class, groups := range f.fields.groups {
		vectors, _ := f.listSize(class, split)
		if !f.isMerged(class, split) {
			flops += 80 * vectors * float64(f.values(class)*len(groups))
			continue
		}
		for _, g := range groups {
			flops += 100 * vectors * compositions(len(g.variables), len(g.support))
		}
	}
	return flops
}

// checkSize returns an error if a sum over all count vectors has too many or takes too many bytes.
func (f *form) checkSize(split bool, memory int64) error {
	n := f.vectorCount(split)
	bytes := 2 * vectorBytes * n
	sizes := make([]float64, len(f.fields.groups))
	for class := range sizes {
		vectors, listBytes := f.listSize(class, split)
		sizes[class] = vectors
		bytes += listBytes
	}
	inner, _ := innerClasses(sizes)
	vectors := 1.0
	for _, class := range inner {
		vectors *= sizes[class]
	}
	bytes += basisBytes(f.kinds, inner, vectors)
	if !(n <= maxVectors && bytes <= float64(memory)) {
		return errForm("%.3g count vectors take %.3g bytes: more than %d vectors or %d bytes", n, bytes, maxVectors, memory)
	}
	return nil
}

// eliminationWithin returns the sequence in which the classes are summed out one after the other. It returns nil if the tables are too
// large.
func (f *form) eliminationWithin(split bool, memory int64) *elimination {
	sizes := make([]float64, len(f.fields.groups))
	bytes := 0.0
	for class := range sizes {
		var listBytes float64
		sizes[class], listBytes = f.listSize(class, split)
		if bytes += listBytes + basisBytes(f.kinds, []int{class}, sizes[class]); !(sizes[class] <= maxListed) {
			return nil
		}
	}
	e := eliminationOf(f.kinds, sizes, f.classPairs())
	if !(e.largest <= maxVectors && bytes+vectorBytes*e.size <= float64(memory)) {
		return nil
	}
	return e
}

// makeLists returns the lists of all classes.
func (f *form) makeLists(ctx context.Context, split bool) ([]*list, error) {
	largest := 1
	for _, groups := range f.fields.groups {
		for _, g := range groups {
			largest = max(largest, len(g.variables))
		}
	}
	table := factorialsUpTo(largest)
	var lists []*list
	for c, groups := range f.fields.groups {
		makeList := splitList
		if f.isMerged(c, split) {
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

// sum adds up the count vectors of a share.
func (f *form) sum(ctx context.Context, split bool, share *Sum, threads int, memory int64) (*summedForm, error) {
	if err := f.checkSize(split, memory); err != nil {
		return nil, err
	}
	lists, err := f.makeLists(ctx, split)
	if err != nil {
		return nil, err
	}
	t, err := sumOver(ctx, f, lists, share, threads)
	return &summedForm{f, t}, err
}
