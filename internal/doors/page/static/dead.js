// Dead letters: messages that steps of jobs gave up, and starting those jobs again.

import { access, ask, get, segment } from './api.js'
import { alarm, every, h, later, put, say } from './dom.js'
import { ago, clock, count } from './format.js'
import { errorOf, spoken, stages } from './words.js'

const most = 500

export async function deadLetters({ main, signal }) {
  const search = h('input', { id: 'dead-text', type: 'search', placeholder: 'job, tenant, error', autocomplete: 'off', spellcheck: 'false', oninput: later(draw, 150) })
  const body = h('tbody')
  const none = h('p', { class: 'empty', hidden: true }, 'Nothing was given up.')
  const more = h('p', { class: 'hint' })
  let all = []
  let shown = null

  function draw() {
    const text = search.value.trim().toLowerCase()
    const fitting = all.filter(l => [l.job, l.tenant || '', l.stage, l.error.code, l.error.message].some(f => f.toLowerCase().includes(text)))
    put(body, fitting.slice(0, most).map(row))
    none.hidden = all.length > 0
    more.textContent = fitting.length > most ? `The ${most} newest of ${count(fitting.length, 'message')}.` : fitting.length < all.length ? `${fitting.length} of ${all.length}` : ''
  }

  function row(l) {
    const id = 'replay-' + l.stage + '-' + l.job
    return h('tr', {}, h('td', { class: 'when', title: clock(l.time) }, ago(l.time)),
      h('td', { class: 'id' }, h('a', { href: '#/jobs/' + segment(l.job) }, l.job), l.tenant ? h('div', { class: 'hint' }, l.tenant) : null),
      h('td', {}, stages[l.stage] || l.stage), h('td', { class: 'what' }, h('strong', { title: l.error.code }, errorOf(l.error.code)), ' ', h('span', { class: 'message' }, spoken(l.error.message))),
      h('td', { class: 'number', 'data-of': 'tries' }, String(l.deliveries)),
      h('td', {}, access.change ? h('button', { type: 'button', id, 'aria-label': 'Replay job ' + l.job, onclick: e => replay(l, e.target) }, 'Replay') : null))
  }

  async function replay(l, button) {
    button.disabled = true
    try {
      await ask('POST', `v1/dead-letters/${segment(l.job)}/replay`, { body: {} })
      say('job ' + l.job + ' is replayed')
      location.hash = '#/jobs/' + segment(l.job)
    } catch (err) {
      button.disabled = false
      alarm(err.message)
    }
  }

  async function look() {
    const list = (await get('v1/dead-letters', signal)).dead_letters.reverse()
    const now = JSON.stringify(list)
    if (now === shown) return
    shown = now
    all = list
    draw()
  }

  put(main, h('div', { class: 'head' }, h('h1', {}, 'Given up'),
    h('form', { class: 'filters', role: 'search', onsubmit: e => e.preventDefault() }, h('label', {}, 'Find ', search))),
  h('p', { class: 'hint' }, 'Messages that a step of a job gave up after several tries (dead letters). A replay starts the job again from its stored model, once the cause is gone.'
    + (access.change ? '' : ' Replaying needs a key: ' + access.why + '.')),
  h('div', { class: 'scroll' }, h('table', { class: 'list cards dead' }, h('caption', { class: 'unseen' }, 'What was given up, newest first'),
    h('thead', {}, h('tr', {}, ['When', 'Job', 'Step', 'Error'].map(t => h('th', { scope: 'col' }, t)),
      h('th', { scope: 'col', class: 'number' }, 'Tries'), h('th', { scope: 'col' }, h('span', { class: 'unseen' }, 'Action')))), body)), none, more)
  await look()
  every(5000, signal, () => look().catch(err => say(err.message)))
}
