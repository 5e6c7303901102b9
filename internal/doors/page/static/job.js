// One job: how far it is, live, and its answer.

import { access, ask, events, get, segment } from './api.js'
import { alarm, h, put, say } from './dom.js'
import { clock, duration } from './format.js'
import { badge } from './jobs.js'
import { posteriors, results } from './result.js'
import { csvOf, fileName, saveFile } from './save.js'
import { timeline } from './timeline.js'
import { counts } from './value.js'
import { during, errorOf, errors, spoken, stages as words } from './words.js'

const mostNamed = 5000 // variables, beyond which their names are not asked for

export async function job({ main, parts, signal }) {
  const id = parts[1]
  const path = 'v1/jobs/' + segment(id)
  const head = h('div', { class: 'head' })
  const facts = h('dl', { class: 'facts inline' })
  const trouble = h('div')
  const progress = h('div', { class: 'progress' })
  const answer = h('div', { class: 'answer' })
  const time = h('section', { 'aria-labelledby': 'time-title' })
  const view = results(answer)
  const stages = new Map()
  let state = ''
  let model = null // what was asked, and the names
  let kind = {} // of the model: whether it is a formula, or a Bayesian network with normalised rows
  let last = null

  const cancel = h('button', { type: 'button', class: 'danger', id: 'cancel', onclick: stop }, 'Cancel the job')

  async function stop() {
    cancel.disabled = true
    try {
      const end = await ask('DELETE', path)
      say('the job is ' + end.status)
    } catch (err) {
      if (err.status !== 409) alarm(err.message)
    } finally {
      cancel.disabled = false
    }
  }

  function show(one) {
    const pending = one.status === 'pending'
    if (state !== one.status) {
      if (state) say('job ' + one.job + ': ' + one.status)
      state = one.status
    }
    put(head, h('h1', {}, h('span', { class: 'kind' }, 'Job '), one.job), badge(one.status),
      h('span', { class: 'actions' }, pending ? null : saver(one), h('a', { class: 'button', href: '#/graph/job/' + segment(one.job) }, 'Model as a graph'),
        pending && access.change ? cancel : null))
    const took = one.submitted && one.answered ? duration(one.answered - one.submitted) : ''
    put(facts, fact('tenant', one.tenant), fact('submitted', one.submitted && clock(one.submitted)),
      fact(pending ? 'running for' : 'took', pending && one.submitted ? duration(Date.now() - one.submitted) : took))
    put(trouble, one.error && one.status !== 'pending' ? h('div', { class: 'error', role: 'group', 'aria-label': 'Error' },
      h('p', {}, h('strong', { title: one.error.code }, errorOf(one.error.code)), during(one.error.stage)), h('p', { class: 'message' }, spoken(one.error.message)),
      h('p', { class: 'hint' }, errors[one.error.code]?.[1] || '')) : null)
    for (const p of one.progress || []) note(p)
    bars(pending)
    last = () => view.update(pending ? one.so_far || [] : one.results, { pending, graph: model, queries: model?.queries, ...kind })
    last()
    timeline(time, one)
  }

  // saver saves the answer: as HTTP has it, of a formula with the counts in front, and posteriors as a table.
  function saver(one) {
    const rows = posteriorRows(one.results)
    const saveAnswer = async () => {
      const { text } = await ask('GET', path, { file: true })
      saveFile(fileName(one.job, '.json'), kind.formula ? `{"counts":${JSON.stringify(counts(one.results))},` + text.slice(1) : text, 'application/json')
    }
    return [h('button', { type: 'button', id: 'save-json', onclick: () => saveAnswer().catch(err => alarm(err.message)) }, 'Save as JSON'),
      rows.length > 1 ? h('button', { type: 'button', id: 'save-csv', onclick: () => saveFile(fileName(one.job, '.csv'), csvOf(rows), 'text/csv') },
        'Save posteriors as CSV') : null]
  }

  function note(p) {
    const before = stages.get(p.stage)
    if (!before || p.time >= before.time) stages.set(p.stage, p)
  }

  function bars(pending) {
    put(progress, pending ? [...stages.values()].map(p => h('p', {}, h('span', { class: 'stage' }, words[p.stage] || p.stage),
      h('progress', { max: p.total || 1, value: p.total ? p.done : null, 'aria-label': words[p.stage] || p.stage }), ' ',
      p.total > 1 ? `${p.done} of ${p.total}` : p.done ? 'done' : 'working', p.text ? ' · ' + spoken(p.text) : '')) : null,
    pending && !stages.size ? h('p', { class: 'hint' }, 'Waiting for a worker, or done in a moment.') : null)
  }

  put(main, head, facts, trouble, progress, answer, time)
  const first = await get(path + '?glance=true', signal)
  kind = kindOf(first.glance)
  show(first)
  if (first.submitted && (first.results[0]?.marginals?.length || 0) <= mostNamed) {
    get(path + '/model', signal).then(m => {
      model = m
      kind = kindOf(m)
      last()
    }, () => {}) // it may be gone
  }
  if (first.status === 'pending') live(first)

  // live follows the job until its answer, and anew where the connection breaks.
  async function live() {
    while (!signal.aborted && state === 'pending') {
      if (document.hidden) { // who does not look holds no connection: there are six for all pages of a gateway
        await new Promise(seen => document.addEventListener('visibilitychange', seen, { once: true, signal }))
        continue
      }
      const out = new AbortController()
      const leave = () => document.hidden && out.abort()
      document.addEventListener('visibilitychange', leave, { signal: out.signal })
      signal.addEventListener('abort', () => out.abort(), { once: true })
      try {
        for await (const { event, data } of events(path + '/events', out.signal)) {
          if (event === 'job' || event === 'answer') show(data)
          if (event === 'progress') {
            note(data)
            bars(true)
          }
          if (event === 'error') alarm(data.error.message)
        }
        if (state === 'pending') show(await get(path, signal))
      } catch (err) {
        if (signal.aborted) return
        if (out.signal.aborted) continue
        say('the connection broke: ' + err.message)
      }
      out.abort()
      if (state === 'pending') await new Promise(done => setTimeout(done, 2000))
    }
  }
}

const kindOf = ({ formula, normalised }) => ({ formula, normalised })

// posteriorRows are the posteriors of all queries as a table.
function posteriorRows(all) {
  const rows = all.flatMap((r, query) => (posteriors(r) || []).flatMap(([variable, values]) =>
    values.map(([value, p]) => [query + 1, variable, value, p, r.exact])))
  return [['query', 'variable', 'value', 'probability', 'exact'], ...rows]
}

function fact(name, value) {
  return value ? h('div', {}, h('dt', {}, name), h('dd', {}, value)) : null
}
