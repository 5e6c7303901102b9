// Registered models: what they are called, putting files there.

import { access, ask, get, segment } from './api.js'
import { alarm, h, hush, later, put, say } from './dom.js'
import { ago, bytes, clock, count } from './format.js'
import { formatOf, kinds, opener, plainName, unpacked } from './open.js'
import { modelOf } from './words.js'

const most = 500

// nameOf is what a model is called in requests.
export const nameOf = m => m.name ? m.name + (m.version ? '@' + m.version : '') : m.digest

export async function models({ main, signal }) {
  const search = h('input', { id: 'models-text', type: 'search', placeholder: 'name, tenant', autocomplete: 'off', spellcheck: 'false', oninput: later(draw, 120) })
  const body = h('tbody')
  const none = h('p', { class: 'empty', hidden: true }, 'No models are registered.')
  const more = h('p', { class: 'hint' })
  let all = []

  async function look() {
    all = (await get('v1/models', signal)).models.slice().reverse()
    draw()
  }

  function draw() {
    const text = search.value.trim().toLowerCase()
    const fitting = all.filter(m => [nameOf(m), m.digest, m.owner || '', m.by || ''].some(f => f.toLowerCase().includes(text)))
    put(body, fitting.slice(0, most).map(row))
    none.hidden = all.length > 0
    more.textContent = fitting.length > most ? `The first ${most} of ${count(fitting.length, 'model')}.` : ''
  }

  function row(m) {
    const name = nameOf(m)
    return h('tr', {}, h('td', { class: 'id' }, h('a', { href: '#/graph/model/' + segment(name), title: m.digest }, modelOf(name))),
      h('td', { class: 'tenant' }, m.owner || '', m.by ? h('span', { class: 'hint' }, ' ' + m.by) : null),
      h('td', { class: 'when', title: m.time ? clock(m.time) : null }, m.time ? ago(m.time) : ''), h('td', { class: 'number' }, m.bytes ? bytes(m.bytes) : ''),
      h('td', { class: 'does' }, access.ask ? h('a', { class: 'button', href: '#/ask/model/' + segment(name), 'aria-label': 'Ask ' + modelOf(name) }, 'Ask') : null, ' ',
        access.change && !access.tenant ? h('button', { type: 'button', class: 'danger', 'aria-label': 'Remove ' + modelOf(name), onclick: e => remove(m, e.target) }, 'Remove') : null))
  }

  async function remove(m, button) {
    if (!button.dataset.sure) { // once more, for it cannot be undone
      button.dataset.sure = 'yes'
      button.textContent = 'Really?'
      return say('press again to remove ' + modelOf(nameOf(m)))
    }
    try {
      await ask('DELETE', 'v1/models/' + segment(nameOf(m)))
      say(modelOf(nameOf(m)) + ' is removed')
      await look()
    } catch (err) {
      alarm(err.message)
    }
  }

  put(main, h('div', { class: 'head' }, h('h1', {}, 'Models'),
    h('form', { class: 'filters', role: 'search', onsubmit: e => e.preventDefault() }, h('label', {}, 'Find ', search))),
  access.ask ? h('p', { class: 'row' }, opener(), h('span', { class: 'hint' }, 'or drop one anywhere on the page, to see and ask it. ' + kinds)) : null,
  access.change ? upload(look, await takesNames(signal)) : h('p', { class: 'hint' }, 'Models are put here with ', h('code', {}, 'btn model put'), ', or on this page with a key: ' + access.why + '.'),
  h('div', { class: 'scroll' }, h('table', { class: 'list cards models' }, h('caption', { class: 'unseen' }, 'Registered models, newest first'),
    h('thead', {}, h('tr', {}, ['Model', 'Whose', 'Registered'].map(t => h('th', { scope: 'col' }, t)), h('th', { scope: 'col', class: 'number' }, 'Size'),
      h('th', { scope: 'col' }, h('span', { class: 'unseen' }, 'Action')))), body)), none, more)
  await look()
}

// upload is a form that registers a file.
function upload(done, names) {
  const file = h('input', { type: 'file', id: 'upload-file', required: true })
  const name = h('input', { id: 'upload-name', autocomplete: 'off', spellcheck: 'false', placeholder: 'as the file is called', pattern: '[A-Za-z0-9_.\\-]{1,64}' })
  const button = h('button', { class: 'first', id: 'upload-go' }, 'Put')
  const says = h('p', { class: 'hint', role: 'status' })
  file.addEventListener('change', () => {
    name.value = plainName(file.files[0]?.name || '').slice(0, 64)
    says.textContent = ''
    hush()
  })
  return h('form', {
    class: 'upload', 'aria-label': 'Put a model', onsubmit: async e => {
      e.preventDefault()
      button.disabled = true
      says.textContent = 'reading…'
      try {
        const put = await send(file.files[0], names && name.value.trim())
        says.textContent = modelOf(nameOf(put)) + ' is registered'
        file.value = name.value = ''
        await done()
      } catch (err) {
        says.textContent = ''
        alarm(err.message)
      } finally {
        button.disabled = false
      }
    },
  }, h('label', {}, 'File ', file), names ? h('label', {}, 'Name ', name) : null, button, says,
  h('p', { class: 'hint' }, 'Registered, it can be asked by its name from anywhere.'))
}

async function send(file, name) {
  const format = formatOf(file.name) ? '?format=' + formatOf(file.name) : ''
  const body = await unpacked(file)
  return ask(name ? 'PUT' : 'POST', 'v1/models' + (name ? '/' + segment(name) : '') + format, { body, type: 'application/octet-stream' })
}

// takesNames reports whether models can have names here.
async function takesNames(signal) {
  return 'put' in ((await get('openapi.json', signal)).paths['/v1/models/{model}'] || {})
}
