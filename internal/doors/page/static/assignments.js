// Most probable assignments: the best one, how sure that is, its probability, and the next best ones.

import { h } from './dom.js'
import { decimals, digits, magnitude, whole } from './format.js'
import { labelled } from './names.js'

const most = 50 // next best ones that are shown

// explanations are the most probable assignments of a result, of all variables and of some. about has the model's kind and the query.
export function explanations(r, about) {
  const pairs = ({ assignment, variables, names, states }) =>
    assignment.map((x, k) => [labelled.variable(names?.[k], variables ? variables[k] : k), labelled.value(states?.[k], x)])
  return [
    r.mpe ? section('mpe', 'Most probable explanation', pairs(r.mpe), judged(r.mpe), chances(r.mpe, r, about), nextBest(r.mpe, r, about)) : null,
    r.map ? section('map', 'Most probable values of some', pairs(r.map), mapJudged(r.map), chances(r.map, r, about)) : null,
  ]
}

function section(id, title, pairs, { exact, text }, chances, others) {
  return h('section', { 'aria-labelledby': id + '-title' }, h('h3', { id: id + '-title' }, title),
    chances.map(([name, chance]) => h('p', { class: 'event' }, name + ' = ', h('strong', {}, chance))),
    h('p', {}, h('span', { class: 'mark ' + (exact ? 'exact' : 'estimate') }, exact ? 'exact' : 'best found'), ' ', text),
    h('dl', { class: 'assignment' }, pairs.map(([variable, value]) => h('div', {}, h('dt', {}, variable), h('dd', {}, value)))), others)
}

// judged says how good a most probable explanation is. A search has a bound of what it did not list.
export function judged(m) {
  const weight = 'ln weight ' + decimals(m.ln_weight)
  if (m.unique) return { exact: true, text: weight + '; no other is as good' }
  if (m.ln_bound === undefined || m.ln_bound === null) return { exact: true, text: weight + '; another is exactly as good' }
  if (m.optimal) return { exact: true, text: weight + `; none is better by more than a factor of ${factor(m.gap)}` }
  const which = m.others?.length ? 'none that is not listed is better than the last' : 'none is better'
  return { exact: false, text: weight + `; ${which} by more than a factor of ${factor(m.gap)}` }
}

function mapJudged(m) {
  const weight = 'ln weight ' + decimals(m.ln_weight)
  const bound = m.ln_bound === null || m.ln_bound === undefined ? '' : 'none is above ' + decimals(m.ln_bound)
  return { exact: m.exact, text: m.exact ? weight + '; none is better' : weight + (bound && '; ' + bound) }
}

const factor = ln => digits(Math.exp(ln), 3)

// chances are the probabilities of an assignment m, each with its name: the share of Z if Z is exact, and of a Bayesian network in which
// values were observed the weight. None are known if the weight is a bound.
export function chances(m, r, about) {
  const { normalised, query } = about
  if (m.ln_upper !== undefined && m.ln_upper !== null) return []
  const isJoint = normalised && query?.hard.length && !query.soft.length && !isSupposed(query)
  const joint = m.variables ? 'P(assignment, evidence)' : 'P(assignment)'
  return [isJoint ? [joint, magnitude(m.ln_weight)] : null, hasShare(r) ? [chanceName(about), share(m.ln_weight, r)] : null].filter(Boolean)
}

const hasShare = r => r.exact && r.log_z !== null

const share = (lnWeight, r) => magnitude(Math.min(0, lnWeight - r.log_z))

// chanceName is the name of the share that an assignment has of Z.
function chanceName({ query }) {
  return query && !query.hard.length && !query.soft.length && !isSupposed(query) ? 'P(assignment)' : 'P(assignment | evidence)'
}

const isSupposed = ({ evid, asked }) => !!(evid || asked?.do || asked?.believe || asked?.named?.do || asked?.named?.believe)

// nextBest lists the assignments after the best one, each by what differs from that; null without.
export function nextBest(m, r, about) {
  const all = m.others || []
  if (!all.length && !m.all) return null
  const number = o => hasShare(r) ? share(o.ln_weight, r) : decimals(o.ln_weight)
  return h('div', { class: 'next-best' }, h('p', {}, h('strong', {}, 'Next best'),
    h('span', { class: 'hint' }, all.length ? ` ${hasShare(r) ? chanceName(about) : 'ln weight'}, and what differs from the best` : ' none')),
  h('ol', { start: 2 }, all.slice(0, most).map(o => h('li', {}, h('span', { class: 'number' }, number(o)), ' ', h('span', {}, differences(m, o))))),
  all.length > most ? h('p', { class: 'hint' }, `The first ${most} of ${whole(all.length)}: an answer that is saved has all.`) : null,
  m.all ? h('p', { class: 'hint' }, 'No further assignment is possible.') : null)
}

// differences are the values of an assignment that the best one does not have.
function differences(best, { assignment, states }) {
  return assignment.flatMap((x, v) => x === best.assignment[v] ? [] : [`${labelled.variable(best.names?.[v], v)} = ${labelled.value(states?.[v], x)}`]).join(', ')
}
