"""The parts of pgmpy's and pyAgrum's documented interfaces that the conversion needs, for machines without them."""

import itertools


class Array:
    """An n-dimensional array, row-major."""

    def __init__(self, shape, flat):
        self.shape, self._flat = tuple(shape), list(flat)

    def ravel(self):
        return Array((len(self._flat),), self._flat)

    def tolist(self):
        assert len(self.shape) == 1
        return list(self._flat)


class TabularCPD:
    """P(variable | evidence): a row of values per state, the last evidence variable fastest along the columns."""

    def __init__(self, variable, variable_card, values, evidence=(), evidence_card=(), state_names=None):
        self.variable = variable
        self.variables = [variable, *evidence]
        self.cardinality = [variable_card, *evidence_card]
        self.values = Array(self.cardinality, itertools.chain(*values))
        self.state_names = state_names or {v: list(range(c)) for v, c in zip(self.variables, self.cardinality)}


class DiscreteFactor:
    def __init__(self, variables, cardinality, values, state_names=None):
        self.variables, self.cardinality = list(variables), list(cardinality)
        self.values = Array(cardinality, values)
        self.state_names = state_names or {v: list(range(c)) for v, c in zip(variables, cardinality)}

    def scope(self):
        return self.variables


class DiscreteBayesianNetwork:
    def __init__(self, nodes, cpds):
        self._nodes, self._cpds = nodes, cpds

    def nodes(self):
        return self._nodes

    def get_cpds(self, node=None):
        return self._cpds

    def get_markov_blanket(self, node):
        raise AssertionError("is not needed")


class MarkovNetwork:
    def __init__(self, factors):
        self._factors = factors

    def get_factors(self, node=None):
        return self._factors


class LabelizedVariable:
    def __init__(self, name, labels):
        self._name, self._labels = name, tuple(labels)

    def name(self):
        return self._name

    def domainSize(self):
        return len(self._labels)

    def label(self, i):
        return self._labels[i]


class Tensor:
    """A table whose first variable varies fastest; toarray has the axes in the other sequence."""

    def __init__(self, variables, values):
        self._variables, self._values = variables, values

    def nbrDim(self):
        return len(self._variables)

    def variable(self, i):
        return self._variables[i]

    def toarray(self):
        return Array([v.domainSize() for v in reversed(self._variables)], self._values)


class BayesNet:
    def __init__(self, tensors):
        self._tensors = tensors

    def nodes(self):
        return set(range(len(self._tensors)))

    def variable(self, node):
        return self._tensors[node].variable(0)

    def cpt(self, node):
        return self._tensors[node]
