// Where the nodes of a graph are: the same for the same graph.

// edgesOf returns the edges of a model, pairs of nodes, and what is drawn beside its variables. A conditional probability table is
// arrows to its variable. Other factors of two variables are lines, and those of more are nodes of their own.
export function edgesOf(graph) {
  const n = graph.variables.length
  const children = graph.bayes ? childrenOf(graph) : null
  if (children) {
    const arrows = []
    graph.factors.forEach((f, k) => f.scope.forEach(v => v !== children[k] && arrows.push([v, children[k]])))
    if (acyclic(n, arrows)) return { directed: true, edges: unique(arrows), hubs: [] }
  }
  const lines = []
  const hubs = []
  for (const f of graph.factors) {
    if (f.scope.length === 2) lines.push(f.scope[0] < f.scope[1] ? [f.scope[0], f.scope[1]] : [f.scope[1], f.scope[0]])
    if (f.scope.length > 2) hubs.push(f.scope)
  }
  hubs.forEach((scope, k) => scope.forEach(v => lines.push([v, n + k])))
  return { directed: false, edges: unique(lines), hubs }
}

function unique(edges) {
  const seen = new Set()
  return edges.filter(([a, b]) => {
    const key = a + ' ' + b
    return a !== b && !seen.has(key) && seen.add(key)
  })
}

// childrenOf finds the variable that every table is of: the last of its scope or the first, each variable once; null without.
export function childrenOf(graph) {
  for (const pick of [f => f.scope[f.scope.length - 1], f => f.scope[0]]) {
    const children = graph.factors.map(pick)
    if (children.every(v => v !== undefined) && new Set(children).size === children.length && children.length === graph.variables.length) return children
  }
  return null
}

function acyclic(n, edges) {
  const into = new Array(n).fill(0)
  const out = Array.from({ length: n }, () => [])
  for (const [a, b] of edges) {
    into[b]++
    out[a].push(b)
  }
  const free = into.flatMap((d, v) => d ? [] : [v])
  let seen = 0
  while (free.length) {
    seen++
    for (const w of out[free.pop()]) if (--into[w] === 0) free.push(w)
  }
  return seen === n
}

// layered places nodes of given sizes in layers, causes above effects. It returns the centres and the bends of the edges.
export function layered(sizes, edges, { across = 22, down = 46 } = {}) {
  const n = sizes.length
  const parents = Array.from({ length: n }, () => [])
  const children = Array.from({ length: n }, () => [])
  for (const [a, b] of edges) {
    parents[b].push(a)
    children[a].push(b)
  }
  const layer = layersOf(n, parents, children)

  // what spans several layers goes through nodes of no size
  const nodes = sizes.map((size, v) => ({ ...size, layer: layer[v], up: [], down: [], x: 0, real: true }))
  const routes = edges.map(([a, b]) => {
    const route = [a]
    for (let l = layer[a] + 1; l < layer[b]; l++) {
      nodes.push({ w: 8, h: 0, layer: l, up: [], down: [], x: 0, real: false })
      route.push(nodes.length - 1)
    }
    route.push(b)
    for (let k = 1; k < route.length; k++) {
      nodes[route[k - 1]].down.push(route[k])
      nodes[route[k]].up.push(route[k - 1])
    }
    return route
  })
  const rows = rowsOf(nodes)
  order(nodes, rows)
  straighten(nodes, rows, across)

  let top = 0
  for (const row of rows) {
    const height = Math.max(...row.map(v => nodes[v].h))
    for (const v of row) nodes[v].y = top + height / 2
    top += height + down + Math.min(60, 1.2 * row.length)
  }
  return {
    places: nodes.slice(0, n).map(({ x, y }) => ({ x, y })),
    routes: routes.map(route => route.map(v => ({ x: nodes[v].x, y: nodes[v].y }))),
  }
}

// layersOf puts every node below its parents, and those without parents just above their first child.
function layersOf(n, parents, children) {
  const layer = new Array(n).fill(-1)
  const visit = v => {
    if (layer[v] < 0) {
      layer[v] = 0
      for (const p of parents[v]) layer[v] = Math.max(layer[v], visit(p) + 1)
    }
    return layer[v]
  }
  for (let v = 0; v < n; v++) visit(v)
  for (let v = 0; v < n; v++) {
    if (!parents[v].length && children[v].length) layer[v] = Math.min(...children[v].map(c => layer[c])) - 1
  }
  const least = Math.min(...layer)
  return layer.map(l => l - least)
}

function rowsOf(nodes) {
  const rows = []
  nodes.forEach((node, v) => (rows[node.layer] ||= []).push(v))
  for (let l = 0; l < rows.length; l++) rows[l] ||= []
  return rows.filter(row => row.length)
}

// order sorts the rows so that few edges cross: by the mean place of neighbours, down and up, and the best of all sweeps.
function order(nodes, rows) {
  const place = []
  const note = row => row.forEach((v, i) => { place[v] = i })
  rows.forEach(note)
  let best = rows.map(row => row.slice())
  let fewest = crossings(nodes, rows, place)
  for (let sweep = 0; sweep < 24 && fewest > 0; sweep++) {
    const downwards = sweep % 2 === 0
    for (const row of downwards ? rows : rows.slice().reverse()) {
      const key = row.map((v, i) => {
        const near = downwards ? nodes[v].up : nodes[v].down
        return [v, near.length ? near.reduce((sum, w) => sum + place[w], 0) / near.length : i, i]
      })
      key.sort((a, b) => a[1] - b[1] || a[2] - b[2])
      key.forEach(([v], i) => { row[i] = v })
      note(row)
    }
    const now = crossings(nodes, rows, place)
    if (now < fewest) {
      fewest = now
      best = rows.map(row => row.slice())
    }
  }
  best.forEach((row, l) => { rows[l].splice(0, row.length, ...row) })
}

// crossings counts the pairs of edges between neighbouring rows that cross.
function crossings(nodes, rows, place) {
  let total = 0
  for (const row of rows) {
    const ends = row.flatMap(v => nodes[v].down.map(w => place[w]).sort((a, b) => a - b))
    if (ends.length < 2) continue
    const tree = new Array(Math.max(...ends) + 2).fill(0)
    ends.forEach((end, seen) => {
      let notAfter = 0
      for (let i = end + 1; i > 0; i -= i & -i) notAfter += tree[i]
      total += seen - notAfter
      for (let i = end + 1; i < tree.length; i += i & -i) tree[i]++
    })
  }
  return total
}

// straighten moves the nodes of each row towards their neighbours' mean, in their order and apart.
function straighten(nodes, rows, across) {
  for (const row of rows) {
    let x = 0
    row.forEach((v, i) => {
      if (i) x += apart(nodes[row[i - 1]], nodes[v], across)
      nodes[v].x = x
    })
    for (const v of row) nodes[v].x -= x / 2
  }
  for (let sweep = 0; sweep < 30; sweep++) {
    for (const row of sweep % 2 ? rows.slice().reverse() : rows) {
      const wish = row.map(v => {
        const near = sweep > 24 ? [...nodes[v].up, ...nodes[v].down] : sweep % 2 ? nodes[v].down : nodes[v].up
        if (!near.length) return [nodes[v].x, 0.1]
        return [near.reduce((sum, w) => sum + nodes[w].x, 0) / near.length, nodes[v].real ? near.length : 4]
      })
      settle(nodes, row, wish, across)
    }
  }
}

const apart = (a, b, across) => (a.w + b.w) / 2 + (a.real || b.real ? across : 8)

// settle places a row as close as can be, by least squares, to where its nodes wish to be: blocks of those that touch have one wish.
function settle(nodes, row, wish, across) {
  const blocks = []
  let offset = 0
  row.forEach((v, i) => {
    if (i) offset += apart(nodes[row[i - 1]], nodes[v], across)
    let block = { sum: (wish[i][0] - offset) * wish[i][1], weight: wish[i][1], from: i }
    while (blocks.length && blocks[blocks.length - 1].sum / blocks[blocks.length - 1].weight >= block.sum / block.weight) {
      const last = blocks.pop()
      block = { sum: last.sum + block.sum, weight: last.weight + block.weight, from: last.from }
    }
    blocks.push(block)
  })
  offset = 0
  let b = 0
  row.forEach((v, i) => {
    if (i) offset += apart(nodes[row[i - 1]], nodes[v], across)
    while (b + 1 < blocks.length && blocks[b + 1].from <= i) b++
    nodes[v].x = blocks[b].sum / blocks[b].weight + offset
  })
}

const mostStretch = 6

// placed places variables where their file draws them, stretched so that no box is on another one, and factors in the middle of theirs;
// null where the file draws none, or some on each other.
export function placed(sizes, variables, edges, hubs) {
  if (!variables.length || !variables.every(({ place }) => place)) return null
  let stretch = 0
  for (let v = 0; v < variables.length; v++) {
    for (let w = 0; w < v; w++) {
      const across = ((sizes[v].w + sizes[w].w) / 2 + 12) / Math.abs(variables[v].place[0] - variables[w].place[0])
      const down = ((sizes[v].h + sizes[w].h) / 2 + 12) / Math.abs(variables[v].place[1] - variables[w].place[1])
      stretch = Math.max(stretch, Math.min(across, down))
    }
  }
  if (stretch > mostStretch) return null
  const scale = Math.max(stretch, 0.5)
  const places = variables.map(({ place: [x, y] }) => ({ x: scale * x, y: scale * y }))
  for (const scope of hubs) {
    const mean = of => scope.reduce((sum, v) => sum + of(places[v]), 0) / scope.length
    places.push({ x: mean(at => at.x), y: mean(at => at.y) })
  }
  return { places, routes: edges.map(([a, b]) => [places[a], places[b]]), isStraight: true }
}

// spread places nodes so that their distances are about those in the graph (stress, by stochastic gradient descent in a fixed sequence),
// one connected part beside the other.
export function spread(sizes, edges, { unit = 120 } = {}) {
  const n = sizes.length
  const near = Array.from({ length: n }, () => [])
  for (const [a, b] of edges) {
    near[a].push(b)
    near[b].push(a)
  }
  const places = new Array(n)
  const seen = new Array(n).fill(false)
  const parts = []
  for (let v = 0; v < n; v++) {
    if (seen[v]) continue
    const part = [v]
    seen[v] = true
    for (let k = 0; k < part.length; k++) for (const w of near[part[k]]) if (!seen[w]) part.push(w) && (seen[w] = true)
    parts.push(part)
  }
  const boxes = parts.map(part => relax(part, near, sizes, unit, places))
  pack(parts, boxes, places)
  return { places, routes: edges.map(([a, b]) => [places[a], places[b]]) }
}

// relax places the nodes of a connected part, and returns the box that it takes.
function relax(part, near, sizes, unit, places) {
  const at = new Map(part.map((v, i) => [v, i]))
  const m = part.length
  const x = part.map((_, i) => unit * Math.sqrt(i + 1) * Math.cos(2.399963 * i)) // a sunflower
  const y = part.map((_, i) => unit * Math.sqrt(i + 1) * Math.sin(2.399963 * i))
  const pairs = []
  let far = 1
  for (let s = 0; s < m; s++) {
    const distance = new Int32Array(m).fill(-1)
    distance[s] = 0
    const queue = [s]
    for (let k = 0; k < queue.length; k++) {
      for (const w of near[part[queue[k]]]) {
        const i = at.get(w)
        if (distance[i] < 0) {
          distance[i] = distance[queue[k]] + 1
          queue.push(i)
        }
      }
    }
    for (let i = 0; i < s; i++) {
      pairs.push([s, i, distance[i]])
      far = Math.max(far, distance[i])
    }
  }
  let random = 1
  const draw = k => {
    random = (Math.imul(random, 1664525) + 1013904223) >>> 0
    return Math.floor(random / 4294967296 * k)
  }
  const rounds = 30
  for (let round = 0; round < rounds; round++) {
    const eta = far * far * Math.exp(-Math.log(far * far / 0.1) * round / (rounds - 1))
    for (let i = pairs.length - 1; i > 0; i--) {
      const j = draw(i + 1)
      const swap = pairs[i]
      pairs[i] = pairs[j]
      pairs[j] = swap
    }
    for (const [a, b, d] of pairs) {
      const dx = x[a] - x[b]
      const dy = y[a] - y[b]
      const length = Math.hypot(dx, dy) || 1e-6
      const step = Math.min(1, eta / (d * d)) * (length - d * unit) / 2 / length
      x[a] -= step * dx
      y[a] -= step * dy
      x[b] += step * dx
      y[b] += step * dy
    }
  }
  turn(x, y, part.flatMap((v, i) => near[v].map(w => [i, at.get(w)])))
  let scale = 1
  for (const [a, b] of pairs) { // as large as it takes for the boxes not to overlap
    const size = k => sizes[part[k]]
    const w = (size(a).w + size(b).w) / 2 + 8
    const h = (size(a).h + size(b).h) / 2 + 8
    const need = Math.min(w / Math.max(1e-6, Math.abs(x[a] - x[b])), h / Math.max(1e-6, Math.abs(y[a] - y[b])))
    scale = Math.max(scale, Math.min(2.5, need))
  }
  const box = { left: Infinity, right: -Infinity, top: Infinity, bottom: -Infinity }
  part.forEach((v, i) => {
    places[v] = { x: scale * x[i], y: scale * y[i] }
    box.left = Math.min(box.left, places[v].x - sizes[v].w / 2)
    box.right = Math.max(box.right, places[v].x + sizes[v].w / 2)
    box.top = Math.min(box.top, places[v].y - sizes[v].h / 2)
    box.bottom = Math.max(box.bottom, places[v].y + sizes[v].h / 2)
  })
  return box
}

// turn has the edges of a grid lie across and upright, and of others the longest direction across.
function turn(x, y, edges) {
  const m = x.length
  let cos = 0
  let sin = 0
  for (const [a, b] of edges) {
    const angle = 4 * Math.atan2(y[a] - y[b], x[a] - x[b])
    cos += Math.cos(angle)
    sin += Math.sin(angle)
  }
  const mx = x.reduce((a, b) => a + b, 0) / m
  const my = y.reduce((a, b) => a + b, 0) / m
  let xx = 0
  let xy = 0
  let yy = 0
  for (let i = 0; i < m; i++) {
    xx += (x[i] - mx) ** 2
    xy += (x[i] - mx) * (y[i] - my)
    yy += (y[i] - my) ** 2
  }
  const grid = Math.hypot(cos, sin) > 0.4 * edges.length && edges.length > 2 * m
  const angle = -(grid ? Math.atan2(sin, cos) / 4 : Math.atan2(2 * xy, xx - yy) / 2)
  for (let i = 0; i < m; i++) {
    const [a, b] = [x[i] - mx, y[i] - my]
    x[i] = a * Math.cos(angle) - b * Math.sin(angle)
    y[i] = a * Math.sin(angle) + b * Math.cos(angle)
  }
}

// pack puts boxes in rows, about twice as wide as high together.
function pack(parts, boxes, places) {
  const gap = 30
  const area = boxes.reduce((sum, b) => sum + (b.right - b.left + gap) * (b.bottom - b.top + gap), 0)
  const width = Math.max(Math.sqrt(2 * area), ...boxes.map(b => b.right - b.left))
  const byHeight = parts.map((_, i) => i).sort((i, j) => (boxes[j].bottom - boxes[j].top) - (boxes[i].bottom - boxes[i].top) || i - j)
  let left = 0
  let top = 0
  let high = 0
  for (const i of byHeight) {
    const b = boxes[i]
    if (left > 0 && left + b.right - b.left > width) {
      left = 0
      top += high + gap
      high = 0
    }
    for (const v of parts[i]) places[v] = { x: places[v].x - b.left + left, y: places[v].y - b.top + top }
    left += b.right - b.left + gap
    high = Math.max(high, b.bottom - b.top)
  }
}
