// The questions of model.mjs, over NATS at BTN_NATS, against enumeration.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { Fault, Model } from './model.mjs'
import { NotFound, Pipeline } from './pipeline.mjs'
import { floats, sha256, toBytes } from './wire.mjs'

const names = ['season', 'smoker', 'infection', 'x ray']
const states = [['dry', 'wet', 'cold'], ['no', 'yes'], ['no', 'mild', 'severe'], ['normal', 'abnormal']]
const factors = [
  [[0], [0.3, 0.5, 0.2]],
  [[1], [0.75, 0.25]],
  [[0, 1, 2], [0.7, 0.2, 0.1, 0.5, 0.3, 0.2, 0.8, 0.15, 0.05, 0.6, 0.25, 0.15, 0.4, 0.35, 0.25, 0.2, 0.3, 0.5]],
  [[2, 3], [1, 0, 0.6, 0.4, 0.1, 0.9]],
]
const wire = {
  domains: states.map((s) => s.length), names, states, bayes: true,
  factors: factors.map(([scope, p]) => ({ scope, table: { kind: 'dense', shape: scope.map((v) => states[v].length), data: floats(p) } })),
}

const at = (scope, x) => scope.reduce((i, v) => i * states[v].length + x[v], 0)
const all = states.reduce((cells, of) => cells.flatMap((c) => of.map((_, x) => [...c, x])), [[]])
const named = (x) => Object.fromEntries(x.map((i, v) => [names[v], states[v][i]]))
const sum = (xs) => xs.reduce((a, b) => a + b, 0)

/** All assignments by name with their weights; likelihood has weights by name, skip leaves a factor out, of has other tables. */
function weights(likelihood = {}, skip = -1, of = factors) {
  return all.map((x) => {
    const a = named(x)
    let w = of.reduce((w, [scope, p], j) => (j === skip ? w : w * p[at(scope, x)]), 1)
    for (const [v, by] of Object.entries(likelihood)) w *= by[a[v]] ?? 0
    return { x, a, w }
  })
}

const has = (event) => ({ a }) => Object.entries(event).every(([v, s]) => a[v] === s)
const total = (cells) => sum(cells.map(({ w }) => w))
const close = (got, want) => assert.ok(Math.abs(got - want) <= 1e-12 * Math.max(1, Math.abs(want)), `${got} is not ${want}`)

let pipeline, model
before(async () => {
  pipeline = await Pipeline.connect(process.env.BTN_NATS)
  model = new Model(pipeline, { model: wire })
})
after(() => pipeline.close())

test('marginals by name', async () => {
  for (const [evidence, likelihood] of [
    [{}, {}],
    [{ 'x ray': 'abnormal', 1: 0 }, { 'x ray': { abnormal: 1 }, smoker: { no: 1 } }],
    [{ season: [0.5, 1, 0.25], infection: { no: 0, mild: 0.5, severe: 1 } }, { season: { dry: 0.5, wet: 1, cold: 0.25 }, infection: { mild: 0.5, severe: 1 } }],
  ]) {
    const cells = weights(likelihood)
    const got = await model.marginals(evidence)
    assert.deepEqual(Object.keys(got), names)
    names.forEach((v, i) => states[i].forEach((s) => close(got[v][s], total(cells.filter(has({ [v]: s }))) / total(cells))))
    const some = await model.marginals(evidence, ['smoker'])
    assert.deepEqual(some, { smoker: got.smoker })
  }
})

test('joint and probability', async () => {
  const cells = weights({ 'x ray': { abnormal: 1 } })
  const got = await model.joint(['infection', 'season'], { 'x ray': 'abnormal' })
  assert.deepEqual(got.variables, ['infection', 'season'])
  assert.deepEqual(got.states, [states[2], states[0]])
  states[2].forEach((i, a) => states[0].forEach((s, b) =>
    close(got.p[a * 3 + b], total(cells.filter(has({ infection: i, season: s }))) / total(cells))))
  const event = { infection: 'severe', smoker: 'yes' }
  close(await model.probability(event, { 'x ray': 'abnormal' }), total(cells.filter(has(event))) / total(cells))
  assert.equal(await model.probability({ infection: 'no' }, { 'x ray': 'abnormal' }), 0)
  await assert.rejects(model.probability({ smoker: 'no' }, { smoker: 'yes' }), /smoker is both/)
})

test('the likeliest states', async () => {
  const cells = weights({ 'x ray': { abnormal: 1 } })
  const best = cells.reduce((a, b) => (b.w > a.w ? b : a))
  const mpe = await model.mpe({ 'x ray': 'abnormal' })
  assert.deepEqual(mpe.assignment, best.a)
  close(mpe.ln_weight, Math.log(best.w))
  assert.equal(mpe.unique, cells.filter(({ w }) => w === best.w).length === 1)
  const map = await model.map(['season', 'infection'], { 'x ray': 'abnormal' })
  const of = states[0].flatMap((season) => states[2].map((infection) => ({ season, infection })))
  const ranked = of.map((a) => ({ a, w: total(cells.filter(has(a))) })).sort((a, b) => b.w - a.w)
  assert.deepEqual(map.assignment, ranked[0].a)
  close(map.ln_weight, Math.log(ranked[0].w))
  assert.equal(map.exact, true)
})

test('samples', async () => {
  const evidence = { 'x ray': 'abnormal' }
  const cells = weights({ 'x ray': { abnormal: 1 } })
  const n = 20000
  const got = await model.sample(n, evidence, 7)
  assert.equal(got.length, n)
  const counts = new Map()
  for (const s of got) counts.set(JSON.stringify(s), (counts.get(JSON.stringify(s)) ?? 0) + 1)
  let chi = 0
  const possible = cells.filter(({ w }) => w > 0)
  for (const { a, w } of possible) {
    const expected = (n * w) / total(cells)
    chi += ((counts.get(JSON.stringify(a)) ?? 0) - expected) ** 2 / expected
    counts.delete(JSON.stringify(a))
  }
  assert.equal(counts.size, 0, 'an assignment that is impossible')
  const free = possible.length - 1
  assert.ok(chi < free + 5 * Math.sqrt(2 * free), `chi² is ${chi} with ${free} degrees of freedom`)
  assert.deepEqual(await model.sample(20, evidence, 7), await model.sample(20, evidence, 7))
})

test('gradients', async () => {
  const likelihood = { 'x ray': { abnormal: 1 } }
  const got = await model.gradients({ 'x ray': 'abnormal' })
  const z = total(weights(likelihood))
  factors.forEach(([scope, p], j) => {
    const rest = weights(likelihood, j)
    p.forEach((_, i) => close(got[j][i], total(rest.filter(({ x }) => at(scope, x) === i)) / z))
  })
})

test('sensitivity', async () => {
  const likelihood = { 'x ray': { abnormal: 1 } }
  const event = has({ smoker: 'yes' })
  const share = (cells) => total(cells.filter(event)) / total(cells)
  const got = await model.sensitivity({ smoker: 'yes' }, { 'x ray': 'abnormal' }, { range: 0.2, top: 5 })
  const z = total(weights(likelihood))
  const p = share(weights(likelihood))
  assert.deepEqual([got.variable, got.value, got.range, got.tornado.length], ['smoker', 'yes', 0.2, 5])
  close(got.p, p)
  const child = [0, 1, 2, 3] // of every factor: whose probabilities it has, which stand last in it
  const swings = factors.flatMap(([scope, table], j) => {
    const rest = weights(likelihood, j)
    return table.map((theta, i) => {
      const here = rest.filter(({ x }) => at(scope, x) === i)
      close(got.derivatives[j][i], (total(here.filter(event)) - p * total(here)) / z)
      const size = states[child[j]].length
      const row = i - (i % size)
      const vary = (to) => share(weights(likelihood, -1, factors.map((f, k) => (k !== j ? f : [scope, table.map((y, n) =>
        (n === i ? to : n < row || n >= row + size ? y : theta < 1 ? (y * (1 - to)) / (1 - theta) : (1 - to) / (size - 1)))]))))
      const ends = [vary(theta * 0.8), vary(Math.min(1, theta * 1.2))]
      return { j, i, theta, low: Math.min(...ends), high: Math.max(...ends) }
    })
  })
  const width = ({ low, high }) => high - low
  swings.sort((a, b) => width(b) - width(a))
  got.tornado.forEach((n, k) => {
    const want = swings.find(({ j, i }) => n.factor === j && n.number === i)
    close(n.theta, want.theta)
    close(n.low, want.low)
    close(n.high, want.high)
    close(width(n), width(swings[k])) // the farthest first
    const [scope] = factors[n.factor]
    assert.equal(n.of, names[child[n.factor]])
    assert.deepEqual(Object.keys(n.at).sort(), scope.map((v) => names[v]).sort())
    assert.equal(at(scope, names.map((v, i) => states[i].indexOf(n.at[v]))), n.number)
  })
})

const entropy = (ps) => -sum(ps.map((p) => (p > 0 ? p * Math.log(p) : 0)))

test('what to ask next', async () => {
  const cells = weights({ season: { wet: 1 } })
  const z = total(cells)
  const posterior = (of, v) => states[names.indexOf(v)].map((s) => total(of.filter(has({ [v]: s }))) / total(of))
  const utility = { wait: { severe: -10 }, treat: [-1, 2, 5] }
  const worth = Object.values({ wait: [0, 0, -10], treat: [-1, 2, 5] })
  const best = (ps) => Math.max(...worth.map((row) => sum(row.map((u, i) => u * ps[i]))))
  const got = await model.information('infection', { season: 'wet' })
  const gains = await model.information('infection', { season: 'wet' }, { candidates: ['x ray', 'smoker'], utility })
  const now = posterior(cells, 'infection')
  close(got.entropy, entropy(now))
  close(gains.expected_utility, best(now))
  assert.equal(gains.action, Object.keys(utility)[worth.findIndex((row) => sum(row.map((u, i) => u * now[i])) === best(now))])
  assert.deepEqual([got.target, gains.target], ['infection', 'infection'])
  for (const r of [got, gains]) {
    assert.deepEqual(r.candidates.map((c) => c.variable).sort(), ['smoker', 'x ray'])
    for (const c of r.candidates) {
      const parts = states[names.indexOf(c.variable)].map((s) => cells.filter(has({ [c.variable]: s })))
      const left = sum(parts.map((part) => (total(part) / z) * entropy(posterior(part, 'infection'))))
      close(c.expected_entropy, left)
      close(c.mutual_information, entropy(now) - left)
      if (r === gains) close(c.utility_gain, sum(parts.map((part) => (total(part) / z) * best(posterior(part, 'infection')))) - best(now))
    }
  }
  const [first, second] = got.candidates
  assert.ok(first.mutual_information >= second.mutual_information)
})

test('conflict', async () => {
  assert.equal(await model.conflict({ 'x ray': 'abnormal', season: 'wet' }), null)
  const got = await model.conflict({ season: 'wet', infection: 'no', smoker: 'yes', 'x ray': 'abnormal' })
  assert.deepEqual(got, { observations: { infection: 'no', 'x ray': 'abnormal' }, smallest: true })
  const soft = await model.conflict({ infection: [1, 0, 0], 'x ray': 'abnormal' })
  assert.deepEqual(soft.observations, { infection: null, 'x ray': 'abnormal' })
})

test('registered models', async () => {
  const register = async (fields) => {
    const bytes = toBytes('graph', fields)
    await pipeline.js.publish(`btn.v1.graph._.${sha256(bytes)}`, bytes)
    return sha256(bytes)
  }
  const coin = await register({ text: 'MARKOV\n1\n2\n1\n1 0\n2\n1 3\n' })
  const clinic = await register({ model: wire })
  const name = `clinic-${clinic.slice(0, 4)}`
  const alias = (subject, digests) => pipeline.js.publish(`btn.v1.graph.${subject}`, JSON.stringify({ versions: digests.map((digest) => ({ digest })) }))
  await alias(`_.${name}`, [coin, clinic])
  await alias(`acme.${name}`, [coin])
  for (const [ref, want] of [
    [name, clinic], [`${name}@1`, coin], [`${name}@2`, clinic], [clinic, clinic], [`digest:${coin}`, coin], [clinic.slice(0, 8), clinic],
  ]) assert.equal(await pipeline.find(ref), want)
  assert.equal(await pipeline.find(name, 'acme'), coin)
  assert.equal(await pipeline.find(name, 'other'), clinic)
  for (const [ref, says] of [
    [`${name}@3`, /versions 1 to 2/], [`${name}@0`, /versions 1 to 2/], [`${name}@x`, /versions 1 to 2/], ['nobody', /no registered model is called/],
    [clinic.slice(0, 5), /no registered model is called/], ['a b', /no registered model/], ['', /no registered model/],
    [clinic.slice(0, 6) + (clinic[6] === '0' ? '1' : '0'), /no digest begins so/],
  ]) await assert.rejects(pipeline.find(ref), (e) => e instanceof NotFound && says.test(e.message))

  // Names of a model that is not at hand, that of a text without any among them.
  const found = pipeline.model(await pipeline.find(name))
  assert.deepEqual(await found.marginals({ 'x ray': 'abnormal' }), await model.marginals({ 'x ray': 'abnormal' }))
  assert.deepEqual(
    (await found.sensitivity({ smoker: 'yes' })).tornado, (await model.sensitivity({ smoker: 'yes' })).tornado)
  assert.equal((await found.information('smoker')).target, 'smoker')
  assert.equal((await pipeline.model(coin).sensitivity({ 0: 1 })).p, 0.75)
})

test('what is wrong is named', async () => {
  await assert.rejects(model.marginals({ smokr: 'yes' }), (e) => e instanceof Fault && e.code === 'bad_input' && /smoker/.test(e.message))
  await assert.rejects(model.marginals({}, ['x-ray']), (e) => e.code === 'bad_input' && /x ray/.test(e.message))
  await assert.rejects(model.sensitivity({ smokr: 'yes' }), (e) => e.code === 'bad_input' && /smokr.*smoker/.test(e.message))
  await assert.rejects(model.sensitivity({ smoker: 'si' }), (e) => e.code === 'bad_input' && /si.*no.*yes/.test(e.message))
  await assert.rejects(model.sensitivity({}), (e) => e.code === 'bad_input' && /one value/.test(e.message))
  await assert.rejects(model.information('x-ray'), (e) => e.code === 'bad_input' && /x ray/.test(e.message))
  await assert.rejects(model.information('smoker', {}, { candidates: ['9'] }), (e) => e.code === 'bad_input')
  await assert.rejects(model.marginals({ 'x ray': 'abnormal', infection: 'no' }), (e) => e.code === 'impossible')
})
