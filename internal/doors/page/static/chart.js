// Estimates against their rung.

import { h, s } from './dom.js'
import { count, digits, rounded } from './format.js'

const frame = { width: 720, height: 240, left: 84, right: 12, top: 14, bottom: 40 }

// rung says which rung an estimate is.
function rung(e) {
  const where = e.family === 'regions' ? `${e.kind} ${e.size}` : e.family === 'sampled' ? `sampled, ${count(e.size, 'rung')} a chain` : `${e.family}, bond ${e.bond}`
  return where + (e.slices > 1 ? ', ' + count(e.slices, 'slice') : '')
}

const track = e => e.family + ' ' + e.plan

// spread has per estimate how far it moved from the one before on its track, and of the last what the result states.
function spread(r) {
  const before = new Map()
  const bars = r.estimates.map(e => {
    if (e.log_z === null) return null
    const last = before.get(track(e))
    before.set(track(e), e.log_z)
    return last === undefined ? null : Math.abs(e.log_z - last)
  })
  return bars
}

// estimates draws the sequence, with a table of it; ln is the name of the logarithm of Z.
export function estimates(r, ln) {
  const all = r.estimates
  const moved = spread(r)
  const good = all.map((e, i) => ({ e, i, moved: moved[i] })).filter(x => x.e.log_z !== null)
  const tracks = [...new Set(all.map(track))]
  return h('section', { 'aria-labelledby': 'estimates-title' }, h('h3', { id: 'estimates-title' }, 'Estimates'),
    good.length ? h('figure', {}, draw(r, good, tracks, all.length, ln), h('figcaption', { class: 'hint' },
      ln + ' against the rung. A bar is how far an estimate is from the one before it on the same plan'
      + (r.uncertainty !== null ? '; the band is what the result states.' : '.'))) : null,
    h('details', {}, h('summary', {}, `Table of ${count(all.length, 'rung')}`), h('div', { class: 'scroll' }, h('table', { class: 'list' },
      h('thead', {}, h('tr', {}, ['rung', 'plan', ln, 'moved by', 'discarded', 'flops'].map(t => h('th', { scope: 'col' }, t)))),
      h('tbody', {}, all.map((e, i) => h('tr', {}, h('td', {}, rung(e)), h('td', {}, String(e.plan)),
        h('td', { class: 'number' }, e.log_z === null ? 'failed: ' + e.failed : '≈ ' + digits(e.log_z, 9)),
        h('td', { class: 'number' }, moved[i] === null ? '' : digits(moved[i], 2)),
        h('td', { class: 'number' }, e.discarded === null ? '' : digits(e.discarded, 2)), h('td', { class: 'number' }, digits(e.flops)))))))))
}

const shapes = [
  (x, y) => s('circle', { cx: x, cy: y, r: 4 }),
  (x, y) => s('rect', { x: x - 3.6, y: y - 3.6, width: 7.2, height: 7.2 }),
  (x, y) => s('path', { d: `M${x} ${y - 5}l5 8.5h-10z` }),
  (x, y) => s('path', { d: `M${x} ${y - 5.5}l5.5 5.5l-5.5 5.5l-5.5-5.5z` }),
]

function draw(r, good, tracks, n, ln) {
  let low = Infinity
  let high = -Infinity
  // what the first rungs are far off would hide what the last ones do: bars are cut at the edge
  for (const { e } of good) {
    low = Math.min(low, e.log_z)
    high = Math.max(high, e.log_z)
  }
  if (r.uncertainty !== null && r.log_z !== null) {
    low = Math.min(low, r.log_z - r.uncertainty)
    high = Math.max(high, r.log_z + r.uncertainty)
  }
  const pad = (high - low) * 0.12 || Math.max(1e-9, Math.abs(high) * 1e-9)
  low -= pad
  high += pad
  const marks = ticks(low, high).map(z => [z, rounded(z, (high - low) / 10)])
  const box = { ...frame, left: 18 + 6.4 * Math.max(...marks.map(([, text]) => text.length)) }
  const x = i => box.left + (i + 0.5) * (box.width - box.left - box.right) / n
  const y = z => box.top + (high - z) / (high - low) * (box.height - box.top - box.bottom)
  const inside = z => Math.min(box.height - box.bottom, Math.max(box.top, y(z)))
  const parts = []
  for (const [z, text] of marks) {
    parts.push(s('line', { class: 'grid', x1: box.left, x2: box.width - box.right, y1: y(z), y2: y(z) }),
      s('text', { class: 'tick', x: box.left - 6, y: y(z) + 4, 'text-anchor': 'end' }, text))
  }
  const every = Math.ceil(n / 8)
  r.estimates.forEach((e, i) => {
    if (i % every === 0) {
      parts.push(s('text', { class: 'tick', x: x(i), y: box.height - box.bottom + 16, 'text-anchor': 'middle' },
        e.family === 'regions' ? `${e.kind} ${e.size}` : String(e.family === 'sampled' ? i + 1 : e.bond)))
    }
  })
  parts.push(s('text', { class: 'tick', x: (box.left + box.width) / 2, y: box.height - 6, 'text-anchor': 'middle' },
    r.estimates.some(e => e.family === 'regions' || e.family === 'sampled') ? 'rung' : 'bond'))
  if (r.uncertainty !== null && r.log_z !== null) {
    const top = inside(r.log_z + r.uncertainty)
    parts.push(s('rect', { class: 'band', x: box.left, width: box.width - box.left - box.right, y: top, height: Math.max(1.5, inside(r.log_z - r.uncertainty) - top) }),
      s('line', { class: 'stated', x1: box.left, x2: box.width - box.right, y1: inside(r.log_z), y2: inside(r.log_z) }))
  }
  tracks.forEach((name, k) => {
    const own = good.filter(({ e }) => track(e) === name)
    const line = 'M' + own.map(({ e, i }) => `${x(i).toFixed(1)} ${y(e.log_z).toFixed(1)}`).join('L')
    parts.push(s('g', { class: 'track t' + k % 4 }, s('path', { class: 'line', d: line }),
      own.map(({ e, i, moved }) => [
        moved ? s('path', { class: 'whisker', d: whisker(x(i), inside(e.log_z - moved), inside(e.log_z + moved)) }) : null,
        s('g', {}, s('title', {}, `${rung(e)}: ${ln} ≈ ${digits(e.log_z, 9)}` + (moved === null ? '' : `, moved by ${digits(moved, 2)}`)), shapes[k % 4](x(i), y(e.log_z))),
      ])))
  })
  const final = good[good.length - 1]
  return s('svg', {
    class: 'estimates', viewBox: `0 0 ${box.width} ${box.height}`, role: 'img',
    'aria-label': `${count(good.length, 'estimate')} of ${ln}; the last is about ${digits(final.e.log_z, 6)}`,
  }, parts)
}

const whisker = (x, y1, y2) => `M${x - 4} ${y1}h8M${x - 4} ${y2}h8M${x} ${y1}V${y2}`

// ticks are four or so round numbers in a range.
function ticks(low, high) {
  const rough = (high - low) / 4
  const power = 10 ** Math.floor(Math.log10(rough))
  const step = [1, 2, 5, 10].map(m => m * power).find(m => m >= rough)
  const all = []
  for (let k = Math.ceil(low / step); k * step <= high && all.length < 12; k++) all.push(k * step)
  return all
}
