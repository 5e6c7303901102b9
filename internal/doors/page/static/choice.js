// One variable of a graph: its values to observe, soft evidence by sliders, its tables.

import { access } from './api.js'
import { h, later, put } from './dom.js'
import { digits, probability } from './format.js'

// choice returns what shows a variable in an element. It calls observe(v, x), weigh(v, weights), and show(v, evidence) for its tables.
export function choice(element, graph, of, { observe, weigh, show }) {
  const options = h('div')
  const soft = h('details', { class: 'soft' })
  const table = h('details', { class: 'table', ontoggle: () => unfold() }, h('summary', {}, 'Table'), h('div'))
  let at = null // the variable, its evidence, and the sliders
  put(element, options, soft, table)

  function update(v, evidence, marginals, exact, best) {
    element.hidden = v === null
    if (v === null) return
    if (at?.v !== v) {
      at = { v, sliders: sliders(v), from: null }
      put(table.lastChild)
    }
    at.evidence = evidence
    const now = evidence.get(v)
    put(options, values(v, now, marginals?.[v], exact, best?.[v]))
    if (at.from !== now) at.sliders.set(now?.weights)
    at.from = now
    soft.hidden = !access.ask
    unfold()
  }

  function values(v, now, p, exact, best) {
    const name = `value-${v}`
    const option = (x, text, chance) => h('label', { class: 'option' },
      h('input', { type: 'radio', name, id: `${name}-${x}`, checked: x < 0 ? !now : now?.value === x, disabled: !access.ask, onchange: () => observe(v, x) }),
      h('span', { class: 'text' }, text, x >= 0 && x === best ? h('span', { class: 'best' }, ' ▸', h('span', { class: 'unseen' }, ' most probable')) : null),
      chance === undefined ? null : [h('span', { class: 'bar' }, h('span', { class: 'fill', 'width%': 100 * chance })),
        h('span', { class: 'number' }, (exact ? '' : '≈ ') + probability(chance))])
    return h('fieldset', { class: 'choice' + (exact ? '' : ' estimate') }, h('legend', {}, of.full(v)), option(-1, 'not observed'),
      Array.from({ length: graph.variables[v].domain }, (_, x) => option(x, of.state(v, x), p?.[x])))
  }

  // sliders weigh the values of a variable; with equal weights nothing was seen. They stay while somebody moves them.
  function sliders(v) {
    let weights = []
    const says = h('p', { class: 'hint', role: 'status' })
    const inputs = Array.from({ length: graph.variables[v].domain }, (_, x) => h('input', { type: 'range', id: `weight-${v}-${x}`, min: 0, oninput: () => moved(x) }))
    const texts = inputs.map(() => h('output'))
    const ask = later(() => {
      if (at.v !== v || !weights.some(w => w > 0)) return
      at.from = weights.every(w => w === weights[0]) ? undefined : { weights: weights.slice() }
      weigh(v, at.from)
    }, 150)
    function moved(x) {
      weights[x] = Number(inputs[x].value)
      label()
      ask()
    }
    function label() {
      weights.forEach((w, x) => { texts[x].textContent = digits(w) })
      says.textContent = weights.some(w => w > 0) ? '' : 'One of them has to be above 0.'
    }
    put(soft, h('summary', {}, 'Soft evidence'), h('p', { class: 'hint' }, 'How likely is what was seen, if the value were this one? Only the proportions count.'),
      inputs.map((input, x) => h('label', { class: 'weight' }, h('span', { class: 'text' }, of.state(v, x)), input, texts[x])), says)
    return {
      set(given) {
        weights = given ? given.slice() : inputs.map(() => 1)
        const top = Math.max(1, ...weights)
        inputs.forEach((input, x) => {
          input.max = top
          input.step = top / 100
          input.value = weights[x]
        })
        label()
      },
    }
  }

  // unfold shows the tables where somebody looks at them.
  async function unfold() {
    if (!table.open || !at) return
    const { v, evidence } = at
    const box = table.lastChild
    try {
      const shown = await show(v, evidence)
      if (at.v === v && box.firstChild !== shown) put(box, shown)
    } catch (err) {
      if (err.name !== 'AbortError') put(box, h('p', { class: 'warning' }, err.message))
    }
  }

  return { update }
}
