// Workers: who is there, what waits for them, and how full the storage is.

import { get } from './api.js'
import { every, h, put, s, say } from './dom.js'
import { bytes, count, digits, duration, whole } from './format.js'
import { stages as words, stores } from './words.js'

export async function workers({ main, signal }) {
  const stages = h('tbody')
  const queues = h('div', { class: 'queues' })
  const streams = h('tbody')
  const version = h('p', { class: 'hint' })
  const several = h('p', { class: 'warning', hidden: true })
  const none = h('p', { class: 'empty', hidden: true }, 'This gateway connects as a tenant, who may not look at the queues.')
  const head = (text, number) => h('th', { scope: 'col', class: number ? 'number' : null }, text)
  const parts = h('div', {},
    h('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'Steps of a job' }, h('table', { class: 'list cards stages' }, h('caption', {}, 'Steps of a job'),
      h('thead', {}, h('tr', {}, head('Step'), head('Workers'), head('Version'), head('Done', true), head('Waiting', true), head('Handed out', true),
        h('th', { scope: 'col', colspan: 2 }, 'Work that waits'))), stages)),
    h('section', { 'aria-labelledby': 'queues-title' }, h('h2', { id: 'queues-title' }, 'Queues'),
      h('p', { class: 'hint' }, 'Tenants are spread over sixteen queues, which are served in turn: the first number waits, the second is handed out (in work, or put aside), over all steps.'), queues),
    h('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'Storage' }, h('table', { class: 'list cards streams' }, h('caption', {}, 'Storage'),
      h('thead', {}, h('tr', {}, head('For'), head('Filled'), head('Used', true), head('Room', true))), streams)))
  put(main, h('h1', {}, 'Workers'), none, several, parts, version)

  async function look() {
    const status = await get('v1/status', signal)
    version.textContent = 'This gateway is basetensor ' + status.version
    none.hidden = status.stages.length > 0
    parts.hidden = status.stages.length === 0
    const versions = [...new Set(status.stages.flatMap(x => x.versions || []))]
    several.hidden = versions.length < 2
    several.textContent = 'Workers of several versions are there: ' + versions.join(', ') + '.'
    const longest = Math.max(1, ...status.stages.map(x => x.seconds))
    put(stages, status.stages.map(x => h('tr', {}, h('th', { scope: 'row', title: x.stage }, words[x.stage] || x.stage), h('td', {}, crew(x)),
      h('td', {}, (x.versions || []).join(', ')), h('td', { class: 'number', 'data-of': 'done' }, x.workers ? rate(x.rate || 0) : ''),
      h('td', { class: 'number', 'data-of': 'waiting' }, whole(Math.max(0, x.messages - x.working))),
      h('td', { class: 'number', 'data-of': 'handed out' }, whole(x.working)),
      h('td', { class: 'bar wide' }, h('span', { class: 'fill', 'width%': 100 * x.seconds / longest })),
      h('td', { class: 'number', 'data-of': 'work', title: x.flops ? digits(x.flops) + ' flops' : null }, x.seconds ? duration(1000 * x.seconds) : x.messages ? 'not known' : '0 s'))))
    const deepest = Math.max(1, ...status.lanes.map(x => x.waiting + x.working))
    put(queues, status.lanes.map(x => queue(x, deepest)))
    put(streams, status.streams.map(x => h('tr', {}, h('th', { scope: 'row', title: x.stream }, stores[x.stream] || x.stream),
      h('td', { class: 'bar wide' }, h('span', { class: 'fill', 'width%': x.limit > 0 ? Math.min(100, 100 * x.bytes / x.limit) : 0 })),
      h('td', { class: 'number' }, bytes(x.bytes)), h('td', { class: 'number', 'data-of': 'of' }, x.limit > 0 ? bytes(x.limit) : 'no limit'))))
  }

  await look()
  every(2000, signal, () => look().catch(err => say(err.message)))
}

// crew says how many workers of a step are there, and whether they work.
function crew(x) {
  const here = x.workers || x.working + x.asking > 0
  const number = x.workers ? count(x.workers, 'worker') : 'there'
  return h('span', { class: 'state ' + (here ? 'ok' : x.messages ? 'error' : 'pending') }, here ? (x.working ? '● ' + number + ', at work' : '○ ' + number) : '✕ nobody')
}

const rate = r => r === 0 ? '0 / s' : r < 0.1 ? digits(60 * r, 2) + ' / min' : digits(r, 2) + ' / s'

function queue(x, deepest) {
  const height = n => 60 * n / deepest
  const number = x.lane + 1
  return h('div', { class: 'queue' + (x.waiting + x.working ? '' : ' idle'), role: 'group', 'aria-label': `queue ${number}: ${x.waiting} waiting, ${x.working} handed out` },
    s('svg', { viewBox: '0 0 40 64', 'aria-hidden': 'true' },
      s('rect', { class: 'base', x: 4, y: 62, width: 32, height: 1 }),
      s('rect', { class: 'waits', x: 4, y: 62 - height(x.waiting + x.working), width: 32, height: height(x.waiting) }),
      s('rect', { class: 'work', x: 4, y: 62 - height(x.working), width: 32, height: height(x.working) })),
    h('strong', {}, String(number)), h('span', {}, `${whole(x.waiting)} + ${whole(x.working)}`))
}
