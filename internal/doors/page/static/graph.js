// A model to look at and to ask: evidence by clicking, posteriors in place.

import { access, ask, events, get, segment } from './api.js'
import { bestOf, mostBest, readAddress, writeAddress } from './address.js'
import { chances, judged, nextBest } from './assignments.js'
import { choice } from './choice.js'
import { drawing } from './draw.js'
import { h, later, put, say } from './dom.js'
import { editing } from './edits.js'
import { count, digits, whole } from './format.js'
import { childrenOf } from './layout.js'
import { evidenceOf, named, references } from './names.js'
import { takeRows } from './open.js'
import { posterior } from './result.js'
import { rowAsker } from './rows.js'
import { modelSaver } from './save.js'
import { tables, titleOf } from './table.js'
import { headline, told } from './value.js'
import { during, errorOf, modelOf, spoken } from './words.js'

const most = { drawn: 400, hubs: 600, listed: 40 }

// sourceOf finds the model of #/graph/model/NAME or #/graph/job/ID, with the evidence that the address says, or else that of the job.
export async function sourceOf(parts, query, signal) {
  const source = await (parts[0] === 'job' ? ofJob(parts[1], signal) : ofModel(parts[1], signal))
  source.refer = references(source.graph)
  source.children = source.graph.bayes ? childrenOf(source.graph) : null
  const edits = source.edits = editing(source.path, source.graph, source.children, source.load)
  source.file = async format => edits.any() ? ask('POST', 'v1/convert?format=json&to=' + format, { body: await edits.text(), signal, file: true })
    : ask('GET', source.path + '?format=' + format, { signal, file: true })
  const said = readAddress(query, source.graph, source.refer)
  source.own = source.evidence.size > 0
  if (said.evidence) Object.assign(source, { evidence: said.evidence, first: null })
  return { ...source, mpe: said.mpe, best: said.best, wrong: said.wrong }
}

async function ofModel(id, signal) {
  const path = 'v1/models/' + segment(id)
  return {
    graph: await get(path + '?format=graph', signal), evidence: new Map(), title: 'Model ', name: id, href: '#/models', path,
    body: async () => ({ model_name: id }), load: () => get(path + '?format=json', signal),
  }
}

async function ofJob(id, signal) {
  const path = 'v1/jobs/' + segment(id)
  const graph = await get(path + '/model', signal)
  const asked = graph.queries?.[0]
  const evidence = new Map()
  for (const o of asked?.hard || []) evidence.set(o.var, { value: o.value })
  for (const o of asked?.soft || []) evidence.set(o.var, { weights: o.weights })
  let model = null
  const load = () => model ||= get(path + '/model?format=json', signal).catch(err => {
    model = null
    throw err
  })
  return {
    graph, evidence, title: 'Model of job ', name: id, href: '#/jobs/' + segment(id), path: path + '/model', load,
    body: async () => graph.model_digest ? { model_name: graph.model_digest } : { model: await load() },
    // the job's own answer, where that has all posteriors under the evidence that is shown
    first: asked?.asked.marginals && !asked.asked.targets && !asked.evid ? async signal => {
      for await (const { event, data } of events(path + '/events', signal)) if (event === 'answer') return data
      throw new Error('the answer of the job did not come')
    } : null,
  }
}

// queryOf is evidence as the queries of jobs have it.
const queryOf = evidence => ({ hard: [...evidence.values()].filter(seen => !seen.weights), soft: [...evidence.values()].filter(seen => seen.weights) })

export async function graphView({ main, parts, query, signal }) {
  const source = await sourceOf(parts.slice(1), query, signal)
  const { graph, evidence, refer, edits, children } = source
  const of = named(graph)
  const n = graph.variables.length
  const drawn = n <= most.drawn && graph.factors.filter(f => f.scope.length > 2).length <= most.hubs
  let { mpe, best } = source // whether the most probable explanation is asked for, and how many best assignments
  let result = null
  let failed = source.wrong.length ? { code: 'bad_input', message: 'The model does not have what the address says: ' + source.wrong.join(', ') } : null
  let picked = null
  let asking = null

  const state = h('div', { class: 'state-of-it' })
  const seen = h('div')
  const panel = h('div', { class: 'panel' })
  const other = h('a', { class: 'button' }, 'Ask something else')
  const found = h('ul', { class: 'found' })
  const search = h('input', { id: 'variable-search', type: 'search', placeholder: 'name', autocomplete: 'off', spellcheck: 'false', oninput: later(find, 120) })
  const list = h('div', { class: 'posteriors choose' })
  const changes = h('div')
  const title = titleOf(graph, of, children)
  const rows = rowAsker({ graph, of, modelOf: askable, signal })
  const askSoon = later(() => !signal.aborted && askAgain(), 300)
  const picture = drawn ? drawing(graph, of, { pick: v => pick(v), observe }) : null
  const variable = choice(panel, graph, of, { observe, weigh: change, show: tables(graph, of, children, edits, changed) })

  function pick(v, focus) {
    picked = v
    update()
    if (focus) picture?.focus(v)
    say(of.full(v) + ' is selected')
    if (window.matchMedia('(max-width: 900px)').matches) panel.scrollIntoView({ block: 'nearest' })
  }

  // observe notes a value of a variable; again, or -1, forgets it.
  function observe(v, x) {
    if (x < 0 || evidence.get(v)?.value === x) change(v, null)
    else change(v, { value: x })
  }

  // change notes what is seen of a variable, null for nothing.
  function change(v, seen) {
    picked = v
    if (!access.ask || !seen && !evidence.has(v)) return update()
    if (seen) evidence.set(v, seen)
    else evidence.delete(v)
    askAgain()
  }

  // note writes what is asked into the address.
  function note() {
    try {
      const now = writeAddress(query, { evidence, mpe, best }, refer, source.own)
      const to = now ? '?' + now : ''
      history.replaceState(null, '', location.hash.split('?')[0] + to)
    } catch { /* what has no name of its own is not in an address */ }
  }

  // model is what questions here are about, as requests have it.
  const model = async () => edits.any() ? { text: await edits.text(), format: 'json' } : source.body()

  async function inquire(signal) {
    return ask('POST', 'v1/infer', {
      body: { ...await model(), evidence: evidenceOf(evidence, refer), marginals: true, ...mpe && { mpe }, ...mpe && best > 1 && { best }, look: true, deadline_ms: 30000 }, signal,
    })
  }

  function askAgain() {
    note()
    const wrong = edits.wrong(title)
    if (!wrong) return run(inquire)
    asking?.abort()
    asking = result = null
    failed = { code: 'bad_input', message: wrong }
    update()
    say(wrong)
  }

  // changed is called after an edit.
  function changed() {
    rows.edited()
    update()
    askSoon()
  }

  // askable is the model, where its edits can be asked.
  function askable() {
    if (edits.wrong(title)) throw new Error(edits.wrong(title))
    return model()
  }

  // undo takes edits back, and asks what the model says without them.
  function undo(factors) {
    factors.forEach(edits.undo)
    rows.edited()
    say(factors.length > 1 ? 'all edits are undone' : title(factors[0]) + ' is as it was')
    askAgain()
  }

  // run shows an answer that is on its way.
  async function run(answerOf) {
    asking?.abort()
    const mine = asking = new AbortController()
    signal.addEventListener('abort', () => mine.abort(), { once: true })
    if (failed) result = failed = null
    update()
    try {
      const answer = await answerOf(mine.signal)
      if (mine.signal.aborted) return
      result = answer.results[0] || { status: 'error', error: answer.error }
      result.from = answer.job
      if (result.status !== 'ok') failed = result.error
    } catch (err) {
      if (err.name === 'AbortError' || mine.signal.aborted) return
      result = null
      failed = err
    }
    asking = null
    update()
    say(failed ? failed.message : result.zero ? 'the evidence is impossible' : `${count(evidence.size, 'observation')}: posteriors are new`)
  }

  function update() {
    const marginals = result?.status === 'ok' && !result.zero ? result.marginals?.map(m => m.p) : null
    const exact = !!result?.exact
    const explained = mpe && result?.status === 'ok' && result.mpe || null
    const about = { normalised: graph.normalised, query: queryOf(evidence) }
    const edited = edits.list()
    const asked = location.hash.split('?')[1]
    const [kind, name] = edited.length && result?.from ? ['job', result.from] : parts.slice(1) // that job's model has the edits
    other.href = `#/ask/${kind}/${segment(name)}` + (asked ? '?' + asked : '')
    picture?.update({ evidence, marginals, exact, picked, best: explained?.assignment, edited: new Set(children ? edited.map(k => children[k]) : []) })
    put(state, asking ? h('p', { class: 'hint' }, 'asking…') : null,
      failed ? h('div', { class: 'error', role: 'group', 'aria-label': 'Error' }, h('p', {}, h('strong', { title: failed.code }, errorOf(failed.code)), during(failed.stage)),
        h('p', { class: 'message' }, spoken(failed.message))) : result ? headline(result, graph) : null,
      result?.warnings?.map(w => h('p', { class: 'warning' }, told(w, graph))),
      explained ? [h('p', { class: 'most-probable' }, h('span', { class: 'best' }, '▸ '), 'The most probable explanation: ', judged(explained).text, '.',
        chances(explained, result, about).map(([name, chance]) => [h('br'), name + ' = ', h('strong', {}, chance)])),
      nextBest(explained, result, about)] : null,
      result?.from ? h('p', {}, h('a', { href: '#/jobs/' + segment(result.from) }, 'the job of this answer')) : null)
    main.querySelector('.graph-view')?.classList.toggle('asking', !!asking)
    put(seen, h('div', { class: 'head' }, h('h2', {}, 'Evidence'), evidence.size && access.ask ? h('button', {
      type: 'button', id: 'clear', onclick: () => {
        evidence.clear()
        askAgain()
      },
    }, 'Clear') : null),
    evidence.size ? h('ul', { class: 'evidence' }, [...evidence].map(([v, e]) => h('li', {}, h('span', {}, of.full(v), e.weights ? ': ' : ' = ',
      h('strong', {}, e.weights ? e.weights.map((w, x) => of.state(v, x) + ' ' + digits(w)).join(', ') : of.state(v, e.value))),
    access.ask ? h('button', { type: 'button', class: 'quiet', 'aria-label': 'Forget ' + of.full(v), onclick: () => observe(v, -1) }, '×') : null)))
      : h('p', { class: 'hint' }, access.ask ? 'None. Click a value to observe it.' : 'None.'))
    put(changes, edited.length ? [h('div', { class: 'head' }, h('h2', {}, 'Edited tables'), edited.length > 1 ? h('button', { type: 'button', id: 'undo-all', onclick: () => undo(edited) }, 'Undo all') : null),
      h('ul', { class: 'evidence edits' }, edited.map(k => h('li', {}, h('span', {}, '✎ ', title(k)),
        h('button', { type: 'button', class: 'quiet', id: 'take-back-' + k, 'aria-label': 'Undo the edits of ' + title(k), onclick: () => undo([k]) }, '×')))),
      h('p', { class: 'hint' }, 'Questions here are asked of the edited model. The stored one stays as it is.')] : null)
    variable.update(picked, evidence, marginals, exact, explained?.assignment)
    if (!drawn) listed(marginals, exact, explained?.assignment)
  }

  function find() {
    const text = search.value.trim().toLowerCase()
    if (!drawn) return update()
    const fitting = text ? graph.variables.flatMap((_, v) => of.full(v).toLowerCase().includes(text) ? [v] : []) : []
    put(found, fitting.slice(0, 12).map(v => h('li', {}, h('button', { type: 'button', onclick: () => pick(v, true) }, of.full(v)))),
      fitting.length > 12 ? h('li', { class: 'hint' }, `and ${fitting.length - 12} more`) : text && !fitting.length ? h('li', { class: 'hint' }, 'no such variable') : null)
  }

  // bestField is how many most probable assignments are asked for.
  function bestField() {
    const input = h('input', {
      type: 'number', id: 'show-best', min: 1, max: mostBest, value: best, onchange: () => {
        input.value = best = bestOf(input.value)
        mpe = document.getElementById('show-mpe').checked ||= best > 1
        askAgain()
      },
    })
    return h('label', { class: 'short' }, 'Best assignments ', input)
  }

  // rowFile is a button for a file of rows, for who does not drag.
  function rowFile() {
    const input = h('input', { type: 'file', id: 'rows-file', class: 'unseen', tabindex: -1, 'aria-label': 'CSV file', onchange: () => {
      if (input.files[0]) rows.take(input.files[0])
      input.value = ''
    } })
    return h('p', {}, h('button', { type: 'button', id: 'rows-open', onclick: () => input.click() }, 'Ask the rows of a CSV file'), input)
  }

  // listed shows variables in place of a drawing.
  function listed(marginals, exact, best) {
    const text = search.value.trim().toLowerCase()
    const fitting = []
    for (let v = 0; v < n && fitting.length <= most.listed; v++) if (of.full(v).toLowerCase().includes(text)) fitting.push(v)
    put(list, fitting.slice(0, most.listed).map(v => h('div', { class: 'pickable' + (evidence.has(v) ? ' seen' : '') },
      marginals ? posterior(of.full(v), marginals[v].map((p, x) => [(best?.[v] === x ? '▸ ' : '') + of.state(v, x), p]), exact) : h('p', {}, h('strong', {}, of.full(v)), ' ', count(graph.variables[v].domain, 'value')),
      h('button', { type: 'button', id: 'pick-' + v, onclick: () => pick(v), 'aria-label': (access.ask ? 'Observe ' : 'Show ') + of.full(v) }, access.ask ? 'Observe' : 'Show'))),
    fitting.length > most.listed ? h('p', { class: 'hint' }, `The first ${most.listed} that fit.`) : null)
  }

  put(main, h('div', { class: 'head' }, h('h1', {}, h('span', { class: 'kind' }, source.title), h('a', { href: source.href, title: source.name }, modelOf(source.name))),
    h('span', { class: 'hint' }, `${count(n, 'variable')}, ${count(graph.factors.length, 'factor')}${graph.bayes ? ', a Bayesian network' : graph.formula ? ', a formula' : ''}`),
    h('span', { class: 'actions' }, access.ask && n > most.drawn ? h('button', { type: 'button', onclick: askAgain }, 'Ask for all posteriors') : null,
      access.ask ? other : null)),
  h('div', { class: 'graph-view' },
    h('section', { 'aria-label': drawn ? 'Graph' : 'Variables', class: 'picture' }, drawn ? picture.element
      : [h('p', { class: 'hint' }, `${whole(n)} variables are too many for a drawing.`), list]),
    h('aside', { 'aria-label': 'Evidence and variable' }, state, access.ask ? h('label', { class: 'check' }, h('input', {
      type: 'checkbox', id: 'show-mpe', checked: mpe, onchange: e => {
        mpe = e.target.checked
        askAgain()
      },
    }), 'Most probable explanation') : null, access.ask ? bestField() : null, seen, changes, panel, h('div', { class: 'find-variable' }, h('label', {}, 'Find a variable ', search), found), access.ask ? rowFile() : null, modelSaver(source))), rows.element)
  if (access.ask) takeRows(rows.take, signal)
  if (!access.ask) say('read-only: ' + access.why)
  update()
  picture?.begin()
  if (source.wrong.length) return say(failed.message)
  if (edits.any()) { // of an earlier look at this model
    await edits.read()
    update()
    return askAgain()
  }
  if (source.first && !mpe) await run(source.first)
  else if (access.ask && drawn) await run(inquire)
}
