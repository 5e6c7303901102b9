// Workers, lanes, and what waits for them.

import { get } from './api.js'
import { every, h, put, s, say } from './dom.js'
import { bytes, digits, duration, whole } from './format.js'

export async function workers({ main, signal }) {
  const stages = h('tbody')
  const lanes = h('div', { class: 'lanes' })
  const streams = h('tbody')
  const version = h('p', { class: 'hint' })
  const none = h('p', { class: 'empty', hidden: true }, 'This gateway connects as a tenant, who may not look at the queues.')
  const parts = h('div', {},
    h('div', { class: 'scroll' }, h('table', { class: 'list stages' }, h('caption', {}, 'Stages'),
      h('thead', {}, h('tr', {}, h('th', { scope: 'col' }, 'Stage'), h('th', { scope: 'col' }, 'Workers'),
        ['Backlog', 'Seconds of work', 'Messages', 'In work', 'Flops expected'].map((t, i) => h('th', { scope: 'col', class: i ? 'number' : null }, t)))), stages)),
    h('section', { 'aria-labelledby': 'lanes-title' }, h('h2', { id: 'lanes-title' }, 'Lanes'),
      h('p', { class: 'hint' }, 'Tenants are spread over sixteen lanes, which are served in turn. Waiting and working are messages of all stages.'), lanes),
    h('div', { class: 'scroll' }, h('table', { class: 'list streams' }, h('caption', {}, 'Room in streams'),
      h('thead', {}, h('tr', {}, h('th', { scope: 'col' }, 'Stream'), h('th', { scope: 'col' }, 'Filled'), h('th', { scope: 'col', class: 'number' }, 'Bytes'),
        h('th', { scope: 'col', class: 'number' }, 'Limit'))), streams)))
  put(main, h('h1', {}, 'Workers'), none, parts, version)

  async function look() {
    const status = await get('v1/status', signal)
    version.textContent = 'basetensor ' + status.version
    none.hidden = status.stages.length > 0
    parts.hidden = status.stages.length === 0
    const longest = Math.max(1, ...status.stages.map(x => x.seconds))
    put(stages, status.stages.map(x => {
      const here = x.working + x.asking > 0
      return h('tr', {}, h('th', { scope: 'row' }, x.stage),
        h('td', {}, h('span', { class: 'state ' + (here ? 'ok' : x.messages ? 'error' : 'pending') }, here ? (x.working ? '● at work' : '○ waiting for work') : '✕ nobody')),
        h('td', { class: 'bar wide' }, h('span', { class: 'fill', 'width%': 100 * x.seconds / longest })),
        h('td', { class: 'number' }, x.seconds ? duration(1000 * x.seconds) : x.messages ? 'not known' : '0 s'), h('td', { class: 'number' }, whole(x.messages)),
        h('td', { class: 'number' }, whole(x.working)), h('td', { class: 'number' }, x.flops ? digits(x.flops) : ''))
    }))
    const deepest = Math.max(1, ...status.lanes.map(x => x.waiting + x.working))
    put(lanes, status.lanes.map(x => lane(x, deepest)))
    put(streams, status.streams.map(x => h('tr', {}, h('th', { scope: 'row' }, x.stream),
      h('td', { class: 'bar wide' }, h('span', { class: 'fill', 'width%': x.limit > 0 ? Math.min(100, 100 * x.bytes / x.limit) : 0 })),
      h('td', { class: 'number' }, bytes(x.bytes)), h('td', { class: 'number' }, x.limit > 0 ? bytes(x.limit) : 'none'))))
  }

  await look()
  every(2000, signal, () => look().catch(err => say(err.message)))
}

function lane(x, deepest) {
  const height = n => 60 * n / deepest
  return h('div', { class: 'lane' + (x.waiting + x.working ? '' : ' idle'), role: 'group', 'aria-label': `lane ${x.lane}: ${x.waiting} waiting, ${x.working} in work` },
    s('svg', { viewBox: '0 0 40 64', 'aria-hidden': 'true' },
      s('rect', { class: 'base', x: 4, y: 62, width: 32, height: 1 }),
      s('rect', { class: 'queue', x: 4, y: 62 - height(x.waiting + x.working), width: 32, height: height(x.waiting) }),
      s('rect', { class: 'work', x: 4, y: 62 - height(x.working), width: 32, height: height(x.working) })),
    h('strong', {}, String(x.lane)), h('span', {}, `${whole(x.waiting)} + ${whole(x.working)}`))
}
