// The questions of model.mjs, over NATS at BTN_NATS, against enumeration.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { Fault, Model } from './model.mjs'
import { Pipeline } from './pipeline.mjs'
import { floats } from './wire.mjs'

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

/** All assignments by name with their weights; likelihood has weights by name, skip leaves a factor out. */
function weights(likelihood = {}, skip = -1) {
  return all.map((x) => {
    const a = named(x)
    let w = factors.reduce((w, [scope, p], j) => (j === skip ? w : w * p[at(scope, x)]), 1)
    for (const [v, of] of Object.entries(likelihood)) w *= of[a[v]] ?? 0
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

test('what is wrong is named', async () => {
  await assert.rejects(model.marginals({ smokr: 'yes' }), (e) => e instanceof Fault && e.code === 'bad_input' && /smoker/.test(e.message))
  await assert.rejects(model.marginals({}, ['x-ray']), (e) => e.code === 'bad_input' && /x ray/.test(e.message))
  await assert.rejects(model.marginals({ 'x ray': 'abnormal', infection: 'no' }), (e) => e.code === 'impossible')
})
