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

// errForm returns the error over budget that says why a network is no function of few counts.
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
	individuals string // the variables that are asked about together, as text
	isMaximal   bool   // the most probable assignment is asked for
}

// slots of forms: of a problem, and of its network without evidence.
type (
	formSlot         struct{ question }
	factorsSlot      struct{ memory int64 }
	interactionsSlot struct {
		memory    int64
		isMaximal bool
	}
	kindsSlot struct {
		classes   *Classes
		isMaximal bool
	}
)

// weightsOf returns the weights of a network's variables, by variable and value. It returns an error if a link is no list of weights.
func weightsOf(net *btn.Network) ([][]float64, error) {
	weights := make([][]float64, len(net.Variables))
	for v, variable := range net.Variables {
		cp, ok := net.Links[variable.Link].T.(*tensor.CP)
		if !ok {
			return nil, fault.New(fault.Internal, "exchangeable: the link of variable %d is no list of weights", v)
		}
		weights[v] = cp.Weights
	}
	return weights, nil
}

// formOf returns the form of a problem's network for a part. It is made once for the part's classes and each question. individuals are
// variables that become classes of their own. isMaximal is for the most probable assignment: leaves are maximised over. The error is over
// budget if the network is no function of few counts.
func formOf(ctx context.Context, p *problem.Problem, part *Sum, individuals []int, isMaximal bool) (*form, error) {
	slot := formSlot{question{fmt.Sprint(individuals), isMaximal}}
	return problem.Form(ctx, p, slot, part.Classes, func() (*form, error) {
		return newForm(ctx, p, part.Classes, individuals, isMaximal)
	})
}

// newForm makes the form that formOf returns: it reads the tables, and finds the interactions, their kinds and the fields, which are the
// weights of single variables. individuals are variables that are asked about together; each becomes a class of its own. With isMaximal
// leaves, the variables that are summed out, are maximised over instead.
func newForm(ctx context.Context, p *problem.Problem, c *Classes, individuals []int, isMaximal bool) (*form, error) {
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
	f := &form{weights: weights, isMaximal: isMaximal, partition: c.partition(tables)}
	if f.partition == nil { // the leaves are others than when the classes were found
		return nil, fault.Wrap(fault.BadInput, btn.Misfit("other variables are summed out than in the network"))
	}
	var ownClasses []int32
	for _, v := range individuals {
		if tables.leafOf[v] != nil {
			return nil, errForm("variable %d, which is summed out, is asked about together with others", v)
		}
		ownClasses = append(ownClasses, int32(v))
	}
	if err := f.findInteractions(ctx, p, tables, c, ownClasses); err != nil {
		return nil, err
	}
	f.fields, err = fieldsOf(ctx, f.interactions, f.partition, weights, isMaximal)
	if err != nil {
		return nil, err
	}
	if f.fields == nil {
		return nil, errNegative
	}
	f.lnError = f.kinds.lnError + f.fields.lnError
	if f.lnError > deviation {
		return nil, errForm("interactions differ by %.1g nats together", f.lnError)
	}
	return f, nil
}

// errNegative says that a weight is below 0.
var errNegative = fault.New(fault.Unsupported, "exchangeable: weights of at least 0 are needed")

// factorsIn returns the tables of a problem's network, which are read once for all evidence. It returns nil if they are no plain tables.
func factorsIn(ctx context.Context, p *problem.Problem) (*factors, error) {
	return problem.FormOfBase(ctx, p, factorsSlot{p.Memory}, func() (*factors, error) { return factorsOf(ctx, baseOf(p), p.Memory) })
}

// interactionsIn returns the interactions of a problem's network without evidence. They are found once and kept for all problems of that
// network. With isMaximal, for the most probable assignment, leaves are maximised over and not summed out.
func interactionsIn(ctx context.Context, p *problem.Problem, f *factors, isMaximal bool) (*interactions, error) {
	return problem.FormOfBase(ctx, p, interactionsSlot{p.Memory, isMaximal}, func() (*interactions, error) {
		weights, err := weightsOf(baseOf(p))
		if err != nil {
			return nil, err
		}
		return interactionsOf(ctx, f, weights, isMaximal, p.Memory)
	})
}

// baseOf returns a problem's network without evidence.
func baseOf(p *problem.Problem) *btn.Network {
	if p.Base == nil {
		return p.Net
	}
	return p.Base
}

// findInteractions sets the form's interactions, partition and kinds. The interactions are those without evidence, unless evidence changes
// the weights of a leaf of two neighbours. individuals become classes of their own, and so do variables whose tables deviate from those of
// their class.
func (f *form) findInteractions(ctx context.Context, p *problem.Problem, tables *factors, c *Classes, individuals []int32) error {
	isBase, err := f.hasBaseLeaves(p, tables)
	if err != nil {
		return err
	}
	if isBase {
		f.interactions, err = interactionsIn(ctx, p, tables, f.isMaximal)
	} else {
		f.interactions, err = interactionsOf(ctx, tables, f.weights, f.isMaximal, p.Memory)
	}
	if err != nil {
		return err
	}
	if f.interactions == nil {
		return errNegative
	}

	// Without individuals and evidence the kinds are found once.
	if isBase && len(individuals) == 0 {
		classes := f.partition
		f.kinds, err = problem.FormOfBase(ctx, p, kindsSlot{c, f.isMaximal}, func() (*kinds, error) {
			k, _, err := kindsOf(ctx, f.interactions, classes)
			return k, err
		})
		if err != nil || f.kinds != nil { // nil: the tables of the variables of a class differ
			return err
		}
	}
	return f.isolateDeviating(ctx, individuals)
}

// hasBaseLeaves reports whether all leaves with two neighbours have the weights that they have without evidence. Then the interactions are
// those without evidence, too: they contain sums over these leaves, and no other weights.
func (f *form) hasBaseLeaves(p *problem.Problem, tables *factors) (bool, error) {
	baseWeights, err := weightsOf(baseOf(p))
	if err != nil {
		return false, err
	}
	return !slices.ContainsFunc(tables.leafOf, func(l *leaf) bool {
		return l != nil && len(l.neighbours) == 2 && !slices.Equal(baseWeights[l.variable], f.weights[l.variable])
	}), nil
}

// isolateDeviating makes classes of their own of individuals, and of more variables until the tables of each class are equal. It sets
// the form's partition and kinds.
func (f *form) isolateDeviating(ctx context.Context, individuals []int32) error {
	classes := f.partition
	for range maxRounds {
		if len(individuals) > maxIndividuals {
			break
		}
		f.partition = classes.withIndividuals(individuals)
		k, deviating, err := kindsOf(ctx, f.interactions, f.partition) // k is nil if the tables of the deviating variables differ
		if err != nil {
			return err
		}
		if k != nil {
			f.kinds = k
			return nil
		}
		countBefore := len(individuals)
		individuals = slices.Concat(individuals, deviating)
		slices.Sort(individuals)
		individuals = slices.Compact(individuals)
		if len(individuals) == countBefore { // more individuals do not help
			break
		}
	}
	return errForm("tables of the variables of a class differ")
}

// vectorCount returns the number of count vectors of all classes together. A count vector of a class says how many of its variables have
// each value. With splits it says so for every group of the class, the variables with the same weights.
func (f *form) vectorCount(splits bool) float64 {
	count := 1.0
	for class := range f.fields.groups {
		vectors, _ := f.listSize(class, splits)
		count *= vectors
	}
	return count
}

// listSize returns the number of count vectors of a class, and the bytes of their list. A group is the variables of the class with the same
// weights. With splits a vector has the counts of every group. Without, the list may be merged (isMerged): it then has only the counts of
// the class, and is made by products of the groups' polynomials.
func (f *form) listSize(class int, splits bool) (vectors, bytes float64) {
	groups, values := f.fields.groups[class], float64(f.values(class))
	if f.isMerged(class, splits) {
		vectors = boxSize(groups, f.values(class))
		return vectors, vectors * (24*float64(len(groups)) + 8*values) // a product for each group, and the vector
	}
	vectors = splitSize(groups)
	return vectors, vectors * (32 + 4*values*float64(1+len(groups))) // two logarithms, and the counts of the class and of each group
}

// isMerged reports whether a class has a merged list of count vectors, which adds up the ways to divide the class's counts among its
// groups. It has one if the counts of every group are not needed (splits) and the merged list is smaller.
func (f *form) isMerged(class int, splits bool) bool {
	groups := f.fields.groups[class]
	return !splits && len(groups) > 1 && boxSize(groups, f.values(class)) < splitSize(groups)
}

// values returns the number of values of a class's variables.
func (f *form) values(class int) int { return len(f.fields.groups[class][0].field) }

// sumFlops returns the flops of a sum over all count vectors. splits is that of vectorCount.
func (f *form) sumFlops(splits bool) float64 {
	return f.listFlops(splits) + f.vectorCount(splits)*(40+12*float64(len(f.kinds.terms)+len(f.kinds.forbidden))) // 40 for an exponential
}

// listFlops returns the flops of making the lists of count vectors of all classes. A group is the variables of a class with the same
// weights. A list whose vectors have the counts of every group, as all have with splits, takes about 80 for each vector, value and group. A
// merged list (isMerged) is a product over the groups: about 100 for each vector of the list and each of a group.
func (f *form) listFlops(splits bool) (flops float64) {
	for class, groups := range f.fields.groups {
		vectors, _ := f.listSize(class, splits)
		if !f.isMerged(class, splits) {
			flops += 80 * vectors * float64(f.values(class)*len(groups))
			continue
		}
		for _, g := range groups {
			flops += 100 * vectors * compositions(len(g.variables), len(g.support))
		}
	}
	return flops
}

// checkSize returns an error if a sum over all count vectors has more than maxVectors or takes more bytes than memory: for the terms, for
// the lists of the classes, and for sides.basis, the numbers of ways to meet conditions on inner classes (basisBytes). With splits a vector
// has the counts of every group of a class, the variables with the same weights.
func (f *form) checkSize(splits bool, memory int64) error {
	n := f.vectorCount(splits)
	bytes := 2 * vectorBytes * n // twice what the terms take
	sizes := make([]float64, len(f.fields.groups))
	for class := range sizes {
		vectors, listBytes := f.listSize(class, splits)
		sizes[class] = vectors
		bytes += listBytes
	}
	inner, _ := innerClasses(sizes)
	innerVectors := 1.0
	for _, class := range inner {
		innerVectors *= sizes[class]
	}
	bytes += basisBytes(f.kinds, inner, innerVectors)
	if !(n <= maxVectors && bytes <= float64(memory)) {
		return errForm("%.3g count vectors take %.3g bytes: more than %d vectors or %d bytes", n, bytes, maxVectors, memory)
	}
	return nil
}

// eliminationWithin returns the sequence in which the classes are summed out one after the other. It returns nil if a list of count vectors
// or a table is too large. With splits a vector has the counts of every group of a class, the variables with the same weights.
func (f *form) eliminationWithin(splits bool, memory int64) *elimination {
	sizes := make([]float64, len(f.fields.groups))
	bytes := 0.0
	for class := range sizes {
		var listBytes float64
		sizes[class], listBytes = f.listSize(class, splits)
		if bytes += listBytes + basisBytes(f.kinds, []int{class}, sizes[class]); !(sizes[class] <= maxListed) {
			return nil
		}
	}
	elimination := chooseElimination(f.kinds, sizes, f.classPairs())
	if !(elimination.largest <= maxVectors && bytes+vectorBytes*elimination.size <= float64(memory)) {
		return nil
	}
	return elimination
}

// makeLists returns the lists of count vectors, by class. With splits a vector has the counts of every group of a class, the variables with
// the same weights.
func (f *form) makeLists(ctx context.Context, splits bool) ([]*list, error) {
	largest := 1
	for _, groups := range f.fields.groups {
		for _, g := range groups {
			largest = max(largest, len(g.variables))
		}
	}
	factorials := factorialsUpTo(largest)
	var lists []*list
	for c, groups := range f.fields.groups {
		makeList := splitList
		if f.isMerged(c, splits) {
			makeList = mergedList
		}
		l, err := makeList(ctx, groups, f.values(c), factorials)
		if err != nil {
			return nil, err
		}
		lists = append(lists, l)
	}
	return lists, nil
}

// sum adds up the terms of the count vectors from share.From to share.To, in units of 1/WholeShare of their number. A class is variables
// that may be swapped with each other, and a count vector says how many of the variables of each class have each value. A group is the
// variables of a class with the same weights. With splits a vector has the counts of every group, not only those of the class: marginals of
// leaves need them, and samples and the most probable assignment.
func (f *form) sum(ctx context.Context, splits bool, share *Sum, threads int, memory int64) (*summedForm, error) {
	if err := f.checkSize(splits, memory); err != nil {
		return nil, err
	}
	lists, err := f.makeLists(ctx, splits)
	if err != nil {
		return nil, err
	}
	t, err := sumOver(ctx, f, lists, share, threads)
	return &summedForm{f, t}, err
}
