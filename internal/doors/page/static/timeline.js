// When which stage worked on a job: a bar per stage and task, queue and work apart.

import { h, put, s } from './dom.js'
import { count, duration } from './format.js'
import { stages } from './words.js'

const most = 200 // tasks that are drawn

export function timeline(element, job) {
  const spans = job.timeline || []
  element.hidden = !spans.length
  if (!spans.length) return put(element, h('h2', { id: 'time-title' }, 'Timeline'))
  const known = spans.filter(x => x.queued_ms !== null && x.ended_ms !== null)
  const end = Math.max(...known.map(x => x.ended_ms), job.answered && job.submitted ? job.answered - job.submitted : 0, 1e-3)
  const rows = spans.slice(0, most)
  const label = x => (stages[x.stage] || x.stage) + (x.chunk !== null ? ` ${x.chunk + 1}/${x.of}` : '')
  put(element, h('div', { class: 'head' }, h('h2', { id: 'time-title' }, 'Timeline'),
    h('span', { class: 'legend' }, h('span', { class: 'swatch queue' }), ' queue ', h('span', { class: 'swatch work' }), ' work')),
  h('div', { class: 'scroll' }, h('table', { class: 'timeline' },
    h('caption', { class: 'unseen' }, 'Steps and tasks: when, how long in the queue, how long at work'),
    h('thead', {}, h('tr', {}, h('th', { scope: 'col' }, 'Step'), h('th', { scope: 'col', class: 'scale' }, h('span', {}, '0'), h('span', {}, duration(end))),
      h('th', { scope: 'col' }, 'Queue'), h('th', { scope: 'col' }, 'Work'))),
    h('tbody', {}, rows.map(x => {
      const whole = x.queued_ms !== null && x.ended_ms !== null
      const queue = whole ? Math.max(0, x.ended_ms - x.queued_ms - x.work_ms) : null
      return h('tr', {}, h('th', { scope: 'row' }, label(x)), h('td', { class: 'track' }, whole ? bar(x, queue, end) : null),
        h('td', { class: 'number' }, queue === null ? '?' : duration(queue)), h('td', { class: 'number' }, duration(x.work_ms)))
    })))),
  spans.length > most ? h('p', { class: 'hint' }, `The first ${most} of ${count(spans.length, 'row')}.`) : null)
}

function bar(x, queue, end) {
  const at = ms => Math.min(1000, 1000 * ms / end)
  const from = at(x.queued_ms)
  const work = at(x.queued_ms + queue)
  const to = at(x.ended_ms)
  return s('svg', { viewBox: '0 0 1000 14', preserveAspectRatio: 'none', 'aria-hidden': 'true' },
    s('rect', { class: 'queue', x: from, y: 5, width: Math.max(0, work - from), height: 4 }),
    s('rect', { class: 'work', x: work, y: 1, width: Math.max(3, to - work), height: 12 }))
}
