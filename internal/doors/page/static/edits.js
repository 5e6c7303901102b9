// Tables that somebody edits on the page. Questions are asked of a copy of the model that has them; the stored model stays as it is. The
// edits of a model are there until the page is loaded anew.

const kept = new Map() // by the path of the model: its edits by factor

const slack = 1e-6 // by which the sum of a row may miss 1

// editing returns the edits of a model. graph has its variables, load reads it with its numbers; children are the variables that its tables
// are of, null for a model that is no Bayesian network.
export function editing(path, graph, children, load) {
  if (!kept.has(path)) kept.set(path, new Map())
  const edited = kept.get(path)
  let model = null
  let undone = 0
  const conditional = new Map()

  // read reads the model. Edits of a table that is another one by now are forgotten.
  async function read() {
    model ||= load().catch(err => {
      model = null
      throw err
    })
    const { factors } = await model
    for (const [k, edit] of edited) if (edit.was !== JSON.stringify(factors[k])) edited.delete(k)
    return factors
  }

  // wrongRows are the rows of a conditional table whose sums are not 1, by the position of their first entry, with the sum.
  function wrongRows(k, values) {
    return rowSums(graph, graph.factors[k].scope, children[k], values).filter(([, sum]) => !(Math.abs(sum - 1) <= slack))
  }

  // isConditional reports whether the rows of a table sum to 1 in the file: then they have to in an edit.
  function isConditional(k, values) {
    if (!conditional.has(k)) conditional.set(k, !!children && !wrongRows(k, values).length)
    return conditional.get(k)
  }

  return {
    read, isConditional,
    any: () => edited.size > 0,
    list: () => [...edited.keys()].sort((a, b) => a - b),
    values: (k, stored) => edited.get(k)?.values || stored,

    // set changes entries of a table; stored are those of the file, and factor is what the file has.
    set(k, changes, stored, factor) {
      const values = this.values(k, stored).slice()
      for (const [i, x] of changes) values[i] = x
      if (values.every((x, i) => x === stored[i])) edited.delete(k)
      else edited.set(k, { values, was: edited.get(k)?.was || JSON.stringify(factor), conditional: isConditional(k, stored) })
    },
    undo(k) {
      undone++
      edited.delete(k)
    },
    undone: () => undone, // how often something was

    // wrong says why the edited model cannot be asked; empty where it can.
    wrong(titleOf) {
      for (const [k, { values, conditional }] of edited) {
        if (values.some(x => !(x >= 0 && x < Infinity))) return `${titleOf(k)} has an entry that is no number of 0 or more`
        if (conditional && wrongRows(k, values).length) return `${titleOf(k)} has a row that does not sum to 1: normalise it`
        if (!values.some(x => x > 0)) return `${titleOf(k)} is 0 everywhere`
      }
      return ''
    },

    // text is the edited model as a native file.
    async text() {
      const all = await read()
      const factors = all.map((f, k) => edited.has(k) ? { scope: f.scope, dense: { values: edited.get(k).values } } : f)
      return JSON.stringify({ ...await model, factors })
    },
  }
}

// rowSums are the sums over the values of v of a table, by the position of the first entry.
export function rowSums(graph, scope, v, values) {
  const domain = u => graph.variables[u].domain
  const step = scope.slice(scope.indexOf(v) + 1).reduce((n, u) => n * domain(u), 1)
  const sums = []
  for (let i = 0; i < values.length; i++) {
    if (Math.floor(i / step) % domain(v)) continue
    let sum = 0
    for (let x = 0; x < domain(v); x++) sum += values[i + x * step]
    sums.push([i, sum])
  }
  return sums
}
