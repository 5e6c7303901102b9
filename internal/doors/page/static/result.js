// The answer of a job: a result per query.

import { explanations } from './assignments.js'
import { estimates } from './chart.js'
import { h, put } from './dom.js'
import { bytes, count, decimals, digits, duration, probability, whole } from './format.js'
import { labelled, named } from './names.js'
import { headline, told, valueName } from './value.js'
import { during, errorOf, spoken, stages } from './words.js'

const most = { variables: 60, cells: 64, samples: 50 }

// results shows results in an element; the one that was picked stays.
export function results(element) {
  let picked = 0
  let wanted = ''
  let shown = most.variables
  let last = null

  function update(all, about) {
    last = [all, about]
    if (!all.length) return put(element)
    picked = Math.min(picked, all.length - 1)
    const one = about.pending ? { ...all[picked], ended: '' } : all[picked]
    put(element, h('section', { 'aria-labelledby': 'answer-title', class: about.pending ? 'so-far' : null },
      h('div', { class: 'head' }, h('h2', { id: 'answer-title' }, about.pending ? 'So far' : 'Answer'), all.length > 1 ? picker(all) : null,
        about.pending ? h('span', { class: 'hint' }, 'an estimate that still grows') : null),
      asked(about, picked), ...result(one, about)))
  }

  function picker(all) {
    const go = to => {
      picked = to
      update(...last)
    }
    return h('span', { class: 'pick' },
      h('button', { type: 'button', id: 'query-before', 'aria-label': 'Query before', disabled: picked === 0, onclick: () => go(picked - 1) }, '←'),
      h('label', {}, 'Query ', h('input', {
        id: 'query-pick', type: 'number', min: 1, max: all.length, value: picked + 1,
        onchange: e => go(Math.min(all.length, Math.max(1, Math.round(Number(e.target.value)) || 1)) - 1),
      })), ' of ' + whole(all.length),
      h('button', { type: 'button', id: 'query-after', 'aria-label': 'Query after', disabled: picked === all.length - 1, onclick: () => go(picked + 1) }, '→'))
  }

  function result(r, about) {
    if (r.status !== 'ok') {
      return [h('div', { class: 'error', role: 'group', 'aria-label': 'Error' }, h('p', {}, h('strong', { title: r.error.code }, errorOf(r.error.code)), during(r.error.stage)),
        h('p', { class: 'message' }, spoken(r.error.message)))]
    }
    return [
      headline(r, about),
      r.ratio?.p !== null && r.ratio?.p !== undefined ? h('p', { class: 'event' }, 'P(event | evidence) ', r.exact ? '= ' : '≈ ',
        h('strong', {}, digits(r.ratio.p, 10)), r.ratio.ln === null ? ', impossible' : ' (ln ' + decimals(r.ratio.ln) + ')') : null,
      warnings(r).map(w => h('p', { class: 'warning' }, h('strong', {}, 'Warning '), told(w, about))),
      r.estimates?.length ? estimates(r, valueName(about)) : null,
      conflict(r), explanations(r, { ...about, query: about.queries?.[picked] }), marginals(r, about.graph), belief(r), tornado(r), joint(r), information(r), samples(r),
      machinery(r, valueName(about)),
    ]
  }

  // marginals are bars by name.
  function marginals(r, graph) {
    const rows = posteriors(r, graph)
    if (!rows) return null
    const box = h('div', { class: 'posteriors' + (r.exact ? '' : ' estimate') })
    const more = h('p', { class: 'more' })
    const search = h('input', {
      id: 'posterior-search', type: 'search', value: wanted, placeholder: 'name', autocomplete: 'off', spellcheck: 'false',
      oninput: e => {
        wanted = e.target.value
        shown = most.variables
        draw()
      },
    })
    function draw() {
      const fitting = rows.filter(([variable]) => variable.toLowerCase().includes(wanted.trim().toLowerCase()))
      put(box, fitting.slice(0, shown).map(([variable, values]) => posterior(variable, values, r.exact)))
      put(more, fitting.length > shown ? [`${whole(shown)} of ${whole(fitting.length)} variables. `, h('button', {
        type: 'button', id: 'posterior-more', onclick: () => {
          shown += 10 * most.variables
          draw()
        },
      }, 'Show more')] : null)
    }
    draw()
    return h('section', { 'aria-labelledby': 'posteriors-title' },
      h('div', { class: 'head' }, h('h3', { id: 'posteriors-title' }, 'Posteriors'),
        rows.length > 8 ? h('label', { class: 'find' }, 'Variable ', search) : null,
        r.exact ? null : h('span', { class: 'hint' }, r.marginal_uncertainty === null ? 'estimates of unknown quality'
          : 'estimates: uncertain by about ' + digits(r.marginal_uncertainty, 2))),
      box, more)
  }

  return { update }
}

// warnings are those of a result; a conflict says better than they do why Z is 0.
const warnings = r => (r.warnings || []).filter(w => !(r.conflict?.observations.length && w.startsWith('Z is 0: ')))

// asked says under which evidence a query was, and what it set from outside or believed.
function asked({ queries, graph }, k) {
  const q = queries?.[k]
  if (!q) return null
  const of = named(graph)
  const seen = [...(q.hard || []).map(o => [o.var, of.state(o.var, o.value)]), ...(q.soft || []).map(o => [o.var, 'weights ' + o.weights.join(', ')])]
  return h('p', { class: 'asked' }, h('span', { class: 'hint' }, 'Evidence '), seen.length ? seen.slice(0, most.cells).map(([v, value], i) => [i ? ', ' : '', of.name(v), ' = ', h('strong', {}, value)])
    : q.evid ? 'a file' : 'none', seen.length > most.cells ? ` and ${seen.length - most.cells} more` : '',
    ...supposed('Set from outside', q.asked?.do, o => of.state(o.v, o.x), q.asked?.named?.do, of),
    ...supposed('Believed', q.asked?.believe, o => floats(o.w).map(p => digits(p, 6)).join(' / '), q.asked?.named?.believe, of))
}

// floats are the numbers of a list in a message: base64 of little-endian float64.
function floats(text) {
  return [...new Float64Array(Uint8Array.from(atob(text), c => c.charCodeAt(0)).buffer)]
}

// supposed is what a query supposes beside its evidence, by position or by name.
function supposed(title, list, value, byName, of) {
  const text = byName || (list || []).map(o => of.name(o.v) + ' = ' + value(o)).join(', ')
  return text ? [h('br'), h('span', { class: 'hint' }, title + ' '), h('strong', {}, text)] : []
}

// conflict says which observations cannot be together.
function conflict(r) {
  if (!r.conflict) return null
  const all = r.conflict.observations
  return h('div', { class: 'warning' }, h('p', {}, h('strong', {}, 'Conflict '), all.length
    ? ['These cannot be together', r.conflict.smallest ? ', and no fewer are in conflict: ' : ', and could without any one of them: ',
      all.map((o, i) => [i ? ', ' : '', labelled.variable(o.name, o.variable), ' = ', h('strong', {}, o.value === null ? 'its weights' : labelled.value(o.state, o.value))])]
    : 'The model is impossible without evidence.'))
}

// posteriors are pairs of a variable and its pairs of value and probability; null without. With a graph variables have display names, too.
export function posteriors(r, graph) {
  return r.marginals?.map(m => [graph ? named(graph).full(m.variable) : labelled.variable(m.name, m.variable), m.p.map((p, x) => [labelled.value(m.states?.[x], x), p])])
}

// posterior is one variable's bars.
export function posterior(variable, values, exact) {
  return h('table', { class: 'posterior' }, h('caption', {}, variable), h('tbody', {}, values.map(([value, p]) =>
    h('tr', {}, h('th', { scope: 'row', title: value }, value), h('td', { class: 'bar' }, h('span', { class: 'fill', 'width%': 100 * p })),
      h('td', { class: 'number' }, exact ? probability(p) : '≈ ' + probability(p))))))
}

// joint is a table of cells, the most probable first where there are too many.
function joint(r) {
  if (!r.joint) return null
  const { variables, names, states, shape, p } = r.joint
  const heads = variables.map((v, k) => labelled.variable(names?.[k], v))
  let cells = p.map((x, cell) => {
    const values = []
    for (let k = shape.length - 1; k >= 0; k--) {
      values[k] = labelled.value(states?.[k][cell % shape[k]], cell % shape[k])
      cell = Math.floor(cell / shape[k])
    }
    return [values, x]
  })
  const left = cells.length - most.cells
  if (left > 0) cells = cells.sort((a, b) => b[1] - a[1]).slice(0, most.cells)
  return h('section', { 'aria-labelledby': 'joint-title' }, h('h3', { id: 'joint-title' }, 'Joint'),
    h('div', { class: 'scroll' }, h('table', { class: 'list joint' + (r.exact ? '' : ' estimate') }, h('thead', {}, h('tr', {}, heads.map(t => h('th', { scope: 'col' }, t)),
      h('th', { scope: 'col', colspan: 2 }, 'probability'))),
    h('tbody', {}, cells.map(([values, x]) => h('tr', {}, values.map(v => h('td', {}, v)),
      h('td', { class: 'bar' }, h('span', { class: 'fill', 'width%': 100 * x })), h('td', { class: 'number' }, probability(x))))))),
    left > 0 ? h('p', { class: 'hint' }, `The ${most.cells} most probable of ${whole(p.length)} cells.`) : null)
}

// information ranks what to observe next.
function information(r) {
  const i = r.information
  if (!i) return null
  const gains = i.candidates.some(c => c.utility_gain !== undefined)
  const largest = Math.max(1e-300, ...i.candidates.map(c => gains ? c.utility_gain || 0 : c.mutual_information))
  const number = x => h('td', { class: 'number' }, x === undefined ? '' : (i.exact ? '' : '≈ ') + digits(x, 6))
  return h('section', { 'aria-labelledby': 'information-title' }, h('h3', { id: 'information-title' }, 'What to observe next'),
    h('p', {}, h('span', { class: 'mark ' + (i.exact ? 'exact' : 'estimate') }, i.exact ? 'exact' : 'estimate'), ' entropy of ', h('strong', {}, labelled.variable(i.name, i.target)), ' now: ',
      `${digits(i.entropy, 6)} (natural logarithm), ${digits(i.entropy / Math.LN2, 6)} bits`, i.action === undefined ? '' : `; the best action now is ${i.action}, of expected utility ${digits(i.expected_utility, 6)}`),
    h('div', { class: 'scroll' }, h('table', { class: 'list' + (i.exact ? '' : ' estimate') }, h('thead', {}, h('tr', {}, h('th', { scope: 'col' }, 'Variable'),
      h('th', { scope: 'col' }, gains ? 'Gain' : 'Information'), gains ? h('th', { scope: 'col', class: 'number' }, 'Gain of utility') : null,
      h('th', { scope: 'col', class: 'number' }, 'Information, natural log'), h('th', { scope: 'col', class: 'number' }, 'Entropy then, natural log'))),
    h('tbody', {}, i.candidates.slice(0, most.cells).map(c => h('tr', {}, h('th', { scope: 'row' }, labelled.variable(c.name, c.variable)),
      h('td', { class: 'bar wide' }, h('span', { class: 'fill', 'width%': 100 * (gains ? c.utility_gain || 0 : c.mutual_information) / largest })),
      gains ? number(c.utility_gain) : null, number(c.mutual_information), number(c.expected_entropy)))))),
    i.candidates.length > most.cells ? h('p', { class: 'hint' }, `The first ${most.cells} of ${whole(i.candidates.length)}.`) : null)
}

// tornado shows how far numbers of the model move a probability, the farthest first.
function tornado(r) {
  const s = r.sensitivity
  if (!s) return null
  const target = `P(${labelled.variable(s.name, s.variable)} = ${labelled.value(s.state, s.value)})`
  const low = Math.min(s.p, ...s.tornado.map(n => n.low))
  const span = Math.max(s.p, ...s.tornado.map(n => n.high)) - low || 1
  const place = n => {
    if (!n.values) return `number ${n.number} of factor ${n.factor}`
    const pairs = n.values.map((x, k) => [n.variables[k] === n.of, `${labelled.variable(n.names?.[k], n.variables[k])} = ${labelled.value(n.states?.[k], x)}`])
    const child = pairs.filter(([is]) => is).map(([, text]) => text)
    const others = pairs.filter(([is]) => !is).map(([, text]) => text).join(', ')
    return child.length ? `P(${child[0]}${others ? ' | ' + others : ''})` : others
  }
  return h('section', { 'aria-labelledby': 'tornado-title' }, h('h3', { id: 'tornado-title' }, 'What moves ' + target),
    h('p', { class: 'hint' }, `${target} is ${probability(s.p)}; each number of the model varies by ${digits(100 * s.range, 3)} % of itself, and its row keeps summing to 1.`),
    s.tornado.length ? h('div', { class: 'scroll' }, h('table', { class: 'list tornado' }, h('thead', {}, h('tr', {}, h('th', { scope: 'col' }, 'Number'), h('th', { scope: 'col', class: 'number' }, 'is'),
      h('th', { scope: 'col', class: 'number' }, 'from'), h('th', { scope: 'col' }, 'probability'), h('th', { scope: 'col', class: 'number' }, 'to'))),
    h('tbody', {}, s.tornado.slice(0, most.cells).map(n => h('tr', {}, h('th', { scope: 'row' }, place(n)), h('td', { class: 'number' }, digits(n.theta, 4)),
      h('td', { class: 'number' }, probability(n.low)), h('td', { class: 'bar' }, h('span', { class: 'swing' }, h('span', {
        class: 'fill', 'margin-left%': 100 * (n.low - low) / span, 'width%': Math.max(0.5, 100 * (n.high - n.low) / span) }),
      h('span', { class: 'here', 'left%': 100 * (s.p - low) / span }))), h('td', { class: 'number' }, probability(n.high)))))))
      : h('p', {}, 'No number moves it.'))
}

// belief says which evidence has the effect of the beliefs.
function belief(r) {
  if (!r.belief) return null
  const { variables, names, likelihoods, rounds, missed } = r.belief
  return h('p', { class: 'hint' }, 'Under beliefs: these act as the evidence ', variables.map((v, k) => [k ? ', ' : '', h('strong', {}, labelled.variable(names?.[k], v)),
    ' = ' + likelihoods[k].map(w => digits(w, 4)).join(' / ')]), rounds > 1 ? `; fitted in ${rounds} rounds, missed by ${digits(missed, 2)}` : '', '.')
}

function samples(r) {
  if (!r.samples) return null
  const { assignments, names, states, weights, effective, seed } = r.samples
  const used = assignments[0] ? assignments[0].map((_, i) => i).slice(0, most.variables) : []
  return h('section', { 'aria-labelledby': 'samples-title' }, h('h3', { id: 'samples-title' }, 'Samples'),
    h('p', { class: 'hint' }, `${count(assignments.length, 'sample')}, independent, from seed ${seed}`
      + (weights ? `, with weights: worth ${digits(effective, 4)} of the same weight` : '')
      + (assignments.length > most.samples ? `; the first ${most.samples}` : '')),
    h('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'Samples' }, h('table', { class: 'list samples' },
      h('thead', {}, h('tr', {}, h('th', { scope: 'col' }, '#'), weights ? h('th', { scope: 'col' }, 'weight') : null,
        used.map(i => h('th', { scope: 'col' }, labelled.variable(names?.[i], i))))),
      h('tbody', {}, assignments.slice(0, most.samples).map((row, k) => h('tr', {}, h('th', { scope: 'row' }, String(k + 1)),
        weights ? h('td', {}, digits(weights[k], 4)) : null, used.map(i => h('td', {}, labelled.value(states?.[i]?.[row[i]], row[i])))))))))
}

// machinery is how the result came about; ln is the name of the logarithm of Z.
function machinery(r, ln) {
  const facts = []
  const add = (name, text) => text && facts.push(h('dt', {}, name), h('dd', {}, text))
  add('method', method(r))
  add('run', r.run && digits(r.run.flops) + ' flops' + (r.run.slices > 1 ? ', ' + count(r.run.slices, 'slice') : ''))
  if (r.certificate) {
    add('certificate', r.certificate.ln_lower !== null ? `${ln} is in [${digits(r.certificate.ln_lower, 6)}, ${digits(r.certificate.ln_upper, 6)}]`
      : `${ln} ≤ ${digits(r.certificate.ln_upper, 6)}; no lower bound (the bound exceeds the estimate)`)
  }
  if (r.bp) {
    add('belief propagation', (r.bp.log_z === null ? '' : ln + ' ≈ ' + digits(r.bp.log_z, 6) + ', ') + (r.bp.converged ? 'converged' : 'not converged')
      + ' after ' + count(r.bp.updates, 'update') + (r.bp.phases?.length > 1 ? ', ' + r.bp.phases.length + ' fixed points' : ''))
  }
  add('evidence file', r.evidence_file)
  add('relearned', r.relearned)
  add('cache', r.cache)
  const t = r.timings_ms
  if (t?.total !== undefined) {
    add('time', duration(t.total) + ' (' + Object.entries(stages).filter(([s]) => t[s] !== undefined).map(([s, word]) => word + ' ' + duration(t[s])).join(', ') + ')')
  }
  return h('section', { 'aria-labelledby': 'plan-title' }, h('h3', { id: 'plan-title' }, 'Plan and run'), h('dl', { class: 'facts' }, facts))
}

function method(r) {
  if (r.plan) {
    const p = r.plan
    const way = p.groups > 0 ? 'contraction trees, ' + count(p.groups, 'group') + ' of marginals'
      : p.slices > 0 ? 'contraction tree, ' + count(p.slices, 'slice') : 'elimination'
    return `${r.method}: ${way}, width ${p.width}, largest table 2^${p.log2_table.toFixed(1)} entries, ${digits(p.flops)} flops, ${bytes(p.peak_bytes)}`
  }
  if (r.exact) return `${r.method}: closed form, ${count(r.components, 'component')}`
  return r.method ? `${r.method}: ${count(r.components, 'component')}` : 'none'
}
