// The tables of a variable: of a Bayesian network P(variable | parents), of another model the factors that it is in.

import { h } from './dom.js'
import { count, digits, whole } from './format.js'
import { childrenOf } from './layout.js'

const most = { entries: 1 << 20, rows: 64, factors: 8 }

// tables returns a function that shows those of a variable in an element. load reads the model with its numbers, once.
export function tables(graph, of, load) {
  const children = graph.bayes ? childrenOf(graph) : null
  const entries = graph.factors.reduce((sum, f) => sum + (f.kind === 'dense' ? size(graph, f.scope) : 0), 0)
  let factors = null
  return async function show(v, evidence) {
    if (entries > most.entries) return h('p', { class: 'hint' }, `The tables of this model have ${whole(entries)} entries, too many for a page.`)
    factors ||= load().then(model => model.factors)
    const all = await factors.catch(err => {
      factors = null
      throw err
    })
    const own = all.flatMap((f, k) => (children ? children[k] === v : f.scope.includes(v)) ? [k] : [])
    if (!own.length) return h('p', { class: 'hint' }, 'No factor has this variable.')
    return h('div', {}, own.slice(0, most.factors).map(k => table(graph, of, all[k], v, evidence, !!children)),
      own.length > most.factors ? h('p', { class: 'hint' }, `The first ${most.factors} of ${count(own.length, 'factor')}.`) : null)
  }
}

const size = (graph, scope) => scope.reduce((n, v) => n * graph.variables[v].domain, 1)

// table is one factor: a row per assignment of the others, a column per value of v.
function table(graph, of, factor, v, evidence, conditional) {
  const others = factor.scope.filter(u => u !== v)
  const rows = size(graph, others)
  const names = others.map(of.name).join(', ')
  const plain = 'Factor of ' + factor.scope.map(of.name).join(', ')
  const entry = entryOf(graph, factor)
  if (!entry) return h('p', { class: 'hint' }, plain + ' is given by counts of values, not row by row.')
  const states = Array.from({ length: graph.variables[v].domain }, (_, x) => x)
  const known = others.some(u => evidence.get(u)?.value !== undefined)
  let sums = conditional // a file may call a table conditional whose rows do not sum to 1
  const body = Array.from({ length: Math.min(rows, most.rows) }, (_, row) => {
    const at = assignment(graph, others, row)
    const now = known && others.every(u => evidence.get(u)?.value === undefined || evidence.get(u).value === at.get(u))
    const values = states.map(x => entry(at.set(v, x)))
    sums &&= Math.abs(values.reduce((a, b) => a + b) - 1) < 1e-6
    return h('tr', { class: now ? 'now' : null }, others.map(u => h('th', { scope: 'row' }, of.state(u, at.get(u)))),
      values.map(p => h('td', { class: 'number' }, digits(p, 6))))
  })
  const title = sums ? `P(${of.name(v)}${others.length ? ' | ' + names : ''})` : plain
  return h('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': title }, h('table', { class: 'list numbers' }, h('caption', {}, title),
    h('thead', {}, h('tr', {}, others.map(u => h('th', { scope: 'col' }, of.name(u))), states.map(x => h('th', { scope: 'col', class: 'number' }, of.state(v, x))))),
    h('tbody', {}, body)), rows > most.rows ? h('p', { class: 'hint' }, `The first ${most.rows} of ${whole(rows)} rows.`) : null)
}

// assignment is row number row of all assignments of some variables, the last of them fastest.
function assignment(graph, variables, row) {
  const at = new Map()
  for (const v of variables.slice().reverse()) {
    const { domain } = graph.variables[v]
    at.set(v, row % domain)
    row = Math.floor(row / domain)
  }
  return at
}

// entryOf returns a function from an assignment to the entry there; null for factors that are given by counts.
function entryOf(graph, { scope, dense, cp }) {
  if (dense) return at => dense.values[scope.reduce((n, v) => n * graph.variables[v].domain + at.get(v), 0)]
  if (!cp) return null
  return at => cp.weights.reduce((sum, weight, t) => sum + scope.reduce((product, v, l) => {
    const x = at.get(v)
    return product * (cp.vectors[l] ? cp.vectors[l][t][x] : Number(t === x))
  }, weight), 0)
}
