// The form of a question: evidence by name, what to ask, how, and how much work it may take.

import { access, ask, get, segment } from './api.js'
import { h, put, say } from './dom.js'
import { sourceOf } from './graph.js'
import { assignmentsOf, listOf } from './lists.js'
import { evidenceOf, named, references } from './names.js'
import { nameOf } from './models.js'
import { formatOf, unpacked } from './open.js'
import { during, errorOf, modelOf, spoken } from './words.js'

const perSecond = 3e9 // flops of a worker that a second of budget is taken for, as btn infer does
const listed = 2000 // names that are suggested

export async function askForm({ main, parts, query, signal }) {
  if (!access.ask) {
    return put(main, h('h1', {}, 'Ask'), h('p', {}, 'Asking is not allowed: ' + (access.why || 'the key may read only') + '.'))
  }
  const [known, models] = await Promise.all([fields(signal), get('v1/models', signal)])
  let source = parts.length > 2 ? await sourceOf(parts.slice(1), query, signal) : null
  let rows = 0

  const model = h('select', { id: 'ask-model' },
    source && parts[1] === 'job' ? h('option', { value: '' }, 'that of job ' + source.name) : h('option', { value: '' }, 'choose one'),
    models.models.slice().reverse().map(m => h('option', { value: nameOf(m) }, modelOf(nameOf(m)))), h('option', { value: '\n' }, 'a file'))
  if (source && parts[1] === 'model') {
    if (![...model.options].some(o => o.value === source.name)) model.append(h('option', { value: source.name }, modelOf(source.name)))
    model.value = source.name
  }
  const file = h('input', { type: 'file', id: 'ask-file' })
  const fileRow = h('p', { hidden: true }, h('label', {}, 'Model file ', file))
  const names = h('datalist', { id: 'variables' })
  const evidence = h('div', { class: 'rows' })
  const events = h('div', { class: 'rows' })
  const error = h('div', { role: 'alert' })
  const softly = h('p', { class: 'hint', hidden: true })
  const soft = new Map() // soft evidence on the model's variables
  let choosing = null
  const of = () => source && named(source.graph)

  const option = (name, text, ...more) => known.has(name) ? h('p', { class: 'row' }, h('label', { class: 'check' }, h('input', { type: 'checkbox', id: 'ask-' + name }), text), more) : null
  const text = (id, label, properties) => h('label', {}, label + ' ', h('input', { id, autocomplete: 'off', spellcheck: 'false', ...properties }))
  const value = id => document.getElementById(id)?.value.trim() || ''
  const checked = id => !!document.getElementById(id)?.checked

  // row is a variable and one of its values.
  function row(box, variable = '', chosen = '') {
    const id = 'row-' + rows++
    const name = h('input', { id, list: 'variables', value: variable, 'aria-label': 'Variable', placeholder: 'variable', autocomplete: 'off', spellcheck: 'false' })
    const slot = h('span')
    const element = h('p', { class: 'row' }, name, ' = ', slot, h('button', { type: 'button', class: 'quiet', 'aria-label': 'Remove this row', onclick: () => element.remove() }, '×'))
    const values = () => {
      const v = indexOf(name.value.trim())
      const before = slot.firstChild?.value ?? chosen
      put(slot, v < 0 ? h('input', { class: 'value', 'aria-label': 'Value', placeholder: 'value', value: before, autocomplete: 'off' })
        : h('select', { class: 'value', 'aria-label': 'Value of ' + name.value }, Array.from({ length: source.graph.variables[v].domain }, (_, x) =>
          h('option', { value: x }, of().state(v, x)))))
      if (v >= 0 && before !== '') {
        const x = [...slot.firstChild.options].findIndex(o => o.textContent === before || o.value === before)
        if (x >= 0) slot.firstChild.value = String(x)
      }
    }
    name.addEventListener('input', values)
    values()
    box.append(element)
    return name
  }

  // indexOf finds a variable by what the page calls it.
  function indexOf(name) {
    if (!source || name === '') return -1
    if (!source.positions) {
      const { name, shown } = of()
      const all = which => source.graph.variables.map((_, v) => [which(v), v])
      source.positions = new Map([...all(shown), ...all(name)]) // a name wins over what another variable is shown as
    }
    return source.positions.get(name) ?? -1
  }

  // valueOf finds a value of variable v by what the page calls it.
  function valueOf(v, name) {
    return Array.from({ length: source.graph.variables[v].domain }, (_, x) => of().state(v, x)).indexOf(name)
  }

  function rowsOf(box) {
    const pairs = []
    const refer = source && references(source.graph)
    for (const p of box.children) {
      const name = p.querySelector('input').value.trim()
      if (!name) continue
      const v = indexOf(name)
      const chosen = p.querySelector('.value').value.trim()
      pairs.push(v < 0 ? [name, chosen] : [refer.variable(v), refer.state(v, Number(chosen))])
    }
    return Object.fromEntries(pairs)
  }

  // several reads a list of variables.
  function several(id) {
    const refer = source && references(source.graph)
    return listOf(value(id), name => indexOf(name) < 0 ? undefined : refer.variable(indexOf(name)), name => name)
  }

  // assignments reads a list of variables with values, or with probabilities.
  function assignments(id) {
    return assignmentsOf(value(id), { find: indexOf, value: valueOf, refer: source && references(source.graph) })
  }

  function suggest() {
    put(names, source ? source.graph.variables.slice(0, listed).map((_, v) => h('option', { value: of().name(v), label: of().shown(v) === of().name(v) ? null : of().shown(v) })) : null)
    fileRow.hidden = model.value !== '\n'
  }

  // choose takes another model: what was said of the one before goes.
  async function choose() {
    choosing?.abort()
    const mine = choosing = new AbortController()
    signal.addEventListener('abort', () => mine.abort(), { once: true })
    put(error)
    say('')
    source = null
    soft.clear()
    softly.hidden = true
    put(evidence)
    put(events)
    row(evidence)
    suggest()
    if (!model.value || model.value === '\n') return
    try {
      source = await sourceOf(['model', model.value], '', mine.signal)
    } catch (err) {
      if (!mine.signal.aborted) put(error, trouble(err))
      return
    }
    if (mine.signal.aborted) return
    suggest()
    for (const name of [...evidence.querySelectorAll('[list]'), ...events.querySelectorAll('[list]')]) name.dispatchEvent(new Event('input'))
  }
  model.addEventListener('change', choose)
  file.addEventListener('change', () => put(error))

  async function body() {
    const query = {}
    const put = (name, x) => { if (x !== undefined) query[name] = x }
    const seen = rowsOf(evidence)
    if (Object.keys(seen).length || soft.size) put('evidence', { ...evidenceOf(soft, source && references(source.graph)), ...seen })
    if (checked('ask-marginals')) put('marginals', true)
    if (value('ask-targets')) put('targets', several('ask-targets'))
    if (query.targets) put('marginals', true)
    if (value('ask-joint')) put('joint', several('ask-joint'))
    const event = rowsOf(events)
    if (Object.keys(event).length) put('event', event)
    if (checked('ask-mpe') || value('ask-best')) put('mpe', true)
    if (value('ask-best')) put('best', Number(value('ask-best')))
    if (value('ask-map')) put('map', several('ask-map'))
    if (value('ask-samples')) put('samples', Number(value('ask-samples')))
    if (query.samples && value('ask-seed')) put('seed', Number(value('ask-seed')))
    if (checked('ask-conflict')) put('conflict', true)
    if (value('ask-sensitivity')) {
      const [[variable, state]] = Object.entries(assignments('ask-sensitivity'))
      put('sensitivity', { variable, value: state })
    }
    if (value('ask-information')) put('information', { target: value('ask-information') })
    if (value('ask-do')) put('do', assignments('ask-do'))
    if (value('ask-believe')) put('believe', assignments('ask-believe'))

    const settings = { method: value('ask-method') }
    if (value('ask-budget')) settings.budget = Number(value('ask-budget')) * perSecond
    if (value('ask-accuracy')) settings.accuracy = Number(value('ask-accuracy'))
    const request = { queries: apart(query), settings, async: true }
    if (value('ask-deadline')) request.deadline_ms = Math.round(1000 * Number(value('ask-deadline')))
    if (value('ask-job')) request.job = value('ask-job')
    if (value('ask-tenant')) request.tenant = value('ask-tenant')
    if (model.value === '\n') {
      if (!file.files[0]) throw new Error('a model file is needed')
      request.text = await (await unpacked(file.files[0])).text()
      request.format = formatOf(file.files[0].name)
    } else if (model.value) request.model_name = model.value
    else if (source) Object.assign(request, await source.body(signal))
    else throw new Error('a model is needed')
    return request
  }

  for (const [v, e] of source?.evidence || []) if (e.weights) soft.set(v, e)
  softly.textContent = 'and soft evidence on ' + [...soft.keys()].map(v => of().name(v)).join(', ')
  softly.hidden = !soft.size
  const button = h('button', { class: 'first', id: 'ask-go' }, 'Ask')
  const number = properties => ({ type: 'number', min: 0, step: 'any', ...properties })
  put(main, h('h1', {}, 'Ask'), h('form', {
    class: 'ask', onsubmit: async e => {
      e.preventDefault()
      put(error)
      button.disabled = true
      try {
        const submitted = await ask('POST', 'v1/infer', { body: await body(), signal })
        location.hash = '#/jobs/' + segment(submitted.job)
      } catch (err) {
        if (err.name !== 'AbortError') put(error, trouble(err))
      } finally {
        button.disabled = false
      }
    },
  },
  h('fieldset', {}, h('legend', {}, 'Model'), h('p', {}, h('label', {}, 'Registered, or a file ', model)), fileRow),
  h('fieldset', {}, h('legend', {}, 'Evidence'), names, evidence,
    softly,
    h('button', { type: 'button', id: 'more-evidence', onclick: () => row(evidence).focus() }, 'Add a variable')),
  h('fieldset', {}, h('legend', {}, 'What to ask'),
    h('p', { class: 'hint' }, 'Always answered: ln Z; of a Bayesian network P(evidence), of a formula its count. Lists have commas between names.'),
    option('marginals', 'Posteriors of all variables'),
    known.has('targets') ? h('p', {}, text('ask-targets', 'Posteriors of', { placeholder: 'some variables', list: 'variables' })) : null,
    h('p', {}, text('ask-joint', 'Joint posterior of', { placeholder: 'some variables', list: 'variables' })),
    option('mpe', 'Most probable explanation', known.has('best') ? text('ask-best', 'Best assignments', number({ min: 1, step: 1, placeholder: '1' })) : null),
    known.has('map') ? h('p', {}, text('ask-map', 'Most probable values of', { placeholder: 'some variables', list: 'variables' })) : null,
    known.has('samples') ? h('p', { class: 'row' }, text('ask-samples', 'Samples', number({ step: 1 })), text('ask-seed', 'seed', number({ step: 1 }))) : null,
    known.has('do') ? h('p', {}, text('ask-do', 'Set from outside', { placeholder: 'smoke=no' })) : null,
    known.has('believe') ? h('p', {}, text('ask-believe', 'Believe of the posterior', { placeholder: 'smoke=0.2/0.8' })) : null,
    known.has('sensitivity') ? h('p', {}, text('ask-sensitivity', 'Which numbers of the model move the probability of', { placeholder: 'lung=yes' })) : null,
    known.has('information') ? h('p', {}, text('ask-information', 'What to observe next to learn about', { placeholder: 'a variable', list: 'variables' })) : null,
    option('conflict', 'If the evidence is impossible: a smallest part of it that is'),
    h('div', { class: 'event-of' }, h('span', {}, 'P(event | evidence) of '), events,
      h('button', { type: 'button', id: 'more-event', onclick: () => row(events).focus() }, 'Add to the event'))),
  h('fieldset', {}, h('legend', {}, 'How'),
    h('p', { class: 'row' }, h('label', {}, 'Method ', h('select', { id: 'ask-method' }, ['auto', 'exact', 'truncated', 'regions', 'sampled', 'circuit', 'symmetry-cp'].map(m => h('option', {}, m)))),
      text('ask-budget', 'Budget, seconds of a worker', number()), text('ask-accuracy', 'Accuracy, natural logarithm', number()), text('ask-deadline', 'Deadline, s', number())),
    h('p', { class: 'row' }, text('ask-job', 'Job id', { placeholder: 'made up' }), access.tenant ? null : text('ask-tenant', 'Tenant', {}))),
  error, button))
  if (known.has('marginals')) document.getElementById('ask-marginals').checked = true
  suggest()
  for (const [v, e] of source?.evidence || []) if (!e.weights) row(evidence, of().name(v), of().state(v, e.value))
  row(evidence)

  function trouble(err) {
    say(err.message)
    return h('div', { class: 'error' }, h('p', {}, h('strong', { title: err.code }, err.code ? errorOf(err.code) : 'not asked'), during(err.stage)), h('p', { class: 'message' }, spoken(err.message)))
  }
}

// apart is a query, as two where the service answers its questions one by one: a joint posterior and what moves a probability.
function apart({ sensitivity, ...query }) {
  if (!sensitivity) return [query]
  if (!query.joint) return [{ ...query, sensitivity }]
  const { evidence, do: set, believe } = query
  return [query, { evidence, do: set, believe, sensitivity }]
}

// fields are those of a query that this gateway takes.
async function fields(signal) {
  const all = (await get('openapi.json', signal)).components.schemas
  const of = one => [...Object.keys(one.properties || {}), ...(one.allOf || []).flatMap(part => of(part.$ref ? all[part.$ref.split('/').pop()] : part))]
  return new Set(of(all.Query))
}
