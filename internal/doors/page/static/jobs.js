// Jobs: a list with search, page by page.

import { access, get, segment } from './api.js'
import { every, h, later, put, say } from './dom.js'
import { ago, clock, count, duration, whole } from './format.js'
import { exampleOpener, kinds, opener } from './open.js'
import { brief } from './value.js'
import { errorOf, modelOf } from './words.js'

export const states = ['pending', 'ok', 'error', 'cancelled', 'deadline', 'answered']
const signs = { pending: '◔', ok: '✓', error: '✕', cancelled: '⊘', deadline: '⧖', answered: '✓' }
const page = 100

// badge says a state in a word and a sign.
export function badge(state) {
  return h('span', { class: 'state ' + (states.includes(state) ? state : '') }, h('span', { 'aria-hidden': 'true' }, signs[state] || '·'), ' ', state)
}

export async function jobs({ main, params, signal }) {
  let trail = [] // where the pages before this one begin
  const filters = { job: params.get('job') || '', tenant: params.get('tenant') || '', state: params.get('state') || '', after: params.get('after') || '', looks: params.get('looks') || '' }

  const text = h('input', { id: 'jobs-text', type: 'search', value: filters.job, placeholder: 'part of its id', autocomplete: 'off', spellcheck: 'false' })
  const tenant = h('input', { id: 'jobs-tenant', type: 'search', value: filters.tenant, placeholder: 'all', autocomplete: 'off', spellcheck: 'false' })
  const state = h('select', { id: 'jobs-state' })
  const looks = h('input', { type: 'checkbox', id: 'jobs-looks', checked: filters.looks === 'true', onchange: changed })
  const body = h('tbody')
  const table = h('table', { class: 'list jobs' }, h('caption', { class: 'unseen' }, 'Jobs, newest first'),
    h('thead', {}, h('tr', {}, ['State', 'Job', 'Model and question', 'Method', 'Answer', 'Tenant', 'Submitted', 'Took'].map(t =>
      h('th', { scope: 'col', class: { Took: 'number', Tenant: 'tenant' }[t] }, t)))), body)
  const none = h('div', { class: 'empty', hidden: true })
  const where = h('span', { class: 'where' })
  const newer = h('button', { type: 'button', id: 'jobs-newer' }, '← Newer')
  const older = h('button', { type: 'button', id: 'jobs-older' }, 'Older →')
  let next = ''
  let looking = null
  const rows = new Map()

  async function look(told) {
    looking?.abort()
    const mine = looking = new AbortController()
    signal.addEventListener('abort', () => mine.abort(), { once: true })
    const ask = new URLSearchParams({ limit: page, glance: true, looks: false })
    for (const [name, value] of Object.entries(filters)) if (value) ask.set(name, value)
    let list
    try {
      list = await get('v1/jobs?' + ask, mine.signal)
    } catch (err) {
      if (err.name === 'AbortError') return
      throw err
    }
    if (signal.aborted || mine.signal.aborted) return
    next = list.next || ''
    const from = trail.length * page
    where.textContent = list.jobs.length ? `${whole(from + 1)}–${whole(from + list.jobs.length)} of ${whole(list.total)}` : ''
    if (filters.after && !trail.length) where.textContent = `${whole(list.jobs.length)} of ${whole(list.total)}`
    newer.disabled = !filters.after
    older.disabled = !next
    newer.hidden = older.hidden = newer.disabled && older.disabled
    const all = Object.values(list.states).reduce((a, b) => a + b, 0)
    if (document.activeElement !== state) {
      put(state, h('option', { value: '' }, `all (${whole(all)})`),
        states.filter(s => s !== 'answered' || list.states[s] || filters.state === s)
          .map(s => h('option', { value: s }, `${s} (${whole(list.states[s] || 0)})`)))
      state.value = filters.state
    }
    fill(list.jobs)
    table.classList.toggle('of-nobody', !list.jobs.some(one => one.tenant))
    none.hidden = list.jobs.length > 0
    if (none.hidden || none.dataset.filters === JSON.stringify(filters)) return told && say(`${list.total} jobs`)
    none.dataset.filters = JSON.stringify(filters)
    if (filters.job || filters.tenant || filters.state) put(none, 'No job is like that.')
    else put(none, h('p', {}, 'No jobs yet.'), access.ask ? h('p', { class: 'hint' }, 'A model file that is opened becomes a job, for the posteriors of all its variables. Formats: ' + kinds) : null)
    if (told) say(`${list.total} jobs`)
  }

  // fill shows jobs in rows, of which those that are there already are kept.
  function fill(list) {
    const wanted = list.map(one => {
      const row = rows.get(one.job) || makeRow(one)
      rows.set(one.job, row)
      row.update(one)
      return row.element
    })
    const same = wanted.length === body.children.length && wanted.every((e, i) => body.children[i] === e)
    if (same) return
    const focused = document.activeElement
    body.replaceChildren(...wanted)
    if (focused && focused !== document.activeElement && body.contains(focused)) focused.focus({ preventScroll: true })
    if (rows.size > 10 * page) {
      for (const [id, row] of rows) if (!row.element.isConnected) rows.delete(id)
    }
  }

  function changed() {
    filters.job = text.value.trim()
    filters.tenant = tenant.value.trim()
    filters.state = state.value
    filters.looks = looks.checked ? 'true' : ''
    filters.after = ''
    trail = []
    go(true)
  }

  function go(told) {
    const ask = new URLSearchParams()
    for (const [name, value] of Object.entries(filters)) if (value) ask.set(name, value)
    history.replaceState(null, '', '#/jobs' + (ask.size ? '?' + ask : ''))
    look(told).catch(err => say(err.message))
  }

  const soon = later(changed, 250)
  text.addEventListener('input', soon)
  tenant.addEventListener('input', soon)
  state.addEventListener('change', changed)
  older.addEventListener('click', () => {
    trail.push(filters.after)
    filters.after = next
    go(true)
  })
  newer.addEventListener('click', () => {
    filters.after = trail.pop() || ''
    go(true)
  })

  put(main,
    h('div', { class: 'head' }, h('h1', {}, 'Jobs'),
      h('form', { class: 'filters', role: 'search', onsubmit: e => e.preventDefault() },
        h('label', {}, 'Job ', text), h('label', {}, 'Tenant ', tenant), h('label', {}, 'State ', state),
        h('label', { class: 'check' }, looks, 'Questions of clicks, too'))),
    access.ask ? h('p', { class: 'row openers' }, opener(), exampleOpener(), h('span', { class: 'hint' }, 'or drop a model file anywhere on the page')) : null,
    h('div', { class: 'scroll' }, table),
    none,
    h('nav', { class: 'pager', 'aria-label': 'Pages' }, newer, where, older))
  await look()
  every(2000, signal, () => look().catch(err => { where.textContent = err.message }))
}

function makeRow(one) {
  const state = h('td')
  const model = h('td', { class: 'model' })
  const method = h('td', { class: 'method' })
  const answer = h('td', { class: 'answer' })
  const when = h('td', { class: 'when' })
  const took = h('td', { class: 'number' })
  const element = h('tr', {}, state, h('td', { class: 'id' }, h('a', { href: '#/jobs/' + segment(one.job) }, one.job)), model, method, answer,
    h('td', { class: 'tenant' }, one.tenant || ''), when, took)
  let shown = ''
  return {
    element,
    update(one) {
      const now = JSON.stringify([one.status, one.glance])
      if (shown !== now) {
        put(state, badge(one.status))
        put(model, modelText(one.glance || {}), one.glance?.question ? h('span', { class: 'hint question' }, (modelText(one.glance) && ': ') + questionText(one.glance)) : null)
        put(method, one.glance?.method || '')
        put(answer, answerText(one.glance || {}))
      }
      shown = now
      const at = one.submitted || one.answered
      when.textContent = ago(at)
      when.title = clock(at)
      took.textContent = one.submitted && one.answered ? lasted(one.answered - one.submitted)
        : one.submitted ? duration(Date.now() - one.submitted) : ''
    },
  }
}

const modelText = glance => glance.model ? modelOf(glance.model) : glance.variables ? count(glance.variables, 'variable') : ''

// answerText is the first answer; an estimate looks like one.
function answerText(glance) {
  const { first, error, queries } = glance
  const wrong = error || first?.error
  if (wrong) return h('span', { class: 'wrong', title: wrong.message }, errorOf(wrong.code))
  if (!first) return ''
  const more = queries > 1 ? h('span', { class: 'hint' }, ` and ${queries - 1} more`) : null
  const text = brief(first, glance)
  return text && [first.zero ? text : h('span', { class: first.exact ? 'exact' : 'estimate' }, text), more]
}

// questionText is what was asked beside Z, or what Z is if nothing was.
const questionText = ({ question, formula, normalised }) => formula || normalised ? question.replace(/\bln Z$/, formula ? 'count' : 'P(evidence)') : question

// lasted writes a time of which whole milliseconds are known.
const lasted = ms => ms < 1 ? '< 1 ms' : duration(Math.round(ms)).replace('.0 ms', ' ms')
