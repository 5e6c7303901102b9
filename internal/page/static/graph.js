// A model to look at and to ask: evidence by clicking, posteriors in place.

import { access, ask, get, segment } from './api.js'
import { drawing } from './draw.js'
import { h, later, put, say } from './dom.js'
import { count, probability, whole } from './format.js'
import { evidenceOf, named, references } from './names.js'
import { headline, posterior } from './result.js'

const most = { drawn: 400, hubs: 600, listed: 40 }

// sourceOf finds the model of #/graph/model/NAME or #/graph/job/ID.
export async function sourceOf(parts, signal) {
  const [kind, id] = parts
  if (kind === 'job') {
    const path = `v1/jobs/${segment(id)}/model`
    const graph = await get(path, signal)
    const first = graph.queries?.[0]
    const evidence = new Map()
    for (const o of first?.hard || []) evidence.set(o.var, { value: o.value })
    for (const o of first?.soft || []) evidence.set(o.var, { weights: o.weights })
    let inline = null
    return {
      graph, evidence, title: 'Model of job ', name: id, href: '#/jobs/' + segment(id),
      body: async signal => graph.model_digest ? { model_name: graph.model_digest } : { model: inline ||= await get(path + '?format=json', signal) },
    }
  }
  return {
    graph: await get(`v1/models/${segment(id)}?format=graph`, signal), evidence: new Map(), title: 'Model ', name: id, href: '#/models',
    body: async () => ({ model_name: id }),
  }
}

export async function graphView({ main, parts, signal }) {
  const source = await sourceOf(parts.slice(1), signal)
  const { graph, evidence } = source
  const of = named(graph)
  const refer = references(graph)
  const n = graph.variables.length
  const drawn = n <= most.drawn && graph.factors.filter(f => f.scope.length > 2).length <= most.hubs
  let result = null
  let failed = null
  let picked = null
  let asking = null

  const state = h('div', { class: 'state-of-it' })
  const seen = h('div')
  const panel = h('div', { class: 'panel' })
  const found = h('ul', { class: 'found' })
  const search = h('input', { id: 'variable-search', type: 'search', placeholder: 'name', autocomplete: 'off', spellcheck: 'false', oninput: later(find, 120) })
  const list = h('div', { class: 'posteriors choose' })
  const picture = drawn ? drawing(graph, of, { pick: v => pick(v), observe }) : null

  function pick(v, focus) {
    picked = v
    update()
    if (focus) picture?.focus(v)
    say(of.name(v) + ' is selected')
    if (window.matchMedia('(max-width: 900px)').matches) panel.scrollIntoView({ block: 'nearest' })
  }

  // observe notes a value of a variable; again, or -1, forgets it.
  function observe(v, x) {
    picked = v
    if (!access.ask) return update()
    if (x < 0 || evidence.get(v)?.value === x) {
      if (!evidence.delete(v)) return update()
    } else evidence.set(v, { value: x })
    askAgain()
  }

  async function askAgain() {
    asking?.abort()
    const mine = asking = new AbortController()
    signal.addEventListener('abort', () => mine.abort(), { once: true })
    failed = null
    update()
    try {
      const model = await source.body(mine.signal)
      const answer = await ask('POST', 'v1/infer', {
        body: { ...model, evidence: evidenceOf(evidence, refer), marginals: true, deadline_ms: 30000 }, signal: mine.signal,
      })
      if (mine.signal.aborted) return
      result = answer.results[0]
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
    const marginals = result?.status === 'ok' && !result.zero ? result.marginals : null
    const exact = !!result?.exact
    picture?.update({ evidence, marginals, exact, picked })
    put(state, asking ? h('p', { class: 'hint' }, 'asking…') : null,
      failed ? h('div', { class: 'error', role: 'group', 'aria-label': 'Error' }, h('p', {}, h('strong', {}, failed.code || 'failed'), failed.stage ? ' in ' + failed.stage : ''),
        h('p', { class: 'message' }, failed.message)) : result ? headline(result) : null,
      result?.warnings?.map(w => h('p', { class: 'warning' }, w)),
      result?.from ? h('p', {}, h('a', { href: '#/jobs/' + segment(result.from) }, 'the job of this answer')) : null)
    main.querySelector('.graph-view')?.classList.toggle('asking', !!asking)
    put(seen, h('div', { class: 'head' }, h('h2', {}, 'Evidence'), evidence.size && access.ask ? h('button', {
      type: 'button', id: 'clear', onclick: () => {
        evidence.clear()
        askAgain()
      },
    }, 'Clear') : null),
    evidence.size ? h('ul', { class: 'evidence' }, [...evidence].map(([v, e]) => h('li', {}, h('span', {}, of.name(v), ' = ',
      h('strong', {}, e.weights ? 'weights ' + e.weights.join(', ') : of.state(v, e.value))),
    access.ask ? h('button', { type: 'button', class: 'quiet', 'aria-label': 'Forget ' + of.name(v), onclick: () => observe(v, -1) }, '×') : null)))
      : h('p', { class: 'hint' }, access.ask ? 'None. Click a value to observe it.' : 'None.'))
    put(panel, picked === null ? null : choice(picked, marginals, exact))
    if (!drawn) listed(marginals, exact)
  }

  // choice is the values of a variable to choose from.
  function choice(v, marginals, exact) {
    const p = marginals?.[v]
    const now = evidence.get(v)
    const name = `value-${v}`
    const option = (x, text, chance) => h('label', { class: 'option' },
      h('input', { type: 'radio', name, id: `${name}-${x}`, checked: x < 0 ? !now : now?.value === x, disabled: !access.ask, onchange: () => observe(v, x) }),
      h('span', { class: 'text' }, text), chance === undefined ? null : [h('span', { class: 'bar' }, h('span', { class: 'fill', 'width%': 100 * chance })),
        h('span', { class: 'number' }, (exact ? '' : '≈ ') + probability(chance))])
    return h('fieldset', { class: 'choice' + (exact ? '' : ' estimate') }, h('legend', {}, of.name(v)),
      option(-1, 'not observed'), now?.weights ? h('p', { class: 'hint' }, 'soft evidence: weights ' + now.weights.join(', ')) : null,
      Array.from({ length: graph.variables[v].domain }, (_, x) => option(x, of.state(v, x), p?.[x])))
  }

  function find() {
    const text = search.value.trim().toLowerCase()
    if (!drawn) return update()
    const fitting = text ? graph.variables.flatMap((_, v) => of.name(v).toLowerCase().includes(text) ? [v] : []) : []
    put(found, fitting.slice(0, 12).map(v => h('li', {}, h('button', { type: 'button', onclick: () => pick(v, true) }, of.name(v)))),
      fitting.length > 12 ? h('li', { class: 'hint' }, `and ${fitting.length - 12} more`) : text && !fitting.length ? h('li', { class: 'hint' }, 'no such variable') : null)
  }

  // listed shows variables in place of a drawing.
  function listed(marginals, exact) {
    const text = search.value.trim().toLowerCase()
    const fitting = []
    for (let v = 0; v < n && fitting.length <= most.listed; v++) if (of.name(v).toLowerCase().includes(text)) fitting.push(v)
    put(list, fitting.slice(0, most.listed).map(v => h('div', { class: 'pickable' + (evidence.has(v) ? ' seen' : '') },
      marginals ? posterior(of.name(v), marginals[v].map((p, x) => [of.state(v, x), p]), exact) : h('p', {}, h('strong', {}, of.name(v)), ' ', count(graph.variables[v].domain, 'value')),
      h('button', { type: 'button', id: 'pick-' + v, onclick: () => pick(v), 'aria-label': (access.ask ? 'Observe ' : 'Show ') + of.name(v) }, access.ask ? 'Observe' : 'Show'))),
    fitting.length > most.listed ? h('p', { class: 'hint' }, `The first ${most.listed} that fit.`) : null)
  }

  put(main, h('div', { class: 'head' }, h('h1', {}, h('span', { class: 'kind' }, source.title), h('a', { href: source.href }, source.name)),
    h('span', { class: 'hint' }, `${count(n, 'variable')}, ${count(graph.factors.length, 'factor')}${graph.bayes ? ', a Bayesian network' : ''}`),
    h('span', { class: 'actions' }, access.ask && n > most.drawn ? h('button', { type: 'button', onclick: askAgain }, 'Ask for all posteriors') : null,
      access.ask ? h('a', { class: 'button', href: `#/ask/${parts[1]}/${segment(parts[2])}` }, 'Ask something else') : null)),
  h('div', { class: 'graph-view' },
    h('section', { 'aria-label': drawn ? 'Graph' : 'Variables', class: 'picture' }, drawn ? picture.element
      : [h('p', { class: 'hint' }, `${whole(n)} variables are too many for a drawing.`), list]),
    h('aside', { 'aria-label': 'Evidence and variable' }, state, seen, panel, h('div', { class: 'find-variable' }, h('label', {}, 'Find a variable ', search), found))))
  if (!access.ask) say('read-only: ' + access.why)
  update()
  picture?.begin()
  if (access.ask && drawn) await askAgain()
}
