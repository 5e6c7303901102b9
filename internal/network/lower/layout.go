package lower

// Layout: a network as raw tables over nodes, before anything is copied.

import (
	"context"
	"slices"

	"github.com/basetensor/basetensor/internal/base/arena"
	"github.com/basetensor/basetensor/internal/base/pace"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// form tells how a layout writes the tensors of a network. The zero value is the form of Build.
type form struct {
	// isWide: every entry of the network is kept exactly. Tables have exponents if float64 does not hold their entries, chains count
	// without merging states, and maps are tables.
	isWide bool
	chains *coreChains // CP tensors that are chains without signs; nil: every CP tensor is a star
}

// rawTable is a table that shares its entries with the network. Its modes are nodes of the layout: legs, and hidden indices of the tensors.
type rawTable struct {
	nodes []int
	dims  []int // by mode, of the stored data
	data  []float64
	exp   []int64 // entry k is data[k]·2^exp[k]; nil: data[k]. Only wide layouts have exponents
	// pendingMaps[k] is a matrix over (nodes[k], mode k of data) that is still to be applied along mode k, nil for none.
	// The list is nil if no matrix is to be applied.
	pendingMaps []*rawTable
	isMatrix    bool // rank × dimension: row i has term i's vector on a leg of a CP tensor
	isAbsorbed  bool // it is among the maps of another table, and no table of the expression

	rounded  bool // see sumproduct.Table.Rounded
	isQueued bool // of removeUnsupportedValues
}

// layout is a network as raw tables over nodes. The nodes are numbered: first the legs, then the hidden indices of the links, then those of
// the cores, each in their sequence. Some nodes are merged into one index; the root of a node stands for all nodes of its index.
type layout struct {
	form
	dims         []int // by node
	parent       []int // by node: its parent in a union-find forest; a root is its own parent
	tables       []*rawTable
	scale        scaled.Number
	indexOf      []int // by root: the number of its index, −1 if no table has it
	indexCount   int
	legCount     int      // nodes below it are legs
	hiddenNode   []int    // by link: its hidden index, if the link is in CP form
	hasMatrices  bool     // some table is a matrix
	isAlive      [][]bool // by root, by value: whether it is not excluded. An inner nil: all values are alive; a nil list: all of all roots
	isZero       bool     // Z is known to be 0
	pace         *pace.Pace
	counterNodes []int  // nodes whose values the variables decide
	unfit        string // why float64 does not hold every entry; empty if it does

	ints          arena.Slab[int]
	scopes        arena.Slab[int] // scopes of the tables that are made of the layout
	rawTables     arena.Slab[rawTable]
	supportBuffer []bool // buffer of supportedValues
}

// newLayout splits every tensor of net into raw tables, merges nodes into indices and numbers the indices, and excludes values that have
// zeros only. The numbering depends on the forms, shapes and identities of the tensors, never on entries, so that an elimination order
// stays valid under evidence.
//
// A wide layout (f.isWide) keeps every entry exactly. Another layout may be unfit: float64 does not hold all of its entries.
func newLayout(ctx context.Context, net *btn.Network, f form) (*layout, error) {
	l, err := newLinkLayout(ctx, net, f)
	if err != nil {
		return nil, err
	}
	for c, core := range net.Cores {
		if err := l.addTensor("core", c, core.Legs, core.T); err != nil {
			return nil, err
		}
	}

	if l.pace.Over(0) { // the context has ended, and the tables are incomplete
		return nil, l.pace.Err()
	}

	if !f.isWide {
		l.absorbMatrices() // marks matrices of maps that applyMaps multiplies into other tables
	}
	l.numberIndices()
	if !l.isZero {
		l.applyMaps()
		l.removeUnsupportedValues()
	}
	return l, l.pace.Err()
}

// newLinkLayout returns a layout of the links of net. The cores are still to be added. Nodes are the legs and the hidden indices of the
// links. The error is that of the context or of Network.Validate.
func newLinkLayout(ctx context.Context, net *btn.Network, f form) (*layout, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := net.Validate(); err != nil {
		return nil, err
	}

	l := newEmptyLayout(ctx, net, f)
	for j, link := range net.Links {
		l.hiddenNode = append(l.hiddenNode, len(l.parent)) // the next node: for a link in CP form addStar makes its hidden node first
		firstTable := len(l.tables)
		if err := l.addTensor("link", j, link.Legs, link.T); err != nil {
			return nil, err
		}
		hasTables := len(l.tables) > firstTable
		if hasTables && slices.Contains(net.Rounded, j) {
			l.tables[firstTable].rounded = true // evidence has rounded the link's weights, which are in its first table
		}
	}
	return l, nil
}

// newEmptyLayout returns a layout whose nodes are the legs of net, each an index of its own, and which has no tables yet.
func newEmptyLayout(ctx context.Context, net *btn.Network, f form) *layout {
	nodeRoom := len(net.Dims) + len(net.Links)   // enough for most networks
	tableRoom := len(net.Links) + len(net.Cores) // also enough for most
	l := &layout{
		form:       f,
		dims:       append(make([]int, 0, nodeRoom), net.Dims...),
		parent:     make([]int, len(net.Dims), nodeRoom),
		legCount:   len(net.Dims),
		tables:     make([]*rawTable, 0, tableRoom),
		hiddenNode: make([]int, 0, len(net.Links)),
		scale:      net.Scale,
		isZero:     net.Scale.IsZero(),
		pace:       pace.New(ctx),
	}
	for i := range l.parent {
		l.parent[i] = i
	}
	return l
}

// tableWork is the cost of a table in addition to that of its entries. The unit is an operation on an entry.
const tableWork = 16

// addTensor adds the raw tables of t, which is core or link number position: a dense tensor is a table, a CP tensor a star (tables over
// its legs that share a hidden index, the term) or a chain, a symmetric one a chain. kind is "core" or "link".
func (l *layout) addTensor(kind string, position int, legs []int, t tensor.Tensor) error {
	if l.pace.Over(int64(tableWork + len(legs))) {
		return l.pace.Err()
	}
	switch t := t.(type) {
	case *tensor.Dense:
		l.addTable(legs, rawTable{dims: t.Shape, data: t.Data})
	case *tensor.CP:
		mayBeChain := kind == "core" && l.chains != nil
		if !mayBeChain || !l.addUnsignedChain(position, legs, t) {
			l.addStar(legs, t)
		}
	case *tensor.Symmetric:
		return l.addSymmetric(&symmetricSum{
			kind: kind, position: position, legs: legs, dims: t.Shape, levels: t.Levels,
			terms: []tensor.SymmetryRankOne{{Alpha: 1, S: t.Values}},
		})
	case *tensor.SymmetryCP:
		return l.addSymmetric(&symmetricSum{
			kind: kind, position: position, legs: legs, dims: t.Shape, levels: t.Levels, terms: t.Terms,
		})
	}
	return nil
}

// addSymmetric adds the tables of s as a chain of counters: a plain one, whose tables have the numbers of s as they are, in a wide layout,
// otherwise one with merged states. The network is 0 if s has no terms.
func (l *layout) addSymmetric(s *symmetricSum) error {
	if len(s.terms) == 0 {
		l.isZero = true
		return nil
	}
	if l.isWide {
		return l.addPlainChain(s)
	}
	return l.addChain(s)
}

// addStar adds the tables of a CP tensor: its weights over one hidden index, and a matrix (hidden index, leg) per leg. A leg whose vectors
// are the identity is merged with the hidden index. The network is 0 if the tensor has no terms.
// Source: P. Savický and J. Vomlel,
// Exploiting tensor rank-one decomposition in probabilistic inference (2007).
func (l *layout) addStar(legs []int, t *tensor.CP) {
	rank := len(t.Weights)
	hidden := l.addNode(rank)
	if rank == 0 {
		l.isZero = true
		return
	}
	l.addTable([]int{hidden}, rawTable{dims: l.ints.Copy([]int{rank}), data: t.Weights})
	for k, leg := range legs {
		vectors := t.Vectors[k]
		if isIdentity := vectors == nil; isIdentity {
			l.parent[l.root(leg)] = l.root(hidden) // leg and hidden are one index now
			continue
		}
		l.addTable([]int{hidden, leg}, rawTable{
			dims:     l.ints.Copy([]int{rank, t.Shape[k]}),
			data:     vectors,
			isMatrix: true,
		})
		l.hasMatrices = true // absorbMatrices may apply them to other tables
	}
}

// addNode adds a node with dim values, or with one value if dim is 0, and returns its number. The node is an index of its own at first.
func (l *layout) addNode(dim int) int {
	l.dims = append(l.dims, max(dim, 1))
	l.parent = append(l.parent, len(l.parent))
	return len(l.parent) - 1
}

// addTable adds a copy of t to the tables of the layout. nodes are its modes.
func (l *layout) addTable(nodes []int, t rawTable) {
	added := &l.rawTables.Make(1)[0]
	*added = t
	added.nodes = l.ints.Copy(nodes)
	l.tables = append(l.tables, added)
}

// root returns the node that stands for all nodes of the index of a node: the root of its tree in the union-find forest. It shortens the
// path to the root for later calls.
func (l *layout) root(node int) int {
	for l.parent[node] != node {
		l.parent[node] = l.parent[l.parent[node]]
		node = l.parent[node]
	}
	return node
}

// absorbMatrices removes legs that only join a matrix of a CP tensor with one other table: such a matrix is marked to be applied to that
// table. It tries either table of the leg as the matrix. So a reparameterised network with its maps becomes a network over the original
// variables again.
func (l *layout) absorbMatrices() {
	if !l.hasMatrices {
		return
	}
	for _, modes := range l.modesOfLegs() {
		if l.pace.Over(tableWork) {
			return
		}
		joinsTwoTables := len(modes) == 2 && modes[0].table != modes[1].table
		if !joinsTwoTables {
			continue
		}
		if isAbsorbed := l.absorbMatrix(modes[0].table, modes[1]); !isAbsorbed {
			l.absorbMatrix(modes[1].table, modes[0])
		}
	}
}

// tableMode is one mode of a table.
type tableMode struct {
	table *rawTable
	mode  int
}

// modesOfLegs returns for every leg the modes of tables that are that leg. The list is empty for a leg that was merged with other nodes
// into an index. A node is merged if it is not its own parent, or if it is the root of another node. Nodes below legCount are the legs.
func (l *layout) modesOfLegs() [][]tableMode {
	isMerged := make([]bool, len(l.parent)) // by root: its index has more than one node
	for node := range l.parent {
		if root := l.root(node); root != node {
			isMerged[root] = true
		}
	}

	modes := make([][]tableMode, l.legCount)
	for _, t := range l.tables {
		for k, node := range t.nodes {
			isLeg := node < l.legCount
			if isLeg && l.parent[node] == node && !isMerged[node] {
				modes[node] = append(modes[node], tableMode{t, k})
			}
		}
	}

	return modes
}

// absorbMatrix notes that m, a matrix over (hidden index, leg), is to be applied to the mode target of another table, which is the same
// leg. The mode's node becomes the hidden index, and m is no table of the expression any more; pendingMaps keeps it until applyMaps. It
// returns false and changes nothing if m is no matrix of a CP tensor, has more rows than columns (the table would grow), has matrices to
// be applied itself, or if the table already has the hidden index.
func (l *layout) absorbMatrix(m *rawTable, target tableMode) bool {
	hidden := m.nodes[0]
	if !m.isMatrix || m.dims[0] > m.dims[1] || m.pendingMaps != nil || l.hasIndex(target.table, hidden) {
		return false
	}
	if target.table.pendingMaps == nil {
		target.table.pendingMaps = make([]*rawTable, len(target.table.nodes))
	}
	target.table.pendingMaps[target.mode] = m
	target.table.nodes[target.mode] = hidden
	m.isAbsorbed = true
	return true
}

// hasIndex reports whether some mode of t belongs to the same index as node.
func (l *layout) hasIndex(t *rawTable, node int) bool {
	for _, tableNode := range t.nodes {
		if l.root(tableNode) == l.root(node) {
			return true
		}
	}
	return false
}

// numberIndices numbers the indices of the tables that are not absorbed, in the sequence of their first nodes: hidden nodes of links,
// hidden nodes of cores, then legs. indexOf is the number by root, the node that stands for all nodes of an index, or −1.
func (l *layout) numberIndices() {
	isUsed := make([]bool, len(l.parent)) // by root: a table has its index
	for _, t := range l.tables {
		if !t.isAbsorbed {
			for _, node := range t.nodes {
				isUsed[l.root(node)] = true
			}
		}
	}

	l.indexOf = make([]int, len(l.parent))
	for i := range l.indexOf {
		l.indexOf[i] = -1
	}

	for i := range l.parent {
		node := (i + l.legCount) % len(l.parent) // first the hidden nodes, from legCount on, then the legs
		root := l.root(node)
		if isUsed[root] && l.indexOf[root] < 0 {
			l.indexOf[root] = l.indexCount
			l.indexCount++
		}
	}
}
