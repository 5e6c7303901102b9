// The tables of a variable: of a Bayesian network P(variable | parents), of another model the factors that it is in. They can be edited.

import { access } from './api.js'
import { h, put, say } from './dom.js'
import { count, digits, whole } from './format.js'

const most = { entries: 1 << 20, rows: 64, factors: 8 }

// titleOf returns a function that names a factor: as a conditional table where a network has it, or as a factor.
export const titleOf = (graph, of, children) => k => {
  const { scope } = graph.factors[k]
  if (!children) return 'Factor of ' + scope.map(of.shown).join(', ')
  const parents = scope.filter(u => u !== children[k]).map(of.shown)
  return `P(${of.shown(children[k])}${parents.length ? ' | ' + parents.join(', ') : ''})`
}

// tables returns a function that shows those of a variable in an element. edits are the edits of the model; changed is called after one.
export function tables(graph, of, children, edits, changed) {
  const entries = graph.factors.reduce((sum, f) => sum + (f.kind === 'dense' ? size(graph, f.scope) : 0), 0)
  const open = new Set() // factors that are being edited
  let shown = null // the variable, its element, and its tables

  return async function show(v, evidence) {
    if (entries > most.entries) return h('p', { class: 'hint' }, `The tables of this model have ${whole(entries)} entries, too many for a page.`)
    const all = await edits.read()
    if (shown?.v !== v) shown = make(v, all)
    for (const one of shown.list) one.update(evidence)
    return shown.element
  }

  function make(v, all) {
    const factors = all.flatMap((f, k) => (children ? children[k] === v : f.scope.includes(v)) ? [k] : [])
    if (!factors.length) return { v, list: [], element: h('p', { class: 'hint' }, 'No factor has this variable.') }
    const list = factors.slice(0, most.factors).map(k => table(k, all[k], v))
    return { v, list, element: h('div', {}, list.map(one => one.element),
      factors.length > most.factors ? h('p', { class: 'hint' }, `The first ${most.factors} of ${count(factors.length, 'factor')}.`) : null) }
  }

  // table is one factor: a row per assignment of the others, a column per value of v.
  function table(k, factor, v) {
    const others = factor.scope.filter(u => u !== v)
    const entry = entryOf(graph, factor)
    const plain = 'Factor of ' + factor.scope.map(of.shown).join(', ')
    if (!entry) return { element: h('p', { class: 'hint' }, plain + ' is given by counts of values, not row by row.'), update() {} }
    const rows = size(graph, others)
    const states = Array.from({ length: graph.variables[v].domain }, (_, x) => x)
    const stored = valuesOf(graph, factor, entry)
    const sums = !!children && (stored ? edits.isConditional(k, stored) : true)
    const title = sums ? titleOf(graph, of, children)(k) : plain
    const values = stored ? () => edits.values(k, stored) : null
    const lines = Array.from({ length: Math.min(rows, most.rows) }, (_, row) => {
      const at = assignment(graph, others, row)
      return { at, places: states.map(x => placeOf(graph, factor.scope, new Map(at).set(v, x))), said: others.map(u => of.shown(u) + ' = ' + of.state(u, at.get(u))).join(', ') }
    })
    const element = h('div')
    const mark = h('span', { class: 'edited' })
    const takeBack = h('button', { type: 'button', id: 'undo-' + k, onclick: undo, 'aria-label': 'Undo the edits of ' + title }, 'Undo')
    let drawn = 0 // how often edits were undone until it was drawn

    function set(changes) {
      edits.set(k, changes, stored, factor)
      judge()
      changed()
    }

    function undo() {
      edits.undo(k)
      draw()
      document.getElementById('edit-' + k).focus()
      say(title + ' is as it was')
      changed()
    }

    function cell(line, x) {
      const i = line.places[x]
      if (!open.has(k)) return h('td', { class: 'number' + (values && values()[i] !== stored[i] ? ' edited' : '') }, digits(values ? values()[i] : entry(new Map(line.at).set(v, x)), 6))
      const name = `${sums ? 'P(' : ''}${of.shown(v)} = ${of.state(v, x)}${line.said ? (sums ? ' | ' : ', ') + line.said : ''}${sums ? ')' : ''}`
      const input = h('input', {
        id: `entry-${k}-${i}`, inputmode: 'decimal', autocomplete: 'off', 'aria-label': name, value: written(values()[i]),
        oninput: () => {
          const text = input.value.trim().replace(',', '.')
          set([[i, text === '' ? NaN : Number(text)]])
        },
      })
      line.inputs[x] = input
      return h('td', { class: 'number' }, input)
    }

    // judge says at once which rows do not sum to 1, and which entries are no numbers.
    function judge() {
      if (!open.has(k)) return
      for (const line of lines) {
        const now = line.places.map(i => values()[i])
        const bad = now.map(x => !(x >= 0 && x < Infinity))
        const sum = now.reduce((a, b) => a + b, 0)
        line.inputs.forEach((input, x) => {
          input.parentElement.classList.toggle('edited', now[x] !== stored[line.places[x]])
          if (bad[x]) input.setAttribute('aria-invalid', 'true')
          else input.removeAttribute('aria-invalid')
        })
        const off = sums && !(Math.abs(sum - 1) <= 1e-6)
        line.element.classList.toggle('wrong', off || bad.includes(true))
        line.says.hidden = !off && !bad.includes(true)
        line.sum.textContent = bad.includes(true) ? 'a number of 0 or more is needed' : sums ? 'sum ' + digits(sum, 6) : ''
        line.normalise.hidden = !off || bad.includes(true) || !(sum > 0)
      }
    }

    function normalise(line) {
      const now = line.places.map(i => values()[i])
      const sum = now.reduce((a, b) => a + b, 0)
      set(line.places.map((i, x) => [i, now[x] / sum]))
      line.inputs.forEach((input, x) => { input.value = written(values()[line.places[x]]) })
      line.inputs[0].focus()
      say('the row sums to 1')
    }

    function draw() {
      const now = open.has(k)
      drawn = edits.undone()
      const body = lines.map(line => {
        line.inputs = []
        line.sum = h('span', { role: 'status' })
        line.normalise = h('button', { type: 'button', hidden: true, onclick: () => normalise(line), id: `normalise-${k}-${line.places[0]}`,
          'aria-label': 'Normalise the row' + (line.said ? ' ' + line.said : '') }, 'Normalise')
        line.element = h('tr', {}, others.map(u => h('th', { scope: 'row' }, of.state(u, line.at.get(u)))), states.map(x => cell(line, x)))
        line.says = h('tr', { class: 'sum', hidden: true }, h('td', { colspan: others.length + states.length }, h('span', {}, line.sum, ' ', line.normalise)))
        return [line.element, now ? line.says : null]
      })
      put(element, h('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': title }, h('table', { class: 'list numbers' },
        h('caption', {}, title, mark),
        h('thead', {}, h('tr', {}, others.map(u => h('th', { scope: 'col' }, of.shown(u))), states.map(x => h('th', { scope: 'col', class: 'number' }, of.state(v, x))))),
        h('tbody', {}, body)), rows > most.rows ? h('p', { class: 'hint' }, `The first ${most.rows} of ${whole(rows)} rows.`) : null),
      access.ask && stored ? h('p', { class: 'row' }, h('button', { type: 'button', id: 'edit-' + k, onclick: toggle }, now ? 'Done' : 'Edit'), ' ', takeBack) : null)
      judge()
    }

    function toggle() {
      if (!open.delete(k)) open.add(k)
      draw()
      if (open.has(k)) lines[0].inputs[0].focus()
      else document.getElementById('edit-' + k).focus()
    }

    function update(evidence) {
      if (drawn !== edits.undone()) draw()
      const edited = edits.list().includes(k)
      mark.textContent = edited ? ' ✎ edited' : ''
      takeBack.hidden = !edited
      const known = others.some(u => evidence.get(u)?.value !== undefined)
      for (const { element: line, at } of lines) {
        line.classList.toggle('now', known && others.every(u => evidence.get(u)?.value === undefined || evidence.get(u).value === at.get(u)))
      }
    }
    draw()
    return { element, update }
  }
}

const size = (graph, scope) => scope.reduce((n, v) => n * graph.variables[v].domain, 1)

// written is a number in a cell that is edited: what a row of one third is should not be 0.333333 once somebody types beside it.
const written = x => Number.isNaN(x) ? '' : String(x)

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

// placeOf is the position of an assignment in the entries of a table.
const placeOf = (graph, scope, at) => scope.reduce((n, v) => n * graph.variables[v].domain + at.get(v), 0)

// valuesOf are the entries of a factor; null for one whose table would have too many.
function valuesOf(graph, factor, entry) {
  if (factor.dense) return factor.dense.values
  const n = size(graph, factor.scope)
  return n > most.entries ? null : Array.from({ length: n }, (_, row) => entry(assignment(graph, factor.scope, row)))
}

// entryOf returns a function from an assignment to the entry there; null for factors that are given by counts.
function entryOf(graph, { scope, dense, cp }) {
  if (dense) return at => dense.values[placeOf(graph, scope, at)]
  if (!cp) return null
  return at => cp.weights.reduce((sum, weight, t) => sum + scope.reduce((product, v, l) => {
    const x = at.get(v)
    return product * (cp.vectors[l] ? cp.vectors[l][t][x] : Number(t === x))
  }, weight), 0)
}
