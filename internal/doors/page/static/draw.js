// A model as a drawing: variables as boxes with their posteriors, which can be moved among and observed.

import { h, put, s } from './dom.js'
import { probability } from './format.js'
import { edgesOf, layered, placed, spread } from './layout.js'

const title = 20
const line = 15
const crowd = 130 // variables, beyond which boxes are small

const pen = document.createElement('canvas').getContext('2d')

// width is that of a text in a box.
function width(text, bold) {
  pen.font = (bold ? '600 11.5px ' : '11px ') + getComputedStyle(document.body).fontFamily
  return pen.measureText(text).width
}

// cut shortens a text to a width.
function cut(text, most, bold) {
  if (width(text, bold) <= most) return text
  let n = Math.min(text.length, 60)
  while (n > 1 && width(text.slice(0, n) + '…', bold) > most) n--
  return text.slice(0, n) + '…'
}

// drawing returns an element that shows a graph. Of a variable: name(v), states(v) as text. It calls pick(v) and observe(v, x).
export function drawing(graph, of, { pick, observe }) {
  const n = graph.variables.length
  const small = n > crowd
  const shown = v => Math.min(graph.variables[v].domain, small ? 1 : 5)
  const { directed, edges, hubs } = edgesOf(graph)
  const widest = v => Math.max(width(of.shown(v), true) + 14, ...Array.from({ length: Math.min(graph.variables[v].domain, 8) }, (_, x) => width(of.state(v, x)) + 40))
  const sizes = [
    ...graph.variables.map((_, v) => ({ w: Math.min(170, Math.max(74, 16 + widest(v))), h: title + line * shown(v) + 5 })),
    ...hubs.map(() => ({ w: 12, h: 12 })),
  ]
  const { places, routes, isStraight } = placed(sizes, graph.variables, edges, hubs)
    || (directed ? layered(sizes, edges) : spread(sizes, edges, { unit: small ? 105 : 130 }))

  const nodes = graph.variables.map((_, v) => box(v))
  const svg = s('svg', { class: 'graph', role: 'group', 'aria-label': `Graph of ${n} variables. Arrow keys move, Enter selects, 1 to 9 observe a value, 0 observes none.` },
    s('defs', {}, s('marker', { id: 'arrow', viewBox: '0 0 8 8', refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: 'auto' }, s('path', { class: 'head', d: 'M0 0.8L7 4L0 7.2z' })),
      s('pattern', { id: 'hatch', width: 6, height: 6, patternUnits: 'userSpaceOnUse', patternTransform: 'rotate(45)' }, s('rect', { class: 'hatch', width: 3, height: 6 }))),
    s('g', { class: 'edges' }, edges.map((edge, k) => s('path', { d: isStraight ? straight(routes[k], edge, sizes) : curve(routes[k], edge, sizes, directed), 'marker-end': directed ? 'url(#arrow)' : null }))),
    s('g', { class: 'hubs' }, hubs.map((scope, k) => s('rect', { x: places[n + k].x - 5, y: places[n + k].y - 5, width: 10, height: 10 }, s('title', {}, 'factor of ' + scope.map(of.shown).join(', '))))),
    nodes.map(node => node.element))

  const bounds = edgeOfAll(places, sizes, routes)
  const view = window_(svg, bounds)
  let current = 0
  rove(0)

  function box(v) {
    const { w, h: height } = sizes[v]
    const { x, y } = places[v]
    const rows = s('g')
    const head = s('text', { class: 'name', x: 8, y: 14 }, cut(of.shown(v), w - 26, true))
    const sign = s('text', { class: 'sign', x: w - 7, y: 14, 'text-anchor': 'end' })
    const element = s('g', {
      class: 'node', role: 'button', tabindex: -1, transform: `translate(${(x - w / 2).toFixed(1)} ${(y - height / 2).toFixed(1)})`, 'data-variable': v,
      onclick: e => {
        if (view.moved()) return
        const row = e.target.closest('[data-state]')
        rove(v)
        if (row) observe(v, Number(row.dataset.state))
        else pick(v)
      },
      onfocus: () => rove(v), onkeydown: e => key(e, v),
    }, s('title', {}, of.full(v)), s('rect', { class: 'box', width: w, height, rx: 5 }), head, sign, rows)
    return { element, rows, sign }
  }

  // rove makes one node the one that Tab comes to.
  function rove(v) {
    nodes[current].element.setAttribute('tabindex', -1)
    current = v
    nodes[v].element.setAttribute('tabindex', 0)
  }

  const ways = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }
  function key(e, v) {
    if (e.ctrlKey || e.altKey || e.metaKey) return
    if (ways[e.key]) focus(nearest(v, ways[e.key]))
    else if (e.key === 'Home') focus(0)
    else if (e.key === 'End') focus(n - 1)
    else if (e.key === 'Enter' || e.key === ' ') pick(v)
    else if (/^[0-9]$/.test(e.key) && Number(e.key) <= graph.variables[v].domain) observe(v, Number(e.key) - 1)
    else return
    e.preventDefault()
  }

  // nearest is the node in a direction: near, and rather straight ahead.
  function nearest(v, [dx, dy]) {
    let best = v
    let least = Infinity
    for (let w = 0; w < n; w++) {
      const x = places[w].x - places[v].x
      const y = places[w].y - places[v].y
      const ahead = x * dx + y * dy
      const aside = Math.abs(x * dy) + Math.abs(y * dx)
      if (w !== v && ahead > 1 && ahead + 2 * aside < least) {
        least = ahead + 2 * aside
        best = w
      }
    }
    return best
  }

  function focus(v) {
    rove(v)
    view.reveal(places[v], sizes[v])
    nodes[v].element.focus({ preventScroll: true })
  }

  // update shows evidence, posteriors, what is picked, and the most probable explanation.
  function update({ evidence, marginals, exact, picked, best, edited }) {
    nodes.forEach(({ element, rows, sign }, v) => {
      const seen = evidence.get(v)
      const p = marginals?.[v]
      element.setAttribute('class', 'node' + (seen ? ' seen' : '') + (picked === v ? ' picked' : '') + (p && !exact ? ' estimate' : '') + (edited.has(v) ? ' edited' : ''))
      sign.textContent = seen ? (seen.weights ? '◐' : '●') : edited.has(v) ? '✎' : ''
      element.setAttribute('aria-label', speak(v, seen, p, exact, best?.[v], edited.has(v)))
      if (picked === v) element.setAttribute('aria-current', 'true')
      else element.removeAttribute('aria-current')
      const order = [...Array(graph.variables[v].domain).keys()]
      if (p && order.length > shown(v)) order.sort((a, b) => p[b] - p[a] || a - b)
      for (const x of [best?.[v], seen?.value]) if (x !== undefined && order.indexOf(x) >= shown(v)) order.unshift(x)
      const w = sizes[v].w
      put(rows, order.slice(0, shown(v)).map((x, k) => s('g', { class: 'value' + (seen && seen.value === x ? ' on' : ''), 'data-state': x, transform: `translate(0 ${title + k * line})` },
        s('rect', { class: 'hit', x: 3, width: w - 6, height: line }),
        p ? s('rect', { class: 'p', x: 5, y: 2, width: Math.max(p[x] > 0 ? 0.7 : 0, (w - 10) * p[x]), height: line - 4, rx: 1, fill: exact ? null : 'url(#hatch)' }) : null,
        best?.[v] === x ? s('path', { class: 'best', d: 'M0.5 2.5l6 4.5l-6 4.5z' }) : null,
        s('text', { x: 8, y: 11 }, cut(of.state(v, x), w - (p && !exact ? 60 : 48))),
        p ? s('text', { class: 'number', x: w - 7, y: 11, 'text-anchor': 'end' }, (exact ? '' : '≈') + brief(p[x])) : null)))
    })
  }

  function speak(v, seen, p, exact, best, edited) {
    const values = Array.from({ length: graph.variables[v].domain }, (_, x) => x)
    return of.full(v) + ': ' + (edited ? 'edited table. ' : '') + (seen ? (seen.weights ? 'soft evidence. ' : 'observed ' + of.state(v, seen.value) + '. ') : '')
      + (p ? values.slice(0, 8).map(x => `${of.state(v, x)} ${exact ? '' : 'about '}${probability(p[x])}`).join(', ') : values.slice(0, 8).map(x => of.state(v, x)).join(', '))
      + (best === undefined ? '' : '. Most probable: ' + of.state(v, best))
  }

  const element = h('div', { class: 'canvas' }, h('div', { class: 'zoom', role: 'group', 'aria-label': 'Zoom' },
    h('button', { type: 'button', 'aria-label': 'Zoom in', onclick: () => view.zoom(1.3) }, '+'),
    h('button', { type: 'button', 'aria-label': 'Zoom out', onclick: () => view.zoom(1 / 1.3) }, '−'),
    h('button', { type: 'button', 'aria-label': 'Whole graph', onclick: view.whole }, '⤢')), svg)
  return { element, update, focus, begin: view.begin }
}

// brief writes a probability in few digits; only 0 and 1 look like it.
function brief(p) {
  if (p === 0 || p === 1) return String(p)
  if (p < 0.0005) return '<.001'
  if (p > 0.9995) return '>.999'
  return p.toFixed(3).slice(1)
}

// curve goes from box to box through the bends.
function curve(route, [a, b], sizes, directed) {
  const from = route[0]
  const to = route[route.length - 1]
  if (!directed) return `M${p(from)}L${p(to)}`
  const points = [{ x: from.x, y: from.y + sizes[a].h / 2 }, ...route.slice(1, -1), { x: to.x, y: to.y - sizes[b].h / 2 - 1 }]
  let d = 'M' + p(points[0])
  for (let k = 1; k < points.length; k++) {
    const middle = (points[k - 1].y + points[k].y) / 2
    d += `C${points[k - 1].x.toFixed(1)} ${middle.toFixed(1)} ${points[k].x.toFixed(1)} ${middle.toFixed(1)} ${p(points[k])}`
  }
  return d
}

// straight goes straight from the edge of one box to the edge of the other.
function straight([from, to], [a, b], sizes) {
  return `M${p(rim(from, to, sizes[a], 0))}L${p(rim(to, from, sizes[b], 1))}`
}

// rim is where the line to another point leaves a box, and so far beyond.
function rim(at, to, { w, h: height }, beyond) {
  const [dx, dy] = [to.x - at.x, to.y - at.y]
  const part = Math.min((w / 2 + beyond) / Math.max(1e-9, Math.abs(dx)), (height / 2 + beyond) / Math.max(1e-9, Math.abs(dy)), 1)
  return { x: at.x + part * dx, y: at.y + part * dy }
}

const p = ({ x, y }) => x.toFixed(1) + ' ' + y.toFixed(1)

function edgeOfAll(places, sizes, routes) {
  const all = [...places.map((at, v) => [at.x, at.y, sizes[v].w / 2, sizes[v].h / 2]), ...routes.flat().map(at => [at.x, at.y, 0, 0])]
  const left = Math.min(...all.map(([x, , w]) => x - w)) - 12
  const top = Math.min(...all.map(([, y, , height]) => y - height)) - 12
  return { left, top, width: Math.max(...all.map(([x, , w]) => x + w)) + 12 - left, height: Math.max(...all.map(([, y, , height]) => y + height)) + 12 - top }
}

// window_ shows a part of a drawing: it is moved by dragging, and zoomed by buttons, or the wheel with Ctrl.
function window_(svg, all) {
  let scale = 1 // pixels per unit
  let x = all.left
  let y = all.top
  let far = 0
  const set = () => {
    const { clientWidth: w, clientHeight: height } = svg
    x = inside(x, all.left, all.width, w / scale)
    y = inside(y, all.top, all.height, height / scale)
    svg.setAttribute('viewBox', `${x} ${y} ${Math.max(1, w) / scale} ${Math.max(1, height) / scale}`)
  }
  // inside keeps what is shown over the drawing; what is smaller than the window is in its middle.
  const inside = (at, from, size, room) => room >= size ? from - (room - size) / 2 : Math.min(from + size - room, Math.max(from, at))
  const fit = () => Math.min(svg.clientWidth / all.width, svg.clientHeight / all.height)
  const around = (factor, cx, cy) => {
    const next = Math.min(3, Math.max(Math.min(0.2, fit()), scale * factor))
    x += cx / scale - cx / next
    y += cy / scale - cy / next
    scale = next
    set()
  }
  let dragging = null
  svg.addEventListener('pointerdown', e => {
    dragging = e.button === 0 ? { x: e.clientX, y: e.clientY } : null
    far = 0
  })
  svg.addEventListener('pointermove', e => {
    if (!dragging || !e.buttons) return
    far += Math.abs(e.clientX - dragging.x) + Math.abs(e.clientY - dragging.y)
    if (far > 4 && !svg.hasPointerCapture(e.pointerId)) svg.setPointerCapture(e.pointerId)
    x -= (e.clientX - dragging.x) / scale
    y -= (e.clientY - dragging.y) / scale
    dragging = { x: e.clientX, y: e.clientY }
    set()
  })
  svg.addEventListener('pointerup', () => { dragging = null })
  svg.addEventListener('wheel', e => {
    if (!e.ctrlKey && !e.metaKey) return
    e.preventDefault()
    const at = svg.getBoundingClientRect()
    around(Math.exp(-e.deltaY / 300), e.clientX - at.left, e.clientY - at.top)
  }, { passive: false })
  new ResizeObserver(set).observe(svg)
  return {
    moved: () => far > 4,
    zoom: factor => around(factor, svg.clientWidth / 2, svg.clientHeight / 2),
    whole() {
      scale = Math.min(1.3, fit())
      set()
    },
    // begin shows all if it can be read then, and else the beginning.
    begin() {
      scale = Math.min(1.15, Math.max(0.62, fit()))
      x = all.left + (all.width - svg.clientWidth / scale) / 2
      y = all.top
      set()
    },
    reveal(at, size) {
      const w = svg.clientWidth / scale
      const height = svg.clientHeight / scale
      if (at.x - size.w / 2 < x) x = at.x - size.w / 2 - 20
      if (at.x + size.w / 2 > x + w) x = at.x + size.w / 2 + 20 - w
      if (at.y - size.h / 2 < y) y = at.y - size.h / 2 - 20
      if (at.y + size.h / 2 > y + height) y = at.y + size.h / 2 + 20 - height
      set()
    },
  }
}
